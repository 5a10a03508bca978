// The shared objects that come with a program and are opened on first use.
#pragma once

#include <filesystem>
#include <string_view>

namespace millrace {

/// Where `name` is that comes with this code: beside the shared object that holds it (the Python
/// package), or in millrace/ beside that (libmillrace_predict); in a program, in lib/millrace
/// beside the program's folder.
std::filesystem::path own_object(std::string_view name);

}  // namespace millrace
