// Tensors that a step's losses change without training them: running means and variances of batch
// norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <vector>

#include "millrace/models/weights/parameters.h"

namespace millrace {

/// Holds a model's buffers and a copy of their values from before the step. Each operation takes a
/// few operators, regardless of the number of buffers. Borrows the tensors.
class RunningStatistics {
 public:
  explicit RunningStatistics(const Parameters& parameters);

  bool empty() const { return kinds_.empty(); }

  /// Copies the current values for moved() and restore().
  void keep();

  /// Returns one number on the buffers' device: 1 if any value has changed since keep() or is NaN,
  /// else 0. REQUIRES: not empty().
  at::Tensor moved();

  /// Returns the bytes of the values that the last moved() read.
  std::string bytes() const;

  /// Sets the values to `bytes`, the result of bytes() on another rank.
  void set(std::string_view bytes);

  /// Restores the values copied by keep().
  void restore();

 private:
  /// The buffers of one type, concatenated to one tensor.
  struct Kind {
    std::vector<at::Tensor> values;
    at::Tensor before, now;
  };

  static at::Tensor joined(const std::vector<at::Tensor>& values);
  static void divide(const at::Tensor& joined, const std::vector<at::Tensor>& values);

  std::vector<Kind> kinds_;
};

}  // namespace millrace
