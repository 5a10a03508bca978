// Training batches as pictures: their pixels, boxes, masks and padding.
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

/// The number of batches that are drawn, and the number that are counted.
struct BatchesWanted {
  std::int64_t drawn = 4, counted = 4;  // counted >= drawn; the first ones are drawn
};

struct DrawnBatches {
  std::vector<report::Picture> pictures;       // of drawn batches, up to kMostShown
  std::vector<std::filesystem::path> files;    // a PNG of each drawn batch
  SeenData seen;                               // of counted batches: sizes and objects
  std::int64_t batches = 0;                    // number of counted batches
  std::uint64_t pixels = 0, image_pixels = 0;  // of counted batches, with and without padding
  std::int64_t skipped = 0;                    // samples skipped by the fault policy
  std::vector<std::string> skipped_reasons;    // the first few

  static constexpr std::size_t kMostShown = 64;

  /// Returns the fraction of the pixels that is padding.
  double padding_share() const;
};

/// Takes batches from the flow and writes `batch-0.png`, ... into the folder. Throws what the flow
/// throws, and Error if there is no batch or a file cannot be written.
DrawnBatches draw_batches(DataFlow<Batch>& flow, const std::vector<std::string>& classes,
                          const BatchesWanted& wanted, const std::filesystem::path& folder);

/// Draws a batch as one picture: its padded images in a grid, with the padding hatched.
cv::Mat batch_sheet(const Batch& batch, const std::vector<std::string>& classes);

}  // namespace millrace::cli
