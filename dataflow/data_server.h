// A data server for the training flow (docs/serving.md).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/serving/server.h"
#include "millrace/dataflow/sources/train_data.h"

namespace millrace {

/// Listens at `door`; its `run` gives consumers the batches of start_train_flow. From now on this
/// process's batches lie in memory that consumers on this host can map. `options`, `stages` and
/// `train` must outlive it. Throws ConfigError, Error.
std::unique_ptr<serving::BatchServer> start_data_server(const DataOptions& options,
                                                        std::span<const Config> stages,
                                                        const TrainData& train,
                                                        const serving::DoorOptions& door,
                                                        std::size_t most_consumers);

}  // namespace millrace
