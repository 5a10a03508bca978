// Where the installation or build tree lies that this program belongs to.
#pragma once

#include <filesystem>

namespace millrace {

/// lib/millrace beside the program's bin/: what the program opens itself, such as plugins/.
/// It need not exist.
std::filesystem::path own_library_folder();

}  // namespace millrace
