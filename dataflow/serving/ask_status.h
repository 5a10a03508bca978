// Asks data servers for their status.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "millrace/dataflow/serving/keys.h"

namespace millrace::serving {

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

/// Asks all at the same time, and returns when all have answered or are gone, after `timeout` at
/// most. In the order of `endpoints`. Throws ConfigError for a bad endpoint.
std::vector<StatusAnswer> ask_status(const std::vector<std::string>& endpoints,
                                     const std::optional<LinkKeys>& keys,
                                     std::chrono::milliseconds timeout);

}  // namespace millrace::serving
