// Tables of bench_gpu's results.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace millrace::testing {

/// {title: [{column: value}]}. All rows of a table have the same columns.
using Tables = nlohmann::ordered_json;

/// Measures how a training step of `recipe` (a file) on the tested device spends its time, with
/// libtorch's profiler: kernels, copies, calls and waits of the host. Writes the timeline to the
/// file `trace`; empty = no timeline. Throws Error if the profiler records no kernel of a GPU.
void profile_step(Tables& tables, const std::string& recipe, const std::string& trace);

}  // namespace millrace::testing
