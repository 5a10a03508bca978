// Files beside gpu_tests in its build tree or package.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace millrace::testing {

inline std::filesystem::path own_program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

/// Returns a file that is shipped with the program, such as "configs/maskrcnn.toml": from the
/// installation's share/millrace, else from the source tree around the build folder.
inline std::filesystem::path shipped(const std::string& name) {
  namespace fs = std::filesystem;
  const auto own = own_program("").parent_path();
  if (const auto installed = own.parent_path() / "share/millrace" / name; fs::exists(installed))
    return installed;
  for (auto folder = own; folder.has_relative_path(); folder = folder.parent_path())
    if (fs::exists(folder / name)) return folder / name;
  throw std::runtime_error("no " + name + " beside " + own.string());
}

}  // namespace millrace::testing

#define MILLRACE_TRAINER ::millrace::testing::own_program("trainer")
#include "tests/cli/trainer.h"

namespace millrace::testing {

/// Returns the settings of a recipe for the tested device.
Words on_tested_device();

/// Returns settings for tiny images and a narrow network if --small is set; otherwise none.
Words as_small_as_asked();

/// Returns the data.root setting of the sample data set, which the first call of this process
/// generates.
std::string sample_data();

}  // namespace millrace::testing
