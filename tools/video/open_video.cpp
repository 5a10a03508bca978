#include "millrace/tools/video/open_video.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "millrace/base/errors.h"
#include "millrace/base/own_folders.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

const VideoFiles& open_object() {
  const auto file = own_library_folder() / "video_files.so";
  auto* object = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto* found = object ? ::dlsym(object, kVideoFiles) : nullptr;
  if (!found)
    throw Error(fmt::format(
        "videos are read and written by {} with FFmpeg's libraries, and it cannot be opened: {}; "
        "Debian 12 has these as libavformat59 and libswscale6",
        file.string(), ::dlerror()));
  return *static_cast<const VideoFiles*>(found);
}

}  // namespace

bool is_video(const fs::path& file) {
  constexpr std::array<std::string_view, 13> kKnown = {".mp4",  ".m4v", ".mov",  ".avi", ".mkv",
                                                       ".webm", ".mpg", ".mpeg", ".ts",  ".mts",
                                                       ".wmv",  ".flv", ".ogv"};
  auto extension = file.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return std::tolower(c); });
  return std::ranges::count(kKnown, extension) > 0;
}

const VideoFiles& video_files() {
  static const VideoFiles& files = open_object();
  return files;
}

}  // namespace millrace
