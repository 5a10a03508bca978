#include "base/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

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

}  // namespace millrace
