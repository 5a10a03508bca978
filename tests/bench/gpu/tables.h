// What bench_gpu measures, by table.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace millrace::testing {

/// {title: [{column: value}]}; rows of one table have the same columns.
using Tables = nlohmann::ordered_json;

/// Where the time of a training step of `recipe` (a file) goes on the tested device, by libtorch's
/// profiler: kernels, copies, calls and waits of the host. Writes the timeline into the file
/// `trace` unless it is empty. Throws Error if the profiler sees no kernel of a GPU.
void profile_step(Tables& tables, const std::string& recipe, const std::string& trace);

}  // namespace millrace::testing
