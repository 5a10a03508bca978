// Sets plans running.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "millrace/engine/dataflow.h"
#include "millrace/engine/flow_options.h"
#include "millrace/engine/numbered_flow.h"
#include "millrace/engine/plan.h"

namespace millrace {

/// A running plan, whose messages do not say their type: what DataFlow and NumberedFlow are made of
/// (pipeline.h), which document each call. REQUIRES: `next` and `is_ready` for a flow in order,
/// `ask` and `take` for one by number.
class Flow {
 public:
  virtual ~Flow() = default;
  virtual std::optional<Delivery<Message>> next() = 0;
  virtual bool is_ready(std::chrono::milliseconds most) = 0;
  virtual void ask(std::int64_t number) = 0;
  virtual std::optional<Made<Message>> take() = 0;
  virtual std::int64_t epoch_size() const = 0;
  virtual FlowReport report() const = 0;
};

/// Checks the plan and that it ends in `yields`, and sets it running: all items in order. Throws
/// ConfigError for a plan or options that cannot work.
std::unique_ptr<Flow> start_in_order(Plan plan, const MessageType& yields,
                                     const FlowOptions& options);

/// The same for items by number; `wake` may be empty.
std::unique_ptr<Flow> start_by_number(Plan plan, const MessageType& yields,
                                      const FlowOptions& options, WakeUp wake);

}  // namespace millrace
