// The minimum work of an operator: its arithmetic, and the memory that it reads and writes.
#pragma once

#include <ATen/record_function.h>

namespace millrace {

struct OpWork {
  // Operations of convolutions and matrix products (a multiply-add counts as two); 0 for others.
  double flops = 0;
  double bytes = 0;  // bytes of all input and output tensors, each counted once

  OpWork& operator+=(const OpWork& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// Counts the work of one call, within an observer that requests inputs and outputs.
class OpWorkCount {
 public:
  /// Call at the begin of the operator, when its inputs are available.
  explicit OpWorkCount(const at::RecordFunction& call);
  /// Call at the end of the operator.
  OpWork with_outputs(const at::RecordFunction& call) const;

 private:
  OpWork of_inputs_;
  double flops_per_value_ = 0;  // operations per value of the output
};

}  // namespace millrace
