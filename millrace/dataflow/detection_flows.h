// The two flows of detection: endless shuffled batches to train on, one ordered pass to evaluate.
#pragma once

#include <cstdint>
#include <memory>
#include <opencv2/core/types.hpp>
#include <optional>
#include <span>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/engine/dataflow.h"

namespace millrace {

/// Shuffled, mirrored, resized, batched; endless. Made by data servers where `data.source` names
/// some. Batches are always full: what is left over where an epoch ends waits for samples of its
/// group in the next. `stages`: the `[[data.stages]]` tables; see `complete_stages` for what they
/// may leave out. Throws ConfigError for options, stages or data that cannot work.
std::unique_ptr<DataFlow<Batch>> start_train_flow(const DataOptions& options,
                                                  std::span<const Config> stages,
                                                  const TrainData& train, std::uint64_t seed,
                                                  Share share = {}, const Cursor& start = {});

/// The same over the images of a split.
std::unique_ptr<DataFlow<Batch>> start_train_flow(const DataOptions& options,
                                                  std::span<const Config> stages,
                                                  const DataSplit& split, std::uint64_t seed,
                                                  Share share = {}, const Cursor& start = {});

/// The batches of start_train_flow by number, for whoever asks; on_error = "fail" fails the numbers
/// of unusable images.
std::unique_ptr<NumberedFlow<Batch>> start_numbered_train_flow(const DataOptions& options,
                                                               std::span<const Config> stages,
                                                               const TrainData& train,
                                                               std::uint64_t seed, Share share,
                                                               const Cursor& start, WakeUp wake);

/// The largest slot of a training batch that the configuration's sizes can make; nothing where its
/// stages give none.
std::optional<cv::Size> largest_slot(const DataOptions& options, std::span<const Config> stages);

/// Every image of the split once, by ascending id, at the test size. One that cannot be used is
/// skipped where training would replace it: another one would come twice.
std::unique_ptr<DataFlow<Batch>> start_eval_flow(const DataOptions& options, const DataSplit& split,
                                                 Share share = {});

}  // namespace millrace
