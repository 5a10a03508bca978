#include "millrace/dataflow/image/reader_object.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/base/own_folders.h"

namespace millrace {
namespace {

ReadPicture& open_readers() {
  const auto file = own_object("image_readers.so");
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
