// The micro-batches that a rank computes side by side (train.micro_batch).
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/models/detector/rank_sum.h"

namespace millrace {

/// Runs the micro-batches of a rank's batch, each on a thread of its own with as many maths threads
/// as the process has been given and the caller's stream of the device, and lets them meet on the
/// way: for a sum that each needs before it can go on. So each is computed as if it were alone, and
/// yet all normalise by the same statistics and divide by the same totals.
///
/// A backward pass on a device must not come to a meeting: libtorch runs those of all micro-batches
/// on one thread, which would wait for itself.
class MicroBatches {
 public:
  /// At most `at_once` of the `count` compute at the same time. One alone runs on the caller's
  /// thread.
  MicroBatches(std::size_t count, std::size_t at_once, at::Device device = at::kCPU);
  MicroBatches(const MicroBatches&) = delete;

  std::size_t count() const { return count_; }

  /// Calls work(number) for each and waits for all. Throws what the first that failed has thrown,
  /// once the others have ended or come to a meeting.
  void run(const std::function<void(std::size_t number)>& work);

  /// The number of the micro-batch that this thread computes, also where it is libtorch's and runs
  /// a backward pass; 0: none.
  static std::size_t current();

  /// Within `run`: waits for all; what `joined` makes of what each gives, by number, is returned to
  /// each. It is called once, on any of the threads. T: copyable. `what` names the meeting. Throws
  /// Error if another has failed, has ended or is in another meeting.
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
  std::vector<void*> given_;  // in a meeting
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t computing_ = 0, arrived_ = 0, ended_ = 0, meetings_ = 0;
  std::string_view what_;  // the meeting that the first has come to
  std::exception_ptr failure_;
};

/// Sums over the micro-batches of all ranks, for one of them: as a tree here, then over the ranks.
/// Throws ConfigError on a device where this rank has several: the backward passes would meet.
class MicroBatchSum final : public RankSum {
 public:
  /// Borrows both. `over_ranks` replaces a sum of this rank by that of all.
  MicroBatchSum(MicroBatches& all, RankSum& over_ranks) : all_(all), over_ranks_(over_ranks) {}

  void operator()(const at::Tensor& values) override;
  bool moves_statistics() override;

  /// Whether running statistics have followed a sum.
  bool has_moved_statistics() const { return has_moved_; }

 private:
  MicroBatches& all_;
  RankSum& over_ranks_;
  std::atomic<bool> has_moved_ = false;
};

}  // namespace millrace
