#include "millrace/tools/video/open_video.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "millrace/base/own_folders.h"
#include "millrace/base/text.h"

namespace millrace {

namespace fs = std::filesystem;

bool is_video(const fs::path& file) {
  constexpr std::array<std::string_view, 13> kKnown = {".mp4",  ".m4v", ".mov",  ".avi", ".mkv",
                                                       ".webm", ".mpg", ".mpeg", ".ts",  ".mts",
                                                       ".wmv",  ".flv", ".ogv"};
  return std::ranges::count(kKnown, lower_case(file.extension().string())) > 0;
}

const VideoFiles& video_files() {
  static const auto* files = static_cast<const VideoFiles*>(
      open_symbol(own_library_folder() / "video_files.so", kVideoFiles,
                  "cannot open {}, which reads and writes videos with FFmpeg's libraries: {}; on "
                  "Debian 12 install libavformat59 and libswscale6"));
  return *files;
}

}  // namespace millrace
