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
  // The known facts of the batches, which servers must match. Without "samples", they must match
  // those of the first server that answers, too.
  Facts facts;
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  // without any server: an error
  // Maximum bytes that wait for the consumer, unless a single batch has more.
  std::int64_t memory = std::int64_t{2048} << 20;
  double max_skipped = 0.1;  // share of an epoch's samples
};

class ServedFlow : public DataFlow<Batch> {
 public:
  /// The servers' facts; nullopt before one has answered.
  virtual std::optional<Facts> facts() const = 0;
};

/// The batches of a stream, byte for byte those of a flow without servers, in the same order, each
/// once. A thread of its own asks, receives and orders. `next` throws Error if there was no server
/// for `timeout` or all have refused, with the state of each. Throws ConfigError for bad endpoints.
std::unique_ptr<ServedFlow> connect_flow(ConnectOptions options);

}  // namespace millrace::serving
