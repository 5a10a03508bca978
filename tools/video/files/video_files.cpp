#include "millrace/tools/video/files/video_files.h"

#include "millrace/tools/video/files/libav.h"

extern "C" {
[[gnu::visibility("default")]] extern const millrace::VideoFiles millrace_video_files;
const millrace::VideoFiles millrace_video_files = {millrace::open_video_file,
                                                   millrace::create_video_file};
}
