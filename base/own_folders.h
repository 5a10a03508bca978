// Where the installation or build tree lies that this code belongs to.
#pragma once

#include <filesystem>
#include <string_view>

namespace millrace {

/// lib/millrace beside the program's bin/: what the program opens itself, such as plugins/.
/// It need not exist.
std::filesystem::path own_library_folder();

/// Where the shared object `name` is that comes with this code and is opened on first use: beside
/// the shared object that holds this code (the Python package), or in millrace/ beside that
/// (libmillrace_predict); in a program, in own_library_folder().
std::filesystem::path own_object(std::string_view name);

/// The address of `symbol` in a shared object, which is opened and stays open. Throws Error if
/// there is none: `problem`, whose first {} becomes the file and whose second the reason.
void* open_symbol(const std::filesystem::path& object, const char* symbol,
                  std::string_view problem);

}  // namespace millrace
