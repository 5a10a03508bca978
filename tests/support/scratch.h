// A temporary folder for one test, and helpers that write binary files.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "millrace/base/errors.h"

namespace millrace::testing {

class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "millrace-test-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  Scratch(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(folder_); }

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  /// Writes a file with the given bytes and returns its path.
  std::filesystem::path file(const std::string& name, std::string_view bytes) const {
    // Removed first, since some file systems flush a file that is truncated and rewritten.
    std::filesystem::remove(folder_ / name);
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

 private:
  std::filesystem::path folder_;
};

/// Returns an integer as `width` little-endian bytes.
inline std::string little_endian(std::uint64_t number, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(number >> (8 * i) & 255);
  return bytes;
}

}  // namespace millrace::testing

/// Expects `statement` to throw an Error whose message contains the path and `why`.
#define MILLRACE_EXPECT_ERROR(statement, path, why)                   \
  try {                                                               \
    statement;                                                        \
    ADD_FAILURE() << "no Error; expected one with: " << (why);        \
  } catch (const millrace::Error& error) {                            \
    EXPECT_THAT(error.what(), ::testing::HasSubstr((path).string())); \
    EXPECT_THAT(error.what(), ::testing::HasSubstr(why));             \
  }
