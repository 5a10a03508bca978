#include "millrace/base/process/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

namespace millrace {
namespace {

rusage used_by_process() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used;
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

}  // namespace

double cpu_seconds() {
  const auto used = used_by_process();
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

std::int64_t rss_bytes() {
  std::int64_t size = 0, resident = 0;  // pages
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

std::int64_t peak_rss_bytes() { return std::int64_t{1024} * used_by_process().ru_maxrss; }

double process_age() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  // The second field is the program's name in parentheses; the 22nd is the start in ticks since the
  // system's.
  const auto behind_name = text.rfind(')');
  if (behind_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(behind_name + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  double ticks = 0;
  timespec now{};
  if (!(fields >> ticks) || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double uptime = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  return std::max(0.0, uptime - ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

}  // namespace millrace
