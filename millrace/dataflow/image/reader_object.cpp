#include "millrace/dataflow/image/reader_object.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <filesystem>

#include "millrace/base/errors.h"
#include "millrace/base/own_folders.h"

namespace millrace {
namespace {

/// Beside the shared object that holds this code (the Python package), or in millrace/ beside it
/// (libmillrace_predict); in a program, in lib/millrace beside the program's folder.
std::filesystem::path reader_file() {
  constexpr auto kName = "image_readers.so";
  Dl_info info{};
  link_map* object = nullptr;  // its name is empty in a program
  const int found = ::dladdr1(reinterpret_cast<const void*>(&image_readers), &info,
                              reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP);
  if (found != 0 && object && object->l_name[0] != '\0') {
    const auto folder = std::filesystem::absolute(object->l_name).parent_path();
    return std::filesystem::exists(folder / kName) ? folder / kName : folder / "millrace" / kName;
  }
  return own_library_folder() / kName;
}

ReadPicture& open_readers() {
  const auto file = reader_file();
  auto* object = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto* function = object ? ::dlsym(object, kReadPicture) : nullptr;
  if (!function)
    throw Error(fmt::format(
        "images other than JPEG are decoded by {}, which cannot be opened: {}; build or install it "
        "with the program",
        file.string(), ::dlerror()));
  return *reinterpret_cast<ReadPicture*>(function);
}

}  // namespace

ReadPicture& image_readers() {
  static ReadPicture& read = open_readers();
  return read;
}

}  // namespace millrace
