// Detection in image files: pictures to look at, detections.json and images.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "millrace/cli/predict/photo_results.h"
#include "millrace/cli/predict/prediction.h"
#include "millrace/cli/predict/results_page.h"

namespace millrace::cli {

/// Detects in files one after the other, draws a picture of each and prints a line about it; memory
/// does not grow with their number. The photos have these `ids`; if there are none, 1, 2, ... Goes
/// on where the same prediction was killed. A file that fails does not stop the others. Puts all
/// into the page and writes that before the results are whole. Returns those that failed. Throws
/// Error.
FailedPhotos predict_photos(const Prediction& prediction,
                            const std::vector<std::filesystem::path>& files,
                            const std::vector<std::int64_t>& ids, ResultsPage& page);

}  // namespace millrace::cli
