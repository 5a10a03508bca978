// The largest batch that the training flow will make, known from annotations before anything is
// read.
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
  cv::Size slot;             // of each, with its padding
  std::int64_t planned = 0;  // number of batches whose images are known; 0 = none is known
  std::int64_t number = 0;   // of this batch among these, from 1

  double pixels() const { return static_cast<double>(images) * slot.area(); }
};

/// The first `batches` of training over all ranks, each image at the largest size that may be drawn
/// for it; a step pads to the largest of its ranks. With stages outside the default list, without
/// annotated sizes, or with fixed shapes: the largest that the configuration allows. nullopt if it
/// gives no bound. Takes up to a second: up to some million images are considered.
std::optional<LargestBatch> largest_train_batch(const DataOptions& options,
                                                std::span<const Config> stages,
                                                const TrainData& train, std::uint64_t seed,
                                                std::int64_t ranks, std::int64_t batches);

}  // namespace millrace
