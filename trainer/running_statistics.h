// The tensors that a step's losses change although they are not trained: means and variances of
// batch norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <vector>

#include "millrace/models/weights/parameters.h"

namespace millrace {

/// A model's buffers, and a copy from before the step. A few operators each, however many there
/// are. Borrows the tensors.
class RunningStatistics {
 public:
  explicit RunningStatistics(const Parameters& parameters);

  bool empty() const { return kinds_.empty(); }

  /// Remembers the values.
  void keep();

  /// One number on their device: 1 if any has changed since `keep` (or is NaN), else 0. REQUIRES:
  /// not empty().
  at::Tensor moved();

  /// The bytes of the values that `moved` has seen.
  std::string bytes() const;

  /// Replaces the values by such bytes of another rank.
  void set(std::string_view bytes);

  /// Replaces the values by those of `keep`.
  void restore();

 private:
  /// All of one type, as one tensor.
  struct Kind {
    std::vector<at::Tensor> values;
    at::Tensor before, now;
  };

  static at::Tensor joined(const std::vector<at::Tensor>& values);
  static void divide(const at::Tensor& joined, const std::vector<at::Tensor>& values);

  std::vector<Kind> kinds_;
};

}  // namespace millrace
