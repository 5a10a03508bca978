// Batches of a training, as pictures: their own pixels, boxes and masks, and the padding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/tools/data/object_statistics.h"
#include "millrace/tools/report/gallery.h"

namespace millrace::cli {

/// How many batches are drawn, and how many more are only counted.
struct BatchesWanted {
  std::int64_t drawn = 4, counted = 4;  // from the first on; counted >= drawn
};

struct DrawnBatches {
  std::vector<report::Picture> pictures;       // of the batches that are drawn, kMostShown at most
  std::vector<std::filesystem::path> files;    // a PNG of each of these batches
  SeenData seen;                               // all that were counted: size, `seen`, objects
  std::int64_t batches = 0;                    // that were counted
  std::uint64_t pixels = 0, image_pixels = 0;  // of these, with and without padding
  std::int64_t skipped = 0;                    // samples, by the fault policy
  std::vector<std::string> skipped_reasons;    // the first few

  static constexpr std::size_t kMostShown = 64;

  /// The share of the pixels that belongs to no image.
  double padding_share() const;
};

/// Takes batches from the flow and writes `batch-0.png`, ... into the folder. Throws what the flow
/// does, and Error where there is no batch or a file cannot be written.
DrawnBatches draw_batches(DataFlow<Batch>& flow, const std::vector<std::string>& classes,
                          const BatchesWanted& wanted, const std::filesystem::path& folder);

/// A batch in one picture: its images in their slots side by side, the padding hatched.
cv::Mat batch_sheet(const Batch& batch, const std::vector<std::string>& classes);

}  // namespace millrace::cli
