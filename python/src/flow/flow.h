// Flows in this process: the module's class Flow, which millrace.data wraps in its own class.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

#include "millrace/base/config.h"
#include "millrace/dataflow/engine/dataflow.h"

namespace millrace::python {

/// Allows flows in this process to use this number of threads (0 = number of cores). oneTBB gets
/// one more, since it counts the consumer's thread, which does no work.
void allow_threads(std::int64_t threads);

/// Converts a dict of [data] keys to a table. `who` is the class name in messages. Throws
/// ConfigError.
Config given_options(const nanobind::dict& options, const std::string& who);
/// Returns the configuration of a file (empty = none), overridden by these [data] keys. Throws
/// ConfigError.
Config load_over(const std::string& file, const Config& given);

/// Throws ConfigError if the rank is not in [0, ranks).
void check_share(Share share);
/// Returns the seed. Throws ConfigError with `place` in the message if it is out of range.
std::uint64_t checked_seed(std::int64_t seed, const std::string& place);

}  // namespace millrace::python
