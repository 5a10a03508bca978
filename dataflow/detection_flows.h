// The flows of detection: endless shuffled batches for training, also served to other machines, and
// one ordered pass for evaluation.
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
struct ListenOptions;
}  // namespace serving

/// Starts an endless flow of shuffled, mirrored, resized batches; data servers make them if
/// `data.source` names some. Batches are always full: samples left over at the end of an epoch wait
/// for their group in the next. `stages` are the tables of `[[data.stages]]`; see `complete_stages`
/// for what they may omit. Throws ConfigError for invalid options, stages or data.
std::unique_ptr<DataFlow<Batch>> start_train_flow(const DataOptions& options,
                                                  std::span<const Config> stages,
                                                  const TrainData& train, std::uint64_t seed,
                                                  Share share = {}, const Cursor& start = {});

/// Starts a flow of the same batches by number. With on_error = "fail", numbers with unusable
/// images fail.
std::unique_ptr<NumberedFlow<Batch>> start_numbered_train_flow(const DataOptions& options,
                                                               std::span<const Config> stages,
                                                               const TrainData& train,
                                                               std::uint64_t seed, Share share,
                                                               const Cursor& start, WakeUp wake);

/// Returns a data server (docs/serving.md) that listens as `listen` says; its `run` sends the
/// batches of start_train_flow to consumers. From this call on, the process's batches are in memory
/// that consumers on this host can map. `options`, `stages` and `train` must outlive the server.
/// Throws ConfigError, Error.
std::unique_ptr<serving::BatchServer> start_data_server(const DataOptions& options,
                                                        std::span<const Config> stages,
                                                        const TrainData& train,
                                                        const serving::ListenOptions& listen,
                                                        std::size_t most_consumers);

/// Returns the largest slot that a training batch may have; nullopt if the stages give no bound.
std::optional<cv::Size> largest_slot(const DataOptions& options, std::span<const Config> stages);

/// Starts one pass over the split, by ascending image id, at the test size. Unusable images are
/// skipped, even with on_error = "replace", which would evaluate other images twice.
std::unique_ptr<DataFlow<Batch>> start_eval_flow(const DataOptions& options, const DataSplit& split,
                                                 Share share = {}, const Cursor& start = {});

/// A pass over image files in their order, read by Photos and prepared as in start_eval_flow.
/// Unusable files are left out without a log message; `photos` has the reasons. The image ids of
/// batches are the indices of the files.
struct PhotoFlow {
  std::shared_ptr<const Photos> photos;
  std::unique_ptr<DataFlow<Batch>> batches;
};
PhotoFlow start_photo_flow(const DataOptions& options, std::vector<std::filesystem::path> files,
                           const Cursor& start = {}, std::vector<cv::Size> sizes = {});

/// Prepares one decoded image as evaluation does. Throws DataError if it cannot be used.
Batch test_batch(const DataOptions& options, Sample decoded);

}  // namespace millrace
