// A model's gradients in a few large buckets, summed over the ranks during the backward pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "millrace/trainer/cluster/gradient_sync.h"
#include "millrace/weights/parameters.h"

namespace millrace {

/// The last parameters come first, as in the backward pass. A bucket's sum begins once it is full
/// and all buckets before it have begun, so that every rank begins the same sums in the same order
/// (Li et al. 2020, "PyTorch Distributed"). Hooks the parameters; borrows `sync`.
class GradientBuckets {
 public:
  static constexpr std::int64_t kFirstBytes = 1 << 20, kBytes = 25 << 20;

  /// `exchanged`: the type in which gradients travel; sums over MPI are in fp32 all the same.
  GradientBuckets(const Parameters& parameters, GradientSync& sync, at::ScalarType exchanged,
                  std::int64_t first_bytes = kFirstBytes, std::int64_t bytes = kBytes);
  GradientBuckets(const GradientBuckets&) = delete;
  ~GradientBuckets();

  /// The next backward pass is the step's last: its gradients are summed.
  void collect();

  /// After that pass: adds gradients of earlier passes alone, and zeros for parameters without, and
  /// waits for all sums. Returns a '1' for each trained parameter with a gradient on this rank,
  /// else '0'.
  std::string finish();

  /// Makes the sums the gradients of the parameters with a '1', in place; the others get none.
  void hand_out(const std::string& present) const;

  std::size_t count() const { return buckets_.size(); }

 private:
  struct Hook;

  struct Slot {
    at::Tensor value, sum;  // the parameter, and its view of the bucket
    std::size_t bucket = 0;
    bool is_filled = false;
  };
  struct Bucket {
    at::Tensor values;  // fp32
    at::Tensor sent;    // of the exchanged type; `values` itself for fp32
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
