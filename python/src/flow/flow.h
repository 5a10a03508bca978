// Flows of this process in Python: the module's class Flow, which millrace.data makes its own of.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

#include "millrace/base/config.h"
#include "millrace/dataflow/engine/dataflow.h"

namespace millrace::python {

/// This process will make batches with so many threads (0: as many as processors). oneTBB gets one
/// more, since the consumer's counts and does no work.
void allow_threads(std::int64_t threads);

/// A dict of keys of [data] as that table; messages name the class `who`. Throws ConfigError.
Config given_options(const nanobind::dict& options, const std::string& who);
/// The configuration of a file (empty: none) with those keys over it. Throws ConfigError.
Config load_over(const std::string& file, const Config& given);

/// Throws ConfigError for a rank that does not exist.
void check_share(Share share);
/// Throws ConfigError naming `place` for a seed out of range.
std::uint64_t checked_seed(std::int64_t seed, const std::string& place);

void add_flow(nanobind::module_& module);

}  // namespace millrace::python
