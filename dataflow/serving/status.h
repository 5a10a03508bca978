// What data servers and ranks of a training report of themselves (docs/status.md), as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "millrace/dataflow/engine/dataflow.h"

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

}  // namespace millrace::serving
