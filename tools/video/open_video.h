// Video files, by a shared object that is opened on first use.
#pragma once

#include <filesystem>

#include "millrace/tools/video/files/video_files.h"

namespace millrace {

/// Whether a file is a video by its extension.
bool is_video(const std::filesystem::path& file);

/// The reader and writer in lib/millrace/video_files.so beside the program's folder. The first call
/// opens it, with FFmpeg's libraries. Throws Error if that cannot be done.
const VideoFiles& video_files();

}  // namespace millrace
