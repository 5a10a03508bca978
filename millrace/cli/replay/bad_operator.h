// Where values stop being finite: the operator that made the first one, as libtorch reports them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/weights/safetensors.h"

namespace millrace::cli {

struct BadOperator {
  std::string name;     // "aten::div"
  std::string inputs;   // shapes of its tensors: "(2, 256, 7, 7), (1)"
  std::string outputs;  // the same; empty where it made nothing bad but was given it
  /// The node of the backward pass in which it ran: "DivBackward0"; empty: it ran in the forward
  /// pass.
  std::string node;
  /// The model's weights that it was given, as they are or converted.
  std::vector<std::string> weights;
  std::vector<std::string> bad_weights;  // those of them that were not finite to begin with
};

/// Watches every operator that the thread which made it runs, its backward passes included, for as
/// long as it lives; one at a time. Looks at all values, so it is slow. New tensors' memory is
/// zeroed meanwhile, so that what has not been written yet is finite.
class BadOperatorWatch {
 public:
  /// `model`: its tensors by name.
  explicit BadOperatorWatch(const NamedTensors& model);
  BadOperatorWatch(const BadOperatorWatch&) = delete;
  ~BadOperatorWatch();

  /// The first operator whose results were not finite though its inputs were, except for weights
  /// that were not finite to begin with. Where something that is no operator made the first bad
  /// value, the operator that was given it.
  std::optional<BadOperator> first() const;

 private:
  std::uint64_t handle_;
};

}  // namespace millrace::cli
