// Computes the largest batch of the training flow from annotations, before images are read.
#pragma once

#include <cstdint>
#include <opencv2/core/types.hpp>
#include <optional>
#include <span>

#include "millrace/base/config.h"
#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/sources/train_data.h"

namespace millrace {

struct LargestBatch {
  std::int64_t images = 0;
  cv::Size slot;             // size of each image, with padding
  std::int64_t planned = 0;  // number of batches whose images are known; 0 = none
  std::int64_t number = 0;   // index of this batch among these, from 1

  double pixels() const { return static_cast<double>(images) * slot.area(); }
};

/// Returns the largest of the first `batches` training batches over all ranks, each image at the
/// largest size that may be drawn for it; a step pads to the largest image of its ranks. With
/// stages outside the default list, without annotated sizes, or with fixed shapes, returns the
/// largest batch that the configuration allows; nullopt if it gives no bound. Takes up to a second,
/// for up to some million images.
std::optional<LargestBatch> largest_train_batch(const DataOptions& options,
                                                std::span<const Config> stages,
                                                const TrainData& train, std::uint64_t seed,
                                                std::int64_t ranks, std::int64_t batches);

}  // namespace millrace
