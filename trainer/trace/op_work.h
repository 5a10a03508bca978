// The least that an operator has to do: its arithmetic and the memory it reads and writes.
#pragma once

#include <ATen/record_function.h>

namespace millrace {

struct OpWork {
  // Of convolutions and matrix products, a multiplication and an addition being two; of others 0
  double flops = 0;
  double bytes = 0;  // of the tensors that it is given and gives back, each once

  OpWork& operator+=(const OpWork& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// Counts the work of one call, within an observer that asks for inputs and outputs.
class OpWorkCount {
 public:
  /// Where the call begins: inputs are there only then.
  explicit OpWorkCount(const at::RecordFunction& call);
  /// Where it ends.
  OpWork with_outputs(const at::RecordFunction& call) const;

 private:
  OpWork of_inputs_;
  double flops_per_value_ = 0;  // of the output
};

}  // namespace millrace
