// Compares the properties that determine batches between two configurations.
#pragma once

#include <span>
#include <string>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/serving/messages.h"
#include "millrace/dataflow/sources/train_data.h"

namespace millrace::serving {

/// Returns all that determines the bytes of a stream's batches: options of [data] (see Affects),
/// the stages' tables, the classes, and a digest of all samples' ids, sizes and objects if there is
/// a source (a consumer need not have the data). Reads every annotation once.
Facts batch_facts(const DataOptions& options, std::span<const Config> stages,
                  const TrainData& train);

/// Returns all that determines the bytes of an evaluation's batches.
Facts eval_facts(const DataOptions& options, const DataSplit& split);

/// Returns the differences of a consumer's facts from a server's: "data.batch_size is 4 for the
/// training and 2 for the server, ..."; empty if they agree.
std::string difference(const Facts& consumer, const Facts& server);

}  // namespace millrace::serving
