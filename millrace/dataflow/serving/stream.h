// What a consumer of a data server wants, and what a server has: endless lines of numbered batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/dataflow.h"

namespace millrace::serving {

/// Batch number k of a stream (0, 1, 2, ... from its start) is a pure function of the data, the
/// configuration and these.
struct Stream {
  std::uint64_t seed = 1;
  Share share;
  Cursor start;
};

/// Starts to make batches of a stream. Throws ConfigError where there can be none.
using StartStream =
    std::function<std::unique_ptr<NumberedFlow<Batch>>(const Stream& stream, WakeUp ready)>;

}  // namespace millrace::serving
