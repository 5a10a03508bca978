#include "millrace/dataflow/serving/remote_train_flow.h"

#include <cmath>
#include <optional>

#include "millrace/base/errors.h"
#include "millrace/dataflow/serving/facts.h"
#include "millrace/dataflow/serving/remote_flow.h"

namespace millrace::serving {
namespace {

std::optional<LinkKeys> read_keys(const RemoteOptions& options) {
  if (options.source_key.empty() && options.source_server_key.empty()) return std::nullopt;
  return LinkKeys{read_public_key(options.source_server_key), read_secret_key(options.source_key)};
}

}  // namespace

std::unique_ptr<DataFlow<Batch>> start_remote_train_flow(const DataOptions& options,
                                                         std::span<const Config> stages,
                                                         const TrainData& train,
                                                         const Stream& stream) {
  return connect_flow(
      {.servers = options.source,
       .keys = read_keys(options),
       .stream = stream,
       .facts = batch_facts(options, stages, train),
       .timeout = std::chrono::milliseconds(std::llround(options.source_timeout.seconds * 1000)),
       .memory = options.memory << 20,
       .max_skipped = options.max_skipped});
}

}  // namespace millrace::serving
