// Sets plans running.
#pragma once

#include <memory>

#include "millrace/engine/dataflow.h"
#include "millrace/engine/flow_options.h"
#include "millrace/engine/numbered_flow.h"
#include "millrace/engine/plan.h"

namespace millrace {

/// Checks the plan and sets it running. Throws ConfigError for a plan or options that cannot work.
std::unique_ptr<DataFlow<Message>> start(Plan plan, const FlowOptions& options);

/// The same for items by number; `wake` may be empty.
std::unique_ptr<NumberedFlow<Message>> start_numbered(Plan plan, const FlowOptions& options,
                                                      WakeUp wake);

}  // namespace millrace
