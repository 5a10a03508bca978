// A flow whose batches are made by data servers (docs/serving.md).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/serving/keys.h"
#include "millrace/dataflow/serving/messages.h"

namespace millrace::serving {

struct ConnectOptions {
  std::vector<std::string> servers;  // endpoints
  std::optional<LinkKeys> keys;
  Stream stream;
  // Known facts of the batches, which servers must match. Without "samples", servers must also
  // match the facts of the first server that answers.
  Facts facts;
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  // without any server until an error
  // Maximum bytes of batches that wait for the consumer, at least one batch; 0 = unlimited.
  std::int64_t memory = std::int64_t{2048} << 20;
  double max_skipped = 0.1;  // fraction of an epoch's samples
};

class ServedFlow : public DataFlow<Batch> {
 public:
  /// Returns the servers' facts; nullopt before one has answered.
  virtual std::optional<Facts> facts() const = 0;
};

/// Returns a flow of the batches of a stream, byte for byte those of a flow without servers, in the
/// same order, each once. Its own thread requests, receives and orders them. `next` throws Error
/// with the state of each server if no server was available for `timeout` or all have refused.
/// Throws ConfigError for invalid endpoints.
std::unique_ptr<ServedFlow> connect_flow(ConnectOptions options);

}  // namespace millrace::serving
