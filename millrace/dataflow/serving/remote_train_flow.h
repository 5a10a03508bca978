// Training's batches from the data servers that `[data]` names.
#pragma once

#include <memory>
#include <span>

#include "millrace/dataflow/serving/stream.h"
#include "millrace/dataflow/sources/train_data.h"

namespace millrace::serving {

/// The flow that `start_train_flow` would give, made by the servers of options.source. Throws
/// ConfigError for keys or endpoints that cannot be.
std::unique_ptr<DataFlow<Batch>> start_remote_train_flow(const DataOptions& options,
                                                         std::span<const Config> stages,
                                                         const TrainData& train,
                                                         const Stream& stream);

}  // namespace millrace::serving
