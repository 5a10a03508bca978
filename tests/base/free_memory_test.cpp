#include "millrace/base/process/free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace millrace {
namespace {

TEST(FreeMemory, IsSomeOfWhatTheMachineHas) {
  const auto free = free_memory();
  ASSERT_TRUE(free.has_value());
  EXPECT_GT(*free, 0);
  EXPECT_LE(*free, static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<double>(sysconf(_SC_PAGESIZE)));
}

}  // namespace
}  // namespace millrace
