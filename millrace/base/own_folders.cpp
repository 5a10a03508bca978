#include "millrace/base/own_folders.h"

namespace millrace {

std::filesystem::path own_library_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() /
         "lib/millrace";
}

}  // namespace millrace
