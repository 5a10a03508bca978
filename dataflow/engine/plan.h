// What a pipeline declares, whether its parts fit, and how it is started.
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

/// What a source knows about a sample before reading it: groups are planned by that. Thread-safe.
struct About {
  MessageType type;
  std::function<Message(std::int64_t sample)> of;
  std::function<std::string(std::int64_t sample)> name = {};  // for reports; empty: its number
  // Memory that the sample takes once it is read; 0, and empty: unknown
  std::function<std::size_t(std::int64_t sample)> bytes = {};
};

/// `size` samples, of which the first stage takes the Index.
struct Plan {
  std::int64_t size = 0;
  std::vector<Stage> stages;
  // How often each sample is taken per epoch, on average; empty: once
  std::vector<double> repeats = {};
  std::optional<About> about = {};  // nullopt: samples have only a number
  // Told of each sample when it is issued, as many ahead of its turn as are in flight (see Source)
  std::function<void(std::int64_t)> expect = {};

  /// The group stage, or nullptr.
  const Group* group() const;
  /// Samples of a group on one rank: with fewer in flight a flow would hang.
  std::int64_t batch() const;
};

/// Checks that each stage takes what the one before it yields, and the first an Index; that at most
/// one groups, by what the source knows, and at most one is a cache, after no stage that draws at
/// random. Throws ConfigError naming the stages.
void check(const Plan& plan);

/// Checks the plan, and that it ends in messages of type `wanted`. Throws ConfigError.
void check_yields(const Plan& plan, const MessageType& wanted);

/// Checks the plan and that it ends in `yields`, and starts a flow of untyped messages; start_flow
/// (pipeline.h) gives them their type. Throws ConfigError for a plan or options that cannot work.
std::unique_ptr<DataFlow<Message>> start_untyped(Plan plan, const MessageType& yields,
                                                 const FlowOptions& options);
/// The same for items by number. `wake` may be empty.
std::unique_ptr<NumberedFlow<Message>> start_untyped_numbered(Plan plan, const MessageType& yields,
                                                              const FlowOptions& options,
                                                              WakeUp wake);

}  // namespace millrace
