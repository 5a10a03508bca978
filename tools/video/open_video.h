// Reads and writes video files with a shared object that is opened on first use.
#pragma once

#include <filesystem>

#include "millrace/tools/video/files/video_files.h"

namespace millrace {

/// Returns true if the file has a video's extension.
bool is_video(const std::filesystem::path& file);

/// Returns the reader and writer of lib/millrace/video_files.so beside the program's folder. The
/// first call opens it and FFmpeg's libraries. Throws Error if it cannot be opened.
const VideoFiles& video_files();

}  // namespace millrace
