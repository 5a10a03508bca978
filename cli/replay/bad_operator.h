// Where values stop being finite: the operator that made the first one, as libtorch reports them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/models/weights/safetensors.h"

namespace millrace::cli {

struct BadOperator {
  std::string name;     // "aten::div"
  std::string inputs;   // shapes of its tensors: "(2, 256, 7, 7), (1)"
  std::string outputs;  // likewise; empty where its inputs were bad already
  std::string node;  // of the backward pass, in which it ran: "DivBackward0"; empty: forward pass
  std::vector<std::string> weights;      // of the model, that it was given, converted or not
  std::vector<std::string> bad_weights;  // those among them that were not finite to begin with
};

/// While it lives, watches every operator that its thread runs, backward passes included; one watch
/// at a time. It looks at all values, so it is slow. Meanwhile memory of new tensors is zeroed, so
/// that values not yet written are finite.
class BadOperatorWatch {
 public:
  explicit BadOperatorWatch(const NamedTensors& model);
  BadOperatorWatch(const BadOperatorWatch&) = delete;
  ~BadOperatorWatch();

  /// The first operator whose results were not finite although its inputs were (weights that were
  /// not finite to begin with do not count). Where no operator made the first bad value, the
  /// operator that was given it.
  std::optional<BadOperator> first() const;

 private:
  std::uint64_t handle_;
};

}  // namespace millrace::cli
