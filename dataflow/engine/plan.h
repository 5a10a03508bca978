// The declared parts of a pipeline, their checks, and how a flow is started.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/engine/stage.h"

namespace millrace {

/// Describes a sample before it is read, which suffices to plan groups. Thread-safe.
struct About {
  MessageType type;
  std::function<Message(std::int64_t sample)> of;
  std::function<std::string(std::int64_t sample)> name = {};  // for reports; empty = number
  // Memory of the sample after reading; empty, or returning 0 = unknown.
  std::function<std::size_t(std::int64_t sample)> bytes = {};
};

/// Declares a flow of `size` samples; the first stage takes their Index.
struct Plan {
  std::int64_t size = 0;
  std::vector<Stage> stages;
  // Average times per epoch that each sample is taken; empty = once.
  std::vector<double> repeats = {};
  std::optional<About> about = {};  // nullopt = samples have only a number
  // Called with each sample when it is issued, ahead of its turn by the samples in flight (see
  // Source).
  std::function<void(std::int64_t)> expect = {};

  /// Returns the group stage, or nullptr.
  const Group* group() const;
  /// Returns the samples of a group on one rank; a flow with fewer in flight would hang.
  std::int64_t batch() const;
};

/// Checks that the first stage takes an Index and each other stage takes what the one before it
/// yields; that at most one stage groups, by a key that the source can provide; and that at most
/// one is a cache, with no random stage before it. Throws ConfigError with the names of the stages.
void check(const Plan& plan);

/// Checks the plan, and that it ends in messages of type `wanted`. Throws ConfigError.
void check_yields(const Plan& plan, const MessageType& wanted);

/// Checks the plan and that it ends in `yields`, and starts a flow of untyped messages; start_flow
/// (pipeline.h) adds the type. Throws ConfigError for an invalid plan or options.
std::unique_ptr<DataFlow<Message>> start_untyped(Plan plan, const MessageType& yields,
                                                 const FlowOptions& options);
/// Starts a numbered flow in the same way. `wake` may be empty.
std::unique_ptr<NumberedFlow<Message>> start_untyped_numbered(Plan plan, const MessageType& yields,
                                                              const FlowOptions& options,
                                                              WakeUp wake);

}  // namespace millrace
