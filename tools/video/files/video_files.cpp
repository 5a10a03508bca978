#include "millrace/tools/video/files/video_files.h"

#include "millrace/tools/video/files/libav.h"

namespace {

template <auto make, class... Arguments>
auto quietly(Arguments... arguments) {
  av_log_set_level(AV_LOG_QUIET);  // errors are thrown instead
  return make(arguments...);
}

}  // namespace

extern "C" {
[[gnu::visibility("default")]] extern const millrace::VideoFiles millrace_video_files;
const millrace::VideoFiles millrace_video_files = {
    [](const std::string& file) { return quietly<millrace::open_video_file>(file); },
    [](const std::string& file, int width, int height, millrace::VideoClock clock) {
      return quietly<millrace::create_video_file>(file, width, height, clock);
    }};
}
