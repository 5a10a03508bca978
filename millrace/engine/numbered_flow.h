// A flow that makes only the items that it is asked for, by number: what a data server runs.
//
//   auto flow = start_numbered_train_flow(options, stages, train, seed, share, start, wake);
//   flow->ask(7);
//   // ... wake() is called ...
//   while (auto made = flow->take()) send(*made);
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <vector>

#include "millrace/engine/dataflow.h"
#include "millrace/engine/skipped_sample.h"

namespace millrace {

/// What has become of a number that was asked for: an item or a failure.
template <class T>
struct Made {
  std::int64_t number = 0;
  std::optional<Delivery<T>> item;
  std::exception_ptr failure;          // where there is no item
  std::vector<SkippedSample> skipped;  // on its way
};

/// Called whenever one more number is ready, from a thread of the flow: it may write to an eventfd
/// or a pipe, but neither wait nor call the flow.
using WakeUp = std::function<void()>;

/// Item number k is what the k-th `next()` (from 0) of a DataFlow of the same data, seed, share and
/// start gives: the same bytes, cursor, epoch and progress, in whatever order numbers are asked
/// for, by any number of flows. Many are in work at once, bounded in samples and bytes as a
/// DataFlow is; what is asked for beyond that waits as a number. One thread at a time; destroying
/// the flow stops it, drops what was asked for and leaves no thread.
template <class T>
class NumberedFlow {
 public:
  virtual ~NumberedFlow() = default;
  /// Makes item `number`, once for each time that it is asked for. Returns at once. Where samples
  /// are grouped by key, the first number beyond all before it costs the look at the keys in
  /// between, in the flow's own threads. Throws std::invalid_argument for a number below 0.
  virtual void ask(std::int64_t number) = 0;
  /// What is ready and not taken yet, in the order of asking; nothing where none is. Never waits.
  /// Samples that were left out are counted and told, but end nothing: max_skipped is for whoever
  /// sees all items (`Made::skipped`).
  virtual std::optional<Made<T>> take() = 0;
  /// Samples of one epoch, over all ranks.
  virtual std::int64_t epoch_size() const = 0;
  virtual FlowReport report() const = 0;
};

}  // namespace millrace
