// Files and folders that a configuration names.
#pragma once

#include <filesystem>

#include "millrace/base/config.h"

namespace millrace {

/// The absolute path of the file or folder that a string names: relative to the file that sets it,
/// or to the current folder if --set, the program or a default does. REQUIRES: `value` is a string.
std::filesystem::path named_path(const Config& value);

/// Replaces a string that names a file or folder by named_path, so that it means the same in a file
/// elsewhere. Empty ones, URLs and what is not a string stay.
void make_path_absolute(Config& value);

}  // namespace millrace
