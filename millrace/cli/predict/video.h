// Detection in videos: an annotated one, and the objects frame by frame.
#pragma once

#include <filesystem>

#include "millrace/cli/predict/prediction.h"

namespace millrace::cli {

/// Detects in each frame; writes `out`/`name`.mp4, whose frames have the times of the video's, and
/// `out`/`name`.jsonl: a line about the video, then one for each frame. Both appear once they are
/// whole. Prints a line. Memory does not grow with the number of frames. Returns what of the video
/// could not be used, a sentence that names it; empty: nothing. Throws Error if nothing came of it.
std::string predict_video(const Prediction& prediction, const std::filesystem::path& video,
                          const std::string& name);

}  // namespace millrace::cli
