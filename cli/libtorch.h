// Where libtorch is. A build and an installation know: trainer-torch has the folder in its search
// path. A package (`make package`) looks for it at each start.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace millrace::cli {

/// The version of the libtorch, or torch package of a Python installation, in `folder`, such as
/// "2.11.0+cu130", read from its own files; nothing if they do not say.
std::optional<std::string> libtorch_version(const std::filesystem::path& folder);

/// "libtorch 2.11.0+cu130 with CUDA in FOLDER". `otherwise`: the version if its files do not say.
std::string libtorch_text(const std::filesystem::path& folder, const std::string& otherwise);

/// Where this program is the package's, finds the libtorch that the package was built for and puts
/// its folders into the search path of what this process executes next: LD_LIBRARY_PATH. Looked in,
/// in this order: the environment's LIBTORCH, `libtorch` in the package's folder and beside it, the
/// torch package of `python3`. Throws Error saying what was found instead; of LIBTORCH also where
/// another place would do.
void open_libtorch_to_next_program();

/// Takes back what open_libtorch_to_next_program has added to the environment, so that no command
/// that this one starts gets it. What is loaded later is still found. REQUIRES: one thread.
void restore_library_path();

}  // namespace millrace::cli
