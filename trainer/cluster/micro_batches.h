// Computes the micro-batches of a rank concurrently (train.micro_batch).
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "millrace/models/detector/rank_sum.h"

namespace millrace {

/// Runs the micro-batches of a rank's batch, each on its own thread, with the process's number of
/// compute threads and on the caller's stream of the device. Micro-batches can wait for each other
/// in join(), for a sum that each needs before it continues. So each is computed as if it were
/// alone, but all normalize by the same statistics and divide by the same totals.
///
/// A backward pass on a device must not call join(): libtorch runs the backward passes of all
/// micro-batches on one thread, which would deadlock.
class MicroBatches {
 public:
  /// Up to `at_once` of the `count` micro-batches compute at the same time. A single one runs on
  /// the caller's thread.
  MicroBatches(std::size_t count, std::size_t at_once, at::Device device = at::kCPU);
  MicroBatches(const MicroBatches&) = delete;

  std::size_t count() const { return count_; }

  /// Calls work(number) for each micro-batch and waits for all. Rethrows the first exception after
  /// the other micro-batches have ended or reached a join().
  void run(const std::function<void(std::size_t number)>& work);

  /// Returns the number of the micro-batch that this thread computes, also on libtorch's threads
  /// that run its backward pass; 0 if none.
  static std::size_t current();

  /// Call within run(): waits for all micro-batches, passes their values by number to `joined`, and
  /// returns its result to each. `joined` is called once, on any of the threads. T must be
  /// copyable. `what` names the join in messages. Throws Error if another micro-batch has failed,
  /// has ended or is in another join.
  template <class T, class Join>
  T join(std::string_view what, T mine, const Join& joined) {
    given_[current()] = &mine;
    meet(what, [&] {
      std::vector<T> all;
      for (auto* one : given_) all.push_back(*static_cast<T*>(one));
      const T result = joined(all);
      for (auto* one : given_) *static_cast<T*>(one) = result;
    });
    return mine;
  }

 private:
  void meet(std::string_view what, const std::function<void()>& together);
  void fail(std::exception_ptr why);

  const std::size_t count_, at_once_;
  const at::Device device_;
  std::vector<void*> given_;  // values of a join
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t computing_ = 0, arrived_ = 0, ended_ = 0, meetings_ = 0;
  std::string_view what_;  // name of the join that the first micro-batch has reached
  std::exception_ptr failure_;
};

/// Sums over the micro-batches of all ranks for one micro-batch: as a tree on this rank, then over
/// the ranks. Throws ConfigError if this rank has several micro-batches on a device, since their
/// backward passes would join.
class MicroBatchSum final : public RankSum {
 public:
  /// Borrows its arguments. `over_ranks` replaces a sum of this rank by the sum of all ranks.
  MicroBatchSum(MicroBatches& all, RankSum& over_ranks) : all_(all), over_ranks_(over_ranks) {}

  void operator()(const at::Tensor& values) override;
  bool updates_statistics() override;

  /// Returns true if running statistics have followed a sum.
  bool has_moved_statistics() const { return has_moved_; }

 private:
  MicroBatches& all_;
  RankSum& over_ranks_;
  std::atomic<bool> has_moved_ = false;
};

}  // namespace millrace
