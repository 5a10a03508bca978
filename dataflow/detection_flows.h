// The flows of detection: endless shuffled batches to train on, also served to other machines, and
// one ordered pass to evaluate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <opencv2/core/types.hpp>
#include <optional>
#include <span>
#include <vector>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/sources/photos.h"
#include "millrace/dataflow/sources/train_data.h"

namespace millrace {

namespace serving {
class BatchServer;
struct DoorOptions;
}  // namespace serving

/// Shuffled, mirrored, resized, batched; endless. Made by data servers if `data.source` names some.
/// Batches are always full: what an epoch leaves over waits for its group in the next. `stages` are
/// the tables of `[[data.stages]]`; see `complete_stages` for what they may leave out. Throws
/// ConfigError for options, stages or data that cannot work.
std::unique_ptr<DataFlow<Batch>> start_train_flow(const DataOptions& options,
                                                  std::span<const Config> stages,
                                                  const TrainData& train, std::uint64_t seed,
                                                  Share share = {}, const Cursor& start = {});

/// The same batches by number; on_error = "fail" fails the numbers of unusable images.
std::unique_ptr<NumberedFlow<Batch>> start_numbered_train_flow(const DataOptions& options,
                                                               std::span<const Config> stages,
                                                               const TrainData& train,
                                                               std::uint64_t seed, Share share,
                                                               const Cursor& start, WakeUp wake);

/// A data server (docs/serving.md) that listens at `door`; its `run` gives consumers the batches of
/// start_train_flow. From now on this process's batches are in memory that consumers on this host
/// can map. `options`, `stages` and `train` must outlive it. Throws ConfigError, Error.
std::unique_ptr<serving::BatchServer> start_data_server(const DataOptions& options,
                                                        std::span<const Config> stages,
                                                        const TrainData& train,
                                                        const serving::DoorOptions& door,
                                                        std::size_t most_consumers);

/// The largest slot that a training batch may have; nullopt if the stages give no bound.
std::optional<cv::Size> largest_slot(const DataOptions& options, std::span<const Config> stages);

/// Every image of the split once, by ascending id, at the test size. Unusable ones are skipped,
/// also with on_error = "replace", by which others would be taken twice.
std::unique_ptr<DataFlow<Batch>> start_eval_flow(const DataOptions& options, const DataSplit& split,
                                                 Share share = {}, const Cursor& start = {});

/// A pass over image files in their order, read by Photos and then prepared as in start_eval_flow.
/// Files that cannot be used are left out silently: `photos` has the reasons. Images of batches
/// have the numbers of files.
struct PhotoFlow {
  std::shared_ptr<const Photos> photos;
  std::unique_ptr<DataFlow<Batch>> batches;
};
PhotoFlow start_photo_flow(const DataOptions& options, std::vector<std::filesystem::path> files,
                           const Cursor& start = {}, std::vector<cv::Size> sizes = {});

/// One decoded image as evaluation prepares it. Throws DataError if it cannot be used.
Batch test_batch(const DataOptions& options, Sample decoded);

}  // namespace millrace
