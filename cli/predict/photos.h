// Detects objects in image files; writes annotated pictures, detections.json and images.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "millrace/cli/predict/photo_results.h"
#include "millrace/cli/predict/prediction.h"
#include "millrace/cli/predict/results_page.h"

namespace millrace::cli {

/// Detects objects in the files, writes an annotated picture of each and prints a line about it.
/// Memory use does not grow with the number of files. `ids`: the photos' image ids; empty = 1, 2,
/// ... Resumes the same prediction if it was killed. A file that fails does not stop the others.
/// Adds all photos to `page` and writes it before it completes the result files. Returns the files
/// that failed. Throws Error.
FailedPhotos predict_photos(const Prediction& prediction,
                            const std::vector<std::filesystem::path>& files,
                            const std::vector<std::int64_t>& ids, ResultsPage& page);

}  // namespace millrace::cli
