// A model's gradients in a few large buckets, summed over the ranks during the backward pass.
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

/// A sum of `count` tensors that come in any order, added as one balanced tree (tree_sum) while
/// they come, so that few are held at a time. One that is undefined counts as zeros where another
/// is not.
class TensorTree {
 public:
  explicit TensorTree(std::size_t count);

  /// Adds to what the number has so far.
  void add(std::size_t number, const at::Tensor& more);
  /// Nothing more comes for the number.
  void complete(std::size_t number);
  bool is_complete(std::size_t number) const { return nodes_[places_[number]].is_complete; }

  /// Once all numbers are complete: the sum, undefined if all were.
  const at::Tensor& sum() const { return nodes_[1].value; }

 private:
  struct Node {
    at::Tensor value;
    bool is_complete = false, is_sum = false;
  };

  void place(std::size_t node, std::size_t count);

  std::vector<std::size_t> places_;  // of the numbers
  std::vector<Node> nodes_;          // 1 is the root, 2 n and 2 n + 1 come below n
};

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

  /// A step begins whose micro-batches have `numbers` numbers (MicroBatchGroup). Gradients of one
  /// number are added as they come, then those of all numbers as a tree.
  void begin(std::size_t numbers);

  /// The backward passes that follow are those of a group whose numbers count from `first`. With
  /// `is_last` nothing comes for these numbers afterwards; once all have had theirs, gradients are
  /// summed over the ranks.
  void begin_group(std::size_t first, bool is_last) { first_ = first, is_last_ = is_last; }

  /// After the last group: adds gradients of earlier passes alone, and zeros for parameters
  /// without, and waits for all sums. Returns a '1' for each trained parameter with a gradient on
  /// this rank, else '0'.
  std::string finish();

  /// Makes the sums the gradients of the parameters with a '1', in place; the others get none.
  void hand_out(const std::string& present) const;

  std::size_t count() const { return buckets_.size(); }

 private:
  struct Hook;
  struct Taker;

  struct Slot {
    at::Tensor value, sum;  // the parameter, and its view of the bucket
    std::size_t bucket = 0;
    bool is_filled = false;
    std::optional<TensorTree> tree;  // of the numbers, if there are several
    const void* taker = nullptr;     // a hook of `value`
  };
  struct Bucket {
    at::Tensor values;  // fp32
    at::Tensor sent;    // of the exchanged type; `values` itself for fp32
    std::size_t size = 0, filled = 0;
  };

  void take(std::size_t slot, const at::Tensor& gradient);
  void fill(std::size_t slot, const at::Tensor& gradient);
  void begin_sums();

  GradientSync& sync_;
  std::vector<Slot> slots_;  // as the parameters
  std::vector<Bucket> buckets_;
  std::size_t begun_ = 0;  // buckets whose sum has begun
  std::size_t numbers_ = 1;
  std::size_t first_ = 0;  // of this group
  bool is_last_ = false;
  std::mutex mutex_;  // of all that backward passes change
};

}  // namespace millrace
