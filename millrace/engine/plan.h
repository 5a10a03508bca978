// What a pipeline declares, and whether its parts fit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace millrace
