// What a pipeline declares, whether its parts fit, and how it is set running.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "millrace/engine/dataflow.h"
#include "millrace/engine/stage.h"

namespace millrace {

/// What a source can say of a sample before anything is made of it: by that groups are planned. Any
/// thread may ask.
struct About {
  MessageType type;
  std::function<Message(std::int64_t sample)> of;
  std::function<std::string(std::int64_t sample)> name = {};  // for reports; empty: its number
};

/// `size` samples, of which the first stage takes the Index.
struct Plan {
  std::int64_t size = 0;
  std::vector<Stage> stages;
  // How often each sample comes an epoch, on average; empty: once
  std::vector<double> repeats = {};
  std::optional<About> about = {};  // nothing: samples are known by their number alone

  /// The stage that groups; nullptr: none.
  const Group* group() const;
  /// Samples of a group on one rank, and so the fewest in flight with which a flow cannot hang.
  std::int64_t batch() const;
};

/// Checks that each stage takes what the one before it yields, that the first takes an Index, that
/// at most one groups, by what the source can say, one is a cache and no stage before that draws at
/// random. Throws ConfigError naming the stages.
void check(const Plan& plan);

/// Checks the plan, and that it ends in messages of type `wanted`. Throws ConfigError.
void check_yields(const Plan& plan, const MessageType& wanted);

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
