// Tables of bench_gpu's results.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace millrace::testing {

/// {title: [{column: value}]}. All rows of a table have the same columns.
using Tables = nlohmann::ordered_json;

/// Measures with libtorch's profiler how a training step of the configuration file `recipe` spends
/// its time on the tested device: kernels, copies, and calls and waits of the host. Writes the
/// timeline to the file `trace`; empty = no timeline. Throws Error if no kernel of a GPU is
/// recorded.
void profile_step(Tables& tables, const std::string& recipe, const std::string& trace);

}  // namespace millrace::testing
