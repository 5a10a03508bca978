#include "millrace/base/process/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <limits>

#include "millrace/base/process/process_identity.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Returns the bytes that the control group at `folder` may still allocate, counting the file cache
/// as free. nullopt = no limit.
std::optional<double> left_in_group(const fs::path& folder, const char* limit_file,
                                    const char* used_file, const char* cache_key) {
  const auto limit = read_number(folder / limit_file);  // "max" does not parse as a number
  const auto used = read_number(folder / used_file);
  if (!limit || !used || *limit > 1e18) return std::nullopt;
  return std::max(0.0, *limit - *used + read_number(folder / "memory.stat", cache_key).value_or(0));
}

/// Returns the path of this process's control group for a controller; "" = the unified hierarchy.
std::string group_path(const std::string& controller) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names == "," + controller + "," || names.find("," + controller + ",") != std::string::npos)
      return line.substr(second + 1);
  }
  return "/";
}

/// Returns the minimum over a group and all its ancestors. In a container only the root may exist.
std::optional<double> left_in_groups(const fs::path& root, const std::string& path,
                                     const char* limit_file, const char* used_file,
                                     const char* cache_key) {
  std::optional<double> least;
  for (auto below = fs::path(path).relative_path();; below = below.parent_path()) {
    if (const auto left = left_in_group(root / below, limit_file, used_file, cache_key))
      least = std::min(*left, least.value_or(std::numeric_limits<double>::max()));
    if (below.empty()) return least;
  }
}

/// Returns the bytes left below a limit of this process (`ulimit -v`, `-d`), after the mapped
/// memory that /proc/self/status reports under `key` and the stacks of threads still to be started,
/// which count in full. nullopt = no limit.
std::optional<double> left_of(__rlimit_resource limited, const std::string& key) {
  rlimit limit{};
  const auto used = read_number("/proc/self/status", key);
  if (::getrlimit(limited, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || !used)
    return std::nullopt;
  constexpr double kThreads = 10, kStack = 8 << 20;
  return std::max(0.0, static_cast<double>(limit.rlim_cur) - 1024 * *used - kThreads * kStack);
}

}  // namespace

std::optional<double> read_number(const fs::path& file, const std::string& key) {
  std::ifstream stream(file);
  double value = 0;
  if (key.empty()) return stream >> value ? std::optional(value) : std::nullopt;
  for (std::string word, rest; stream >> word; std::getline(stream, rest))
    if (word == key) return stream >> value ? std::optional(value) : std::nullopt;
  return std::nullopt;
}

std::string processor_name() {
  std::ifstream facts("/proc/cpuinfo");
  for (std::string line; std::getline(facts, line);)
    if (const auto colon = line.find(": "); line.starts_with("model name") && colon != line.npos)
      return line.substr(colon + 2);
  return "unknown";
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

std::int64_t rss_bytes() {
  std::int64_t size = 0, resident = 0;  // pages
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

std::int64_t peak_rss_bytes() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return std::int64_t{1024} * used.ru_maxrss;
}

double process_age() {
  const auto ticks = own_identity().start;
  timespec now{};
  if (ticks == 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double uptime = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  return std::max(
      0.0, uptime - static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

std::optional<double> free_memory() {
  auto least = read_number("/proc/meminfo", "MemAvailable:");
  if (least) *least *= 1024;
  const auto take = [&](std::optional<double> left) {
    if (left) least = least ? std::min(*least, *left) : *left;
  };
  take(left_in_groups("/sys/fs/cgroup", group_path(""), "memory.max", "memory.current",
                      "inactive_file"));
  take(left_in_groups("/sys/fs/cgroup/memory", group_path("memory"), "memory.limit_in_bytes",
                      "memory.usage_in_bytes", "total_inactive_file"));
  take(left_of(RLIMIT_AS, "VmSize:"));
  take(left_of(RLIMIT_DATA, "VmData:"));
  return least;
}

}  // namespace millrace
