// The JSON status of data servers and of training ranks (docs/runs.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/serving/keys.h"

namespace millrace::serving {

/// Returns the status of any process: host, process id, CPU time, memory.
nlohmann::ordered_json process_status();

/// Returns an array of the longest-running current work of a flow's threads, a few items.
nlohmann::ordered_json work_status(const FlowReport& flow);

/// Counts the bytes of pixels that this process has received from data servers. Thread-safe.
std::int64_t received_bytes();
void count_received(std::int64_t bytes);

/// Converts to text; bytes that are not UTF-8, e.g. in file names, are replaced.
std::string status_text(const nlohmann::ordered_json& status);

/// The result of asking a data server.
struct StatusAnswer {
  enum class Kind {
    silent,  // no answer; there may be a server
    answered,
    gone,     // no process listens there
    refused,  // refused by a server that does not allow the key, or by another program
  };
  Kind kind = Kind::silent;
  std::string why = "no answer";  // unless it answered
  nlohmann::ordered_json status;  // if it answered: an object
};

/// Asks data servers for their status concurrently; returns when all have answered or are gone,
/// after `timeout` at the latest, in the order of `endpoints`. Throws ConfigError for an invalid
/// endpoint.
std::vector<StatusAnswer> ask_status(const std::vector<std::string>& endpoints,
                                     const std::optional<LinkKeys>& keys,
                                     std::chrono::milliseconds timeout);

}  // namespace millrace::serving
