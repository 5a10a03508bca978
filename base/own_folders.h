// The location of the installation or build tree that contains this code.
#pragma once

#include <filesystem>
#include <string_view>

namespace millrace {

/// Returns lib/millrace beside the program's bin/, which contains files that the program opens
/// itself, such as plugins/. The folder need not exist.
std::filesystem::path own_library_folder();

/// Returns the path of the shared object `name`, which is installed with this code and opened on
/// first use. It is beside the shared object that contains this code (the Python package) or in
/// millrace/ beside that (libmillrace_predict); for a program, in own_library_folder().
std::filesystem::path own_object(std::string_view name);

/// Returns the address of `symbol` in a shared object, which is opened and stays open. On failure
/// throws Error with `problem`, whose first {} is replaced by the file and whose second by the
/// reason.
void* open_symbol(const std::filesystem::path& object, const char* symbol,
                  std::string_view problem);

}  // namespace millrace
