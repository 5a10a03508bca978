// Detection in videos: an annotated one, and the objects frame by frame.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "millrace/cli/predict/prediction.h"

namespace millrace::cli {

/// What came of a video.
struct VideoResult {
  std::string name;                   // of the files, without their extensions
  std::int64_t frames = 0;            // that could be read
  std::map<std::string, int> counts;  // objects that are drawn, in all frames, by class
  std::string
      fault;  // what of the video could not be used, a sentence that names it; empty: nothing
};

/// Detects in each frame; writes `out`/`name`.mp4, whose frames have the times of the video's, and
/// `out`/`name`.jsonl: a line about the video, then one for each frame. Both appear once they are
/// whole. Prints a line. Memory does not grow with the number of frames. Throws Error if nothing
/// came of it.
VideoResult predict_video(const Prediction& prediction, const std::filesystem::path& video,
                          const std::string& name);

}  // namespace millrace::cli
