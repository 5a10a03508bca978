// A model's gradients in a few large buckets, which are summed over the ranks during the backward
// pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "millrace/models/weights/parameters.h"
#include "millrace/trainer/cluster/gradient_sync.h"

namespace millrace {

/// The sum of `count` tensors that arrive in any order. It is added as one balanced tree (tree_sum)
/// while they arrive, so that few are held at a time. An undefined tensor counts as zeros if
/// another one is defined.
class TensorTree {
 public:
  explicit TensorTree(std::size_t count);

  /// Adds `more` to the tensor of this number.
  void add(std::size_t number, const at::Tensor& more);
  /// Marks the tensor of this number as final.
  void complete(std::size_t number);
  bool is_complete(std::size_t number) const { return nodes_[places_[number]].is_complete; }

  /// Returns the sum; undefined if all tensors were. Call when all numbers are complete.
  const at::Tensor& sum() const { return nodes_[1].value; }

 private:
  struct Node {
    at::Tensor value;
    bool is_complete = false, is_sum = false;
  };

  void place(std::size_t node, std::size_t count);

  std::vector<std::size_t> places_;  // node of each number
  /// Nodes of the tree: 1 is the root; 2 n and 2 n + 1 are the children of n.
  std::vector<Node> nodes_;
};

/// Buckets contain the parameters in reverse order, like the backward pass. A bucket's sum starts
/// when the bucket is full and the sums of all buckets before it have started, so that every rank
/// starts the same sums in the same order (Li et al. 2020, "PyTorch Distributed"). Adds hooks to
/// the parameters; borrows `sync`.
class GradientBuckets {
 public:
  static constexpr std::int64_t kFirstBytes = 1 << 20, kBytes = 25 << 20;

  /// `exchanged`: type of the gradients that are sent; sums over MPI are computed in fp32 in any
  /// case.
  GradientBuckets(const Parameters& parameters, GradientSync& sync, at::ScalarType exchanged,
                  std::int64_t first_bytes = kFirstBytes, std::int64_t bytes = kBytes);
  GradientBuckets(const GradientBuckets&) = delete;
  ~GradientBuckets();

  /// Begins a step whose micro-batches have `numbers` numbers (MicroBatchGroup). Gradients of the
  /// same number are added in the order of arrival, then those of all numbers as a tree.
  void begin(std::size_t numbers);

  /// Begins the backward passes of a group whose numbers start at `first`. `is_last`: no later pass
  /// adds to these numbers. When all numbers are complete, the gradients are summed over the ranks.
  void begin_group(std::size_t first, bool is_last) { first_ = first, is_last_ = is_last; }

  /// Call after the last group. Adds gradients that only earlier passes had, uses zeros for
  /// parameters without a gradient, and waits for all sums. Returns one character per trained
  /// parameter: '1' if it has a gradient on this rank, else '0'.
  std::string finish();

  /// Sets the sums as gradients of the parameters with a '1', in place; removes the gradients of
  /// the others.
  void set_gradients(const std::string& present) const;

  std::size_t count() const { return buckets_.size(); }

 private:
  struct Hook;
  struct Taker;

  struct Slot {
    at::Tensor value, sum;  // the parameter, and its view of the bucket
    std::size_t bucket = 0;
    bool is_filled = false;
    std::optional<TensorTree> tree;  // sum over the numbers; nullopt if there is only one
    const void* taker = nullptr;     // a hook of `value`
  };
  struct Bucket {
    at::Tensor values;  // gradients in fp32
    at::Tensor sent;    // gradients in the exchanged type; the same tensor as `values` for fp32
    std::size_t size = 0, filled = 0;
  };

  void take(std::size_t slot, const at::Tensor& gradient);
  void fill(std::size_t slot, const at::Tensor& gradient);
  void begin_sums();

  GradientSync& sync_;
  std::vector<Slot> slots_;  // in the order of the parameters
  std::vector<Bucket> buckets_;
  std::size_t begun_ = 0;  // number of buckets whose sum has begun
  std::size_t numbers_ = 1;
  std::size_t first_ = 0;  // first number of this group
  bool is_last_ = false;
  std::mutex mutex_;  // guards everything that backward passes change
};

}  // namespace millrace
