#include "millrace/base/disk/shared_blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "millrace/base/files.h"
#include "millrace/base/random.h"
#include "tests/support/reflink_disk.h"
#include "tests/support/scratch.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSize = (std::size_t{8} << 20) + 1234;

std::string noise(std::size_t size, std::uint64_t seed) {
  Rng rng({seed});
  std::string bytes(size, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(rng());
  return bytes;
}

void write(const fs::path& file, const std::string& bytes, const fs::path& like) {
  const std::string_view parts[] = {std::string_view(bytes).substr(0, bytes.size() / 3),
                                    std::string_view(bytes).substr(bytes.size() / 3)};
  write_sharing(file, parts, like);
}

/// Expects each file to contain the bytes written to it, whatever the old file contains.
void expect_own_bytes(const fs::path& folder) {
  auto bytes = noise(kSize, 1);
  write(folder / "0", bytes, folder / "none");
  EXPECT_EQ(read_file(folder / "0"), bytes);
  bytes[kSize / 2] ^= 1;
  write(folder / "1", bytes, folder / "0");
  EXPECT_EQ(read_file(folder / "1"), bytes) << "one byte differs";
  write(folder / "2", bytes + "more", folder / "1");
  EXPECT_EQ(read_file(folder / "2"), bytes + "more") << "longer";
  write(folder / "3", bytes.substr(0, kSize / 2), folder / "2");
  EXPECT_EQ(read_file(folder / "3"), bytes.substr(0, kSize / 2)) << "shorter";
  write(folder / "4", "", folder / "3");
  EXPECT_EQ(read_file(folder / "4"), "");
  EXPECT_EQ(read_file(folder / "2"), bytes + "more") << "an earlier file has changed";
}

TEST(SharedBlocks, WriteGivenBytes) {
  const Scratch scratch;
  expect_own_bytes(scratch.path());
}

TEST(SharedBlocks, TakeNoSpaceOnReflinkFileSystems) {
  const ReflinkDisk disk;
  if (!disk.ready()) GTEST_SKIP() << "needs root, mkfs.xfs and a loop device";
  auto bytes = noise(kSize, 1);
  write(disk.path() / "before", bytes, "none");
  const auto used = disk.used();
  bytes[kSize / 2] ^= 1;
  write(disk.path() / "after", bytes, disk.path() / "before");
  EXPECT_LT(disk.used() - used, kSize / 8);
  EXPECT_EQ(read_file(disk.path() / "after"), bytes);
  expect_own_bytes(disk.path());
}

}  // namespace
}  // namespace millrace::testing
