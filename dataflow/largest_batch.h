// The largest batches that the flows of detection will make, and what they hold in memory, known
// from annotations before anything is read.
#pragma once

#include <cstdint>
#include <opencv2/core/types.hpp>
#include <optional>
#include <span>

#include "millrace/base/config.h"
#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/sources/train_data.h"

namespace millrace {

struct LargestBatch {
  std::int64_t images = 0;
  cv::Size slot;             // of each, with its padding
  std::int64_t planned = 0;  // of how many batches whose images are known; 0: of any whatever

  double pixels() const { return static_cast<double>(images) * slot.area(); }
};

/// The first `batches` of training over all ranks, each image at the largest size that may be drawn
/// for it; a step pads to the largest of its ranks. With stages outside the default list, without
/// annotated sizes, or with fixed shapes: the largest that the configuration allows. Nothing if it
/// gives no bound. A second at most: no more than some million images are looked at.
std::optional<LargestBatch> largest_train_batch(const DataOptions& options,
                                                std::span<const Config> stages,
                                                const TrainData& train, std::uint64_t seed,
                                                std::int64_t ranks, std::int64_t batches);

/// Of the images that evaluation detects in at once: those of a batch that have one padded size.
/// No pixels where no image's size is known.
LargestBatch largest_test_batch(const DataOptions& options, const DataSplit& split);

/// The most bytes that images take between source and consumer, in a flow of such batches.
double flow_bytes(const DataOptions& options, std::int64_t batch_size, cv::Size slot);

}  // namespace millrace
