// The interface between a flow of data and its consumer: options, and items in order or by number.
//
//   auto flow = start_numbered_train_flow(options, stages, train, seed, share, start, wake);
//   flow->ask(7);
//   // ... wake() is called ...
//   while (auto made = flow->take()) send(*made);
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// A place in a flow. Restarting there gives the items that would have been next, byte for byte.
struct Cursor {
  /// The first position not yet taken: epoch * size + place in the epoch.
  std::int64_t next = 0;
  /// Positions before `next` that wait in incomplete groups, ascending.
  std::vector<std::int64_t> pending;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// An item with its place in the flow.
template <class T>
struct Delivery {
  T value;
  /// The place after this item.
  Cursor cursor;
  /// Epoch of the item's first member.
  std::int64_t epoch = 0;
  /// Epochs up to and including this item, over all ranks.
  double progress = 0;
  /// From 0 at the start; the same step has the same number on all ranks.
  std::int64_t number = 0;
};

/// What one stage has done since the flow started.
struct StageReport {
  std::string name;
  std::int64_t items = 0;
  double busy_s = 0;         // summed over threads
  std::int64_t waiting = 0;  // items that wait for it now
};

/// What one thread of a flow works on.
struct StageWork {
  std::string stage;
  std::string sample;  // its name if the source knows one, else its number; the first of a group
  double seconds = 0;  // since it began
};

struct FlowReport {
  std::vector<StageReport> stages;
  std::int64_t skipped = 0;                  // samples, by the fault policy
  std::vector<std::string> skipped_reasons;  // the first few
  std::int64_t filtered = 0;                 // samples that filters rejected
  double wait_s = 0;                         // time the consumer has spent in next()
  std::vector<StageWork> in_work;            // now, the longest first
};

/// A running flow, for one consumer thread. Destroying it stops it and leaves no thread.
template <class T>
class DataFlow {
 public:
  virtual ~DataFlow() = default;
  /// The next item, in order; nullopt after the last epoch. Rethrows the exception of a stage at
  /// its place in the order.
  virtual std::optional<Delivery<T>> next() = 0;
  /// Whether `next` would return at once, after waiting up to this long; true if unknown.
  virtual bool is_ready(std::chrono::milliseconds) { return true; }
  /// Samples of one epoch, over all ranks.
  virtual std::int64_t epoch_size() const = 0;
  virtual FlowReport report() const = 0;
};

/// A sample that could not be used. Epoch and place (see Turn::name) identify it, so that one which
/// is drawn again, to replace another, counts once.
struct SkippedSample {
  std::int64_t epoch = 0;
  std::uint64_t place = 0;
  std::int64_t sample = 0;  // its number in the source
  std::string why;
};

/// The answer to a number that was asked for: an item or a failure.
template <class T>
struct Made {
  std::int64_t number = 0;
  std::optional<Delivery<T>> item;
  std::exception_ptr failure;          // if there is no item
  std::vector<SkippedSample> skipped;  // on the way
};

/// Called when one more number is ready, from a thread of the flow: it may write to an eventfd or a
/// pipe, but must not wait or call the flow.
using WakeUp = std::function<void()>;

/// Item k is the k-th (from 0) of a DataFlow with the same data, seed, share and start: the same
/// bytes, cursor, epoch and progress, in whatever order and by how many flows numbers are asked
/// for. Samples and bytes in flight are bounded as in a DataFlow. Not thread-safe. Destroying it
/// stops it and leaves no thread.
template <class T>
class NumberedFlow {
 public:
  virtual ~NumberedFlow() = default;
  /// Makes item `number`, each time that it is asked for. Returns at once. With groups by key, a
  /// number beyond all before costs looking up the keys in between, in the flow's threads. Throws
  /// std::invalid_argument for a number below 0.
  virtual void ask(std::int64_t number) = 0;
  /// The next answer that is ready, in the order of asking, or nullopt. Never waits. Skipped
  /// samples are counted and reported (`Made::skipped`), but max_skipped is for the consumer to
  /// check.
  virtual std::optional<Made<T>> take() = 0;
  /// Samples of one epoch, over all ranks.
  virtual std::int64_t epoch_size() const = 0;
  virtual FlowReport report() const = 0;
};

/// What happens to a sample for which a stage throws DataError.
enum class OnError {
  skip,     // it is left out, counted and reported
  fail,     // the error reaches the consumer at the sample's place in the order
  replace,  // the next usable sample replaces it; counted and reported too
};
inline std::vector<std::string> value_names(OnError) { return {"skip", "fail", "replace"}; }

/// What happens to incomplete groups at the end of an epoch.
enum class Partial {
  /// They stay incomplete. A group that has lost all its members is skipped.
  keep,
  /// Their members wait for the next epoch: groups are always full (except the last of a flow that
  /// ends). A group that has lost all its members gets the next usable sample.
  wrap,
};

/// The part of a flow that one of several ranks takes.
struct Share {
  std::int64_t rank = 0, ranks = 1;
};

/// How an order shuffles.
struct Shuffle {
  bool on = false;
  // > 0: only windows of this many neighbours, and the samples inside each
  std::int64_t window = 0;
};

struct FlowOptions {
  std::uint64_t seed = 1;
  /// Another permutation each epoch; otherwise 0, 1, 2, ...
  Shuffle shuffle;
  /// Groups have `ranks` times as many members; this flow takes part `rank` of each.
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  /// 0: endless.
  std::int64_t epochs = 1;
  Partial partial = Partial::keep;
  /// Threads of the graph; 0: all cores.
  int threads = 0;
  /// Samples between source and consumer; 0: enough to keep all threads busy.
  std::int64_t in_flight = 0;
  /// Maximum bytes of their messages (but at least one group); 0: no bound.
  std::int64_t in_flight_bytes = 0;
  OnError on_error = OnError::skip;
  /// Share of an epoch's samples that may be skipped; more is an Error.
  double max_skipped = 0.1;
  /// The place to continue at.
  Cursor start;
};

}  // namespace millrace
