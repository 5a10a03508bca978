// Whether two configurations give the same batches, said in words.
#pragma once

#include <span>
#include <string>

#include "millrace/dataflow/serving/messages.h"
#include "millrace/dataflow/sources/train_data.h"

namespace millrace::serving {

/// What decides the bytes of a stream's batches: the options of [data] that do (see Decides), what
/// the stages' tables say, the classes, and the samples: a digest of all names, sizes and objects.
/// Without a source (a consumer need not have the data) the samples are left out. Reads every
/// annotation once.
Facts batch_facts(const DataOptions& options, std::span<const Config> stages,
                  const TrainData& train);

/// How what a consumer knows differs from what a server has: "data.batch_size is 4 for the training
/// and 2 for the server, ..."; empty: it does not.
std::string difference(const Facts& consumer, const Facts& server);

}  // namespace millrace::serving
