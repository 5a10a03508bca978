#include "trainer/run_folder.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "base/files.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// N of "name-N" where it is the folder of a run, else 0.
long long number_of(const fs::path& folder) {
  const auto name = folder.filename().string();
  const auto dash = name.rfind('-');
  if (dash == std::string::npos || dash + 1 == name.size() || name.size() - dash > 10 ||
      name.find_first_not_of("0123456789", dash + 1) != std::string::npos)
    return 0;
  return std::stoll(name.substr(dash + 1));
}

}  // namespace

std::optional<fs::path> newest_run_folder(const fs::path& output) {
  std::optional<fs::path> newest;
  if (!fs::is_directory(output)) return newest;
  for (const auto& entry : fs::directory_iterator(output))
    if (entry.is_directory() && number_of(entry) > (newest ? number_of(*newest) : 0))
      newest = entry.path();
  return newest;
}

fs::path make_run_folder(const fs::path& output, const std::string& name) {
  make_writable_folder(output);
  const auto newest = newest_run_folder(output);
  for (auto number = newest ? number_of(*newest) + 1 : 1;; ++number) {
    const auto folder = output / fmt::format("{}-{}", name, number);
    std::error_code problem;
    if (fs::create_directory(folder, problem)) return folder;
    if (problem)
      throw Error(
          fmt::format("{}: this folder cannot be made: {}", folder.string(), problem.message()));
  }  // somebody else took the number
}

}  // namespace millrace
