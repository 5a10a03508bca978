// Compiles a list of stages into a running graph. The only door to the flow graph library.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/dataflow.h"
#include "dataflow/flow_options.h"
#include "dataflow/stage.h"

namespace millrace {

/// What a pipeline declares: `size` samples, of which the first stage takes the Index.
struct Plan {
  std::int64_t size = 0;
  std::vector<Stage> stages;
  std::vector<double> repeats =
      {};  // how often each sample comes an epoch, on average; empty: once
  std::function<std::string(std::int64_t sample)> name_of = {};  // for reports; empty: nobody can
};

/// Checks that each stage takes what the one before it yields, that the first takes an Index, that at most one
/// groups, one is a cache and no stage in front of that draws at random. Throws ConfigError naming the stages.
void check(const Plan& plan);

/// The fewest samples in flight with which a plan cannot hang: groups x (B - 1) + 1. So many may sit in
/// half-filled groups, and one more fills one of them.
std::int64_t least_in_flight(const Plan& plan);

/// Checks the plan and sets it running. Throws ConfigError for a plan or options that cannot work.
std::unique_ptr<DataFlow<Message>> start(Plan plan, const FlowOptions& options);

}  // namespace millrace
