#include "millrace/base/process/process_usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "tests/support/limited.h"
#include "tests/support/wait.h"

namespace millrace {
namespace {

TEST(ProcessUsage, GrowsWithUse) {
  const auto cpu = cpu_seconds(), age = process_age();
  const auto memory = rss_bytes();
  const std::vector<char> used(64 << 20, 1);
  EXPECT_GE(rss_bytes(), memory + (32 << 20));
  EXPECT_GE(peak_rss_bytes(), memory + (32 << 20));
  EXPECT_TRUE(testing::wait_until([&] { return cpu_seconds() > cpu && process_age() > age; }));
}

TEST(FreeMemory, IsPositiveAndBelowTotal) {
  const auto free = free_memory();
  ASSERT_TRUE(free.has_value());
  EXPECT_GT(*free, 0);
  EXPECT_LE(*free, static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<double>(sysconf(_SC_PAGESIZE)));
}

TEST(FreeMemory, RespectsProcessLimit) {
  constexpr double kMore = 256 << 20;
  std::int64_t mapped = 0;  // in pages
  std::ifstream("/proc/self/statm") >> mapped;
  const auto limit = static_cast<double>(mapped * sysconf(_SC_PAGESIZE)) + kMore;
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    const testing::Limited limited(resource, static_cast<rlim_t>(limit));
    const auto free = free_memory();
    EXPECT_GT(free, 0);
    EXPECT_LE(free, resource == RLIMIT_AS ? kMore : limit);
  }
}

}  // namespace
}  // namespace millrace
