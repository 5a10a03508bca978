// A model's gradients in a few large pieces, which are summed over the ranks while the backward
// pass goes on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "millrace/trainer/cluster/gradient_sync.h"
#include "millrace/weights/parameters.h"

namespace millrace {

/// The gradients of all trained parameters in fixed buckets, those of the last parameters first,
/// since the backward pass comes to them first. A bucket's sum begins once all its gradients are
/// there and all buckets before it have begun, so that every rank begins the same sums in the same
/// order (Li et al. 2020, "PyTorch Distributed"). Hooks the parameters; borrows `sync`.
class GradientBuckets {
 public:
  static constexpr std::int64_t kFirstBytes = 1 << 20, kBytes = 25 << 20;

  /// `exchanged` is the type in which gradients travel; sums over MPI are fp32 whatever it is, and
  /// come back in it.
  GradientBuckets(const Parameters& parameters, GradientSync& sync, at::ScalarType exchanged,
                  std::int64_t first_bytes = kFirstBytes, std::int64_t bytes = kBytes);
  GradientBuckets(const GradientBuckets&) = delete;
  ~GradientBuckets();

  /// The backward pass that comes now is the step's last one: what it leaves is summed.
  void collect();

  /// After it: takes in what was left of earlier backward passes alone, and zeros where there is no
  /// gradient at all, and returns when all sums are there. Returns, for each trained parameter, '1'
  /// where this rank has a gradient, else '0'.
  std::string finish();

  /// Makes the sums the gradients, in place, of the parameters with a '1'; the others have none.
  void hand_out(const std::string& present) const;

  std::size_t count() const { return buckets_.size(); }

 private:
  struct Hook;

  struct Slot {
    at::Tensor value, sum;  // the parameter, and its part of the bucket in the parameter's layout
    std::size_t bucket = 0;
    bool is_filled = false;
  };
  struct Bucket {
    at::Tensor values;  // fp32
    at::Tensor sent;    // of the type that is exchanged; `values` where that is fp32
    std::size_t size = 0, filled = 0;
  };

  void fill(std::size_t slot);
  void begin_sums();

  GradientSync& sync_;
  std::vector<Slot> slots_;  // as the parameters
  std::vector<Bucket> buckets_;
  std::size_t begun_ = 0;  // buckets whose sum has begun
  bool collects_ = false;
};

}  // namespace millrace
