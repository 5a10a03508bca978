// The interface between a data flow and its consumer: options, and items in order or by number.
//
//   auto flow = start_numbered_train_flow(options, stages, train, seed, share, start, wake);
//   flow->ask(7);
//   // ... wake() is called ...
//   while (auto made = flow->take()) send(*made);
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// A place in a flow. A flow restarted there yields the remaining items byte for byte.
struct Cursor {
  /// First position not yet taken: epoch * size + place in the epoch.
  std::int64_t next = 0;
  /// Positions before `next` that wait in incomplete groups, ascending.
  std::vector<std::int64_t> pending;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// An item with its place in the flow.
template <class T>
struct Delivery {
  T value;
  /// Place after this item.
  Cursor cursor;
  /// Epoch of the item's first member.
  std::int64_t epoch = 0;
  /// Epochs up to and including this item, over all ranks.
  double progress = 0;
  /// Number from 0 at the start; the same step has the same number on all ranks.
  std::int64_t number = 0;
};

/// The work of one stage since the flow started.
struct StageReport {
  std::string name;
  std::int64_t items = 0;
  double busy_s = 0;         // seconds of work, summed over threads
  std::int64_t waiting = 0;  // items that now wait for this stage
};

/// The work in progress on one thread of a flow.
struct StageWork {
  std::string stage;
  std::string sample;  // name if the source has one, else number; for a group, its first sample
  double seconds = 0;  // since this work began
};

struct FlowReport {
  std::vector<StageReport> stages;
  std::int64_t skipped = 0;                  // samples skipped by the fault policy
  std::vector<std::string> skipped_reasons;  // the first few
  std::int64_t filtered = 0;                 // samples rejected by filters
  double wait_s = 0;                         // time that the consumer has spent in next()
  std::vector<StageWork> in_work;            // current work, longest first
};

/// A running flow for one consumer thread. The destructor stops it and leaves no thread running.
template <class T>
class DataFlow {
 public:
  virtual ~DataFlow() = default;
  /// Returns the next item in order; nullopt after the last epoch. Rethrows the exception of a
  /// stage at its place in the order.
  virtual std::optional<Delivery<T>> next() = 0;
  /// Waits up to this long; returns true if `next` would then return at once, or if unknown.
  virtual bool is_ready(std::chrono::milliseconds) { return true; }
  /// Returns the number of samples in one epoch, over all ranks.
  virtual std::int64_t epoch_size() const = 0;
  virtual FlowReport report() const = 0;
};

/// A sample that could not be used. Epoch and place (see Turn::random_stream) identify it, so that
/// a sample drawn again as a replacement counts once.
struct SkippedSample {
  std::int64_t epoch = 0;
  std::uint64_t place = 0;
  std::int64_t sample = 0;  // number in the source
  std::string why;
};

/// The answer to one requested number: an item or a failure.
template <class T>
struct Made {
  std::int64_t number = 0;
  std::optional<Delivery<T>> item;
  std::exception_ptr failure;          // set if there is no item
  std::vector<SkippedSample> skipped;  // samples skipped while making it
};

/// Called from a thread of the flow when one more number is ready. It may write to an eventfd or a
/// pipe, but must not block or call the flow.
using WakeUp = std::function<void()>;

/// Makes items by number. Item k is the k-th (from 0) of a DataFlow with the same data, seed, share
/// and start: the same bytes, cursor, epoch and progress, whatever the order of
/// requests and the number of flows. Samples and bytes in flight are bounded as in a DataFlow. Not
/// thread-safe. The destructor stops the flow and leaves no thread running.
template <class T>
class NumberedFlow {
 public:
  virtual ~NumberedFlow() = default;
  /// Requests item `number`; each request makes it once. Returns at once. With groups by key, a
  /// number beyond all earlier ones costs looking up the keys in between, in the flow's threads.
  /// Throws std::invalid_argument for a number below 0.
  virtual void ask(std::int64_t number) = 0;
  /// Returns the next answer that is ready, in the order of requests, or nullopt. Never waits.
  /// Skipped samples are counted and reported (`Made::skipped`); the consumer must check
  /// max_skipped.
  virtual std::optional<Made<T>> take() = 0;
  /// Returns the number of samples in one epoch, over all ranks.
  virtual std::int64_t epoch_size() const = 0;
  virtual FlowReport report() const = 0;
};

/// The fault policy for a sample for which a stage throws DataError.
enum class OnError {
  skip,     // leave it out, count and report it
  fail,     // pass the error to the consumer at the sample's place in the order
  replace,  // replace it with the next usable sample; also count and report it
};
inline std::vector<std::string> value_names(OnError) { return {"skip", "fail", "replace"}; }

/// The policy for incomplete groups at the end of an epoch.
enum class Partial {
  /// Yield incomplete groups. A group that has lost all its members is skipped.
  keep,
  /// Carry members over to the next epoch, so that groups are always full (except the last of a
  /// flow that ends). A group that has lost all its members gets the next usable sample.
  wrap,
};

/// The part of a flow that belongs to one of several ranks.
struct Share {
  std::int64_t rank = 0, ranks = 1;
};

/// The kind of shuffling.
struct Shuffle {
  bool on = false;
  // Samples per window; windows and the samples inside each are shuffled. 0 = full shuffle.
  std::int64_t window = 0;
};

struct FlowOptions {
  std::uint64_t seed = 1;
  /// Shuffling with a new permutation each epoch; without it the order is 0, 1, 2, ...
  Shuffle shuffle;
  /// Groups have `ranks` times as many members; this flow takes part `rank` of each.
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  /// Epochs; 0 = endless.
  std::int64_t epochs = 1;
  Partial partial = Partial::keep;
  /// Threads of the graph; 0 = all cores.
  int threads = 0;
  /// Maximum samples between source and consumer; 0 = enough to keep all threads busy.
  std::int64_t in_flight = 0;
  /// Maximum bytes of their messages, at least one group; 0 = unlimited.
  std::int64_t in_flight_bytes = 0;
  OnError on_error = OnError::skip;
  /// Fraction of an epoch's samples that may be skipped; more is an Error.
  double max_skipped = 0.1;
  /// Place to continue at.
  Cursor start;
};

/// Returns the number of steps of `images_per_step` (the last may have fewer) for `epochs` epochs
/// of `samples`.
inline std::int64_t count_steps(double epochs, std::int64_t samples, std::int64_t images_per_step) {
  return static_cast<std::int64_t>(
      std::ceil(epochs * static_cast<double>(samples) / static_cast<double>(images_per_step)));
}

}  // namespace millrace
