// Files beside gpu_tests in its build tree or package.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace millrace::testing {

inline std::filesystem::path own_program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

/// Returns the path of a file that is shipped with the program, such as "configs/maskrcnn.toml": in
/// the installation's share/millrace, otherwise in the source tree that contains the build folder.
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

/// Returns the settings with which a recipe runs on the tested device.
Words on_tested_device();

/// Returns settings for tiny images and a narrow network if --small is set; otherwise none.
Words as_small_as_asked();

/// Returns the data.root setting for the sample data set. The first call in this process generates
/// the data set.
std::string sample_data();

}  // namespace millrace::testing
