// Detects objects in videos; writes an annotated video and the detections of each frame.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "millrace/cli/predict/prediction.h"

namespace millrace::cli {

/// The result of one video.
struct VideoResult {
  std::string name;                   // of the output files, without extensions
  std::int64_t frames = 0;            // number of frames read
  std::map<std::string, int> counts;  // number of drawn objects in all frames, per class
  std::string fault;                  // a sentence on the part that was unusable; empty = none
};

/// Detects objects in each frame. Writes `out`/`name`.mp4, whose frames have the times of the
/// original, and `out`/`name`.jsonl: a line about the video, then one line per frame. Both files
/// appear only when complete. Prints a line. Memory use does not grow with the number of frames.
/// Throws Error if there is no result.
VideoResult predict_video(const Prediction& prediction, const std::filesystem::path& video,
                          const std::string& name);

}  // namespace millrace::cli
