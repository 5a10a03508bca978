// Checks exported files with onnxruntime if it is installed for Python.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/models/export/exported.h"

namespace millrace::testing {

inline std::string python() {
  if (const char* named = std::getenv("MILLRACE_PEERS_PYTHON")) return named;
  return std::filesystem::exists(EXPORT_PYTHON) ? EXPORT_PYTHON : "python3";
}

inline int run(const std::string& arguments) {
  return std::system((python() + " " + arguments).c_str());
}

inline bool has_runtime() {
  static const bool has = run("-c 'import onnx, onnxruntime' 2>/dev/null") == 0;
  return has;
}

#define NEEDS_RUNTIME()                       \
  if (!millrace::testing::has_runtime())      \
  GTEST_SKIP() << millrace::testing::python() \
               << " cannot import onnx and onnxruntime (run scripts/setup_python export)"

inline std::vector<NamedPixels> photos_of_all_sizes() {
  return {made_photo(1, 1, 1),   made_photo(120, 90, 2),  made_photo(90, 121, 3),
          made_photo(7, 300, 4), made_photo(640, 480, 5), made_photo(333, 3, 6)};
}

/// Expects the model to be valid ONNX with inferable shapes, and its outputs to match the
/// certificate.
inline void expect_right(const std::filesystem::path& model) {
  EXPECT_EQ(run("-c \"import onnx, sys; onnx.checker.check_model(sys.argv[1], full_check=True)\" " +
                model.string()),
            0);
  EXPECT_EQ(run(CHECK_SCRIPT " " + model.string()), 0);
}

}  // namespace millrace::testing
