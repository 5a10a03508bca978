// Finds the operator that produced the first non-finite value, through libtorch's operator
// callbacks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/models/weights/safetensors.h"

namespace millrace::cli {

struct BadOperator {
  std::string name;     // "aten::div"
  std::string inputs;   // shapes of its input tensors: "(2, 256, 7, 7), (1)"
  std::string outputs;  // shapes of its results; empty if an input was already non-finite
  std::string node;     // backward node that ran it: "DivBackward0"; empty = forward pass
  std::vector<std::string> weights;  // the model's weights among its inputs, also converted ones
  std::vector<std::string> bad_weights;  // those of `weights` that were non-finite at the start
};

/// Watches every operator that its thread runs, backward passes included, during this object's
/// lifetime. Only one watch may exist at a time. It checks all values, so it is slow. Meanwhile the
/// memory of new tensors is zeroed, so that values not yet written are finite.
class BadOperatorWatch {
 public:
  explicit BadOperatorWatch(const NamedTensors& model);
  BadOperatorWatch(const BadOperatorWatch&) = delete;
  ~BadOperatorWatch();

  /// Returns the first operator whose results were not finite although its inputs were; weights
  /// that were not finite at the start are ignored as inputs. If no operator produced the first
  /// non-finite value, returns the operator that received it.
  std::optional<BadOperator> first() const;

 private:
  std::uint64_t handle_;
};

}  // namespace millrace::cli
