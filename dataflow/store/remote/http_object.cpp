#include "millrace/dataflow/store/remote/http_object.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/base/own_folders.h"

namespace millrace {
namespace {

HttpGet& open_object() {
  const auto file = own_object("http.so");
  auto* object = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto* function = object ? ::dlsym(object, kHttpGet) : nullptr;
  if (!function)
    throw Error(fmt::format(
        "files are read over HTTP and from S3 by {} with libcurl, and it cannot be opened: {}; "
        "Debian has libcurl as libcurl4",
        file.string(), ::dlerror()));
  return *reinterpret_cast<HttpGet*>(function);
}

}  // namespace

HttpGet& http_get() {
  static HttpGet& get = open_object();
  return get;
}

}  // namespace millrace
