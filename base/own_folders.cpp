#include "millrace/base/own_folders.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "millrace/base/errors.h"

namespace millrace {

std::filesystem::path own_library_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() /
         "lib/millrace";
}

std::filesystem::path own_object(std::string_view name) {
  Dl_info info{};
  link_map* object = nullptr;  // l_name is empty for the program itself
  const int found = ::dladdr1(reinterpret_cast<const void*>(&own_object), &info,
                              reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP);
  if (found != 0 && object && object->l_name[0] != '\0') {
    const auto folder = std::filesystem::absolute(object->l_name).parent_path();
    return std::filesystem::exists(folder / name) ? folder / name : folder / "millrace" / name;
  }
  return own_library_folder() / name;
}

void* open_symbol(const std::filesystem::path& object, const char* symbol,
                  std::string_view problem) {
  auto* library = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto* found = library ? ::dlsym(library, symbol) : nullptr;
  if (!found) throw Error(fmt::format(fmt::runtime(problem), object.string(), ::dlerror()));
  return found;
}

}  // namespace millrace
