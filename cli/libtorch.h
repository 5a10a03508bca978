// Finds libtorch. In a build or an installation, trainer-torch has libtorch's folder in its search
// path. A package (`make package`) searches for libtorch at each start.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace millrace::cli {

/// Returns the version of the libtorch or the Python torch package in `folder`, such as
/// "2.11.0+cu130", read from its files; nullopt if they do not contain it.
std::optional<std::string> libtorch_version(const std::filesystem::path& folder);

/// Returns "libtorch 2.11.0+cu130 with CUDA in FOLDER". `otherwise`: the version to show if the
/// files do not contain one.
std::string libtorch_text(const std::filesystem::path& folder, const std::string& otherwise);

/// If this program is part of a package, finds the libtorch that the package was built for and adds
/// its folders to LD_LIBRARY_PATH, the search path of the program that this process executes next.
/// Searches, in this order: the environment variable LIBTORCH, `libtorch` in the package's folder
/// and beside it, and the torch package of `python3`. Throws Error that lists what was found
/// instead; an unsuitable LIBTORCH is an error even if another place has a suitable version.
void add_libtorch_to_library_path();

/// Removes what add_libtorch_to_library_path added to the environment, so that commands started by
/// this process do not inherit it. Libraries that this process loads later are still found.
/// REQUIRES: only one thread is running.
void restore_library_path();

}  // namespace millrace::cli
