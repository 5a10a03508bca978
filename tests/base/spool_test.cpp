#include "millrace/base/disk/spool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "millrace/base/errors.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

TEST(SpillingArray, ContainsSameValuesInMemoryAndFile) {
  const testing::Scratch scratch;
  std::vector<int> expected(10000);
  std::iota(expected.begin(), expected.end(), 7);
  for (const std::size_t most : {0, 4, 1000, 39999, 40000, 1000000}) {
    SpillingArray<int> array(Spill{scratch.path(), most});
    array.reserve(expected.size());
    for (std::size_t begin = 0, count = 1; begin < expected.size(); begin += count, ++count) {
      count = std::min(count, expected.size() - begin);
      array.append(std::span(expected).subspan(begin, count));
      ASSERT_EQ(array.size(), begin + count);
    }
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(std::ranges::equal(array.values(), expected)) << most;
    const auto moved = std::make_shared<SpillingArray<int>>(std::move(array));
    EXPECT_TRUE(std::ranges::equal(moved->values(), expected));
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
  EXPECT_TRUE(SpillingArray<int>(Spill{scratch.path(), 0}).values().empty());
}

TEST(Spool, MappingOutlivesSpoolAndPageRelease) {
  const testing::Scratch scratch;
  std::string bytes(100000, 'x');
  bytes.front() = 'a', bytes.back() = 'z';
  SharedBytes mapped;
  {
    Spool spool(scratch.path());
    spool.add(bytes);
    mapped = spool.mapped();
  }
  const std::string_view text(reinterpret_cast<const char*>(mapped.data.get()), mapped.size);
  EXPECT_EQ(text, bytes);
  for (const std::size_t begin : {0, 1, 5000}) release_pages(text.substr(begin));
  EXPECT_EQ(text, bytes);
}

TEST(Spool, ReportsMissingFolder) {
  const testing::Scratch scratch;
  MILLRACE_EXPECT_ERROR(Spool(scratch / "none"), scratch / "none", "cannot create");
}

}  // namespace
}  // namespace millrace
