// The folder of real test data: MILLRACE_TEST_DATA, or ../shared/data beside the project.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace millrace::testing {

inline std::filesystem::path data_folder() {
  const char* set = std::getenv("MILLRACE_TEST_DATA");
  return set ? set : "../shared/data";
}

}  // namespace millrace::testing

/// Skips the test with a message if the real data is missing.
#define MILLRACE_NEEDS_DATA(folder)                                               \
  if (!std::filesystem::exists(millrace::testing::data_folder() / (folder)))      \
  GTEST_SKIP() << "no " << (millrace::testing::data_folder() / (folder)).string() \
               << " (set MILLRACE_TEST_DATA to the folder of real test data)"
