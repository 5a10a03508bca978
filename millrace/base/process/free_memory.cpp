#include "millrace/base/process/free_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// The number after `key` in a file of lines "key value"; an empty key: the file's first.
std::optional<double> number(const fs::path& file, const std::string& key = {}) {
  std::ifstream stream(file);
  double value = 0;
  if (key.empty()) return stream >> value ? std::optional(value) : std::nullopt;
  for (std::string word, rest; stream >> word; std::getline(stream, rest))
    if (word == key) return stream >> value ? std::optional(value) : std::nullopt;
  return std::nullopt;
}

/// What the group at `folder` may still take; the cache of files counts as free. Nothing: it has no
/// limit.
std::optional<double> left_in_group(const fs::path& folder, const char* limit_file,
                                    const char* used_file, const char* cache_key) {
  const auto limit = number(folder / limit_file);  // "max" is no number
  const auto used = number(folder / used_file);
  if (!limit || !used || *limit > 1e18) return std::nullopt;
  return std::max(0.0, *limit - *used + number(folder / "memory.stat", cache_key).value_or(0));
}

/// The path of this process's group in the hierarchy with this controller; "" names the unified
/// one.
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

/// The least of a group and all groups above it. Inside a container the path may not exist, but its
/// root does.
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

}  // namespace

std::optional<double> free_memory() {
  auto least = number("/proc/meminfo", "MemAvailable:");
  if (least) *least *= 1024;
  const auto take = [&](std::optional<double> left) {
    if (left) least = least ? std::min(*least, *left) : *left;
  };
  take(left_in_groups("/sys/fs/cgroup", group_path(""), "memory.max", "memory.current",
                      "inactive_file"));
  take(left_in_groups("/sys/fs/cgroup/memory", group_path("memory"), "memory.limit_in_bytes",
                      "memory.usage_in_bytes", "total_inactive_file"));
  return least;
}

}  // namespace millrace
