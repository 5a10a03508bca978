// What data servers and ranks of a training report of themselves (docs/status.md), as JSON.
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

/// Of any process: host, number, memory.
nlohmann::ordered_json process_status();

/// What a flow's threads work on, the longest first, a few of them: an array.
nlohmann::ordered_json work_status(const FlowReport& flow);

/// Bytes of pixels that this process has had from data servers. Any thread.
std::int64_t received_bytes();
void count_received(std::int64_t bytes);

/// Converts to text; bytes that are not UTF-8, as in names of files, are replaced.
std::string status_text(const nlohmann::ordered_json& status);

/// What a data server answered.
struct StatusAnswer {
  enum class Kind {
    silent,  // there may be a server
    answered,
    gone,     // no process listens there
    refused,  // by a server that does not allow the key, or by another program
  };
  Kind kind = Kind::silent;
  std::string why = "no answer";  // unless it answered
  nlohmann::ordered_json status;  // if it answered: an object
};

/// Asks data servers for their status, all at the same time, and returns when all have answered or
/// are gone, after `timeout` at most. In the order of `endpoints`. Throws ConfigError for a bad
/// endpoint.
std::vector<StatusAnswer> ask_status(const std::vector<std::string>& endpoints,
                                     const std::optional<LinkKeys>& keys,
                                     std::chrono::milliseconds timeout);

}  // namespace millrace::serving
