// Compiles a list of stages into a running graph. The only door to the flow graph library.
#pragma once

#include <memory>

#include "dataflow/dataflow.h"
#include "dataflow/flow_options.h"
#include "dataflow/numbered_flow.h"
#include "dataflow/plan.h"

namespace millrace {

/// The fewest samples in flight with which a plan cannot hang: those of one group on one rank.
std::int64_t least_in_flight(const Plan& plan);

/// Checks the plan and sets it running. Throws ConfigError for a plan or options that cannot work.
std::unique_ptr<DataFlow<Message>> start(Plan plan, const FlowOptions& options);

/// The same for items by number; `wake` may be empty.
std::unique_ptr<NumberedFlow<Message>> start_numbered(Plan plan, const FlowOptions& options,
                                                      WakeUp wake);

}  // namespace millrace
