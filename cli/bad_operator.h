// Where values stop being finite: the operator that made the first one, as libtorch itself tells of them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace millrace::cli {

struct BadOperator {
  std::string name;     // "aten::div"
  std::string inputs;   // shapes of its tensors: "(2, 256, 7, 7), (1)"
  std::string outputs;  // the same; empty where it made nothing bad but was given it
  std::string
      node;  // of the backward pass, in which it ran: "DivBackward0"; empty: in the forward pass
};

/// Watches every operator that the thread which made it runs, its backward passes included, for as long as it lives;
/// one at a time. Looks at all values, so it is slow.
class BadOperatorWatch {
 public:
  /// `known`: memory of tensors that are not finite to begin with; to be given them is nobody's fault.
  explicit BadOperatorWatch(std::set<const void*> known);
  BadOperatorWatch(const BadOperatorWatch&) = delete;
  ~BadOperatorWatch();

  /// The first whose results were not finite though all that it was given was. Where something that is no operator made
  /// the first bad value, the one that was given it.
  std::optional<BadOperator> first() const;

 private:
  std::uint64_t handle_;
};

}  // namespace millrace::cli
