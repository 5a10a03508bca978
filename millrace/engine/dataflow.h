// The edge between a flow of data and whoever consumes it: how it runs, and its items, pulled in
// order or asked for by number.
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

/// A place in a flow. Restarting there gives the items that would have come next, byte for byte.
struct Cursor {
  /// The first position that no item so far has taken: epoch * size + place in the epoch.
  std::int64_t next = 0;
  /// Positions before `next` that wait in half-filled groups, ascending.
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
  /// Epochs of samples taken up to and including this item, over all ranks.
  double progress = 0;
  /// 0 for the first item after the start; the same step has the same number on all ranks.
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
  /// The sample's name where the source knows one, else its number; the first sample of a group.
  std::string sample;
  /// Seconds since it began.
  double seconds = 0;
};

struct FlowReport {
  std::vector<StageReport> stages;
  std::int64_t skipped = 0;                  // samples left out by the fault policy
  std::vector<std::string> skipped_reasons;  // the first few
  std::int64_t filtered = 0;                 // samples that a filter did not let through
  double wait_s = 0;                         // time the consumer has spent in next()
  std::vector<StageWork> in_work;            // now, the longest first
};

/// A running flow. `next` is for one consumer thread; destroying the flow stops it and leaves no
/// thread.
template <class T>
class DataFlow {
 public:
  virtual ~DataFlow() = default;
  /// The next item, in order; nothing once the last epoch has ended. Rethrows what a stage threw,
  /// at its place in the order.
  virtual std::optional<Delivery<T>> next() = 0;
  /// Whether `next` would give something at once, waited for so long at most; true where nobody
  /// knows.
  virtual bool is_ready(std::chrono::milliseconds) { return true; }
  /// Samples of one epoch, over all ranks.
  virtual std::int64_t epoch_size() const = 0;
  virtual FlowReport report() const = 0;
};

/// Epoch and place tell each turn of a sample from all others (see Turn::name), so that one which
/// is met again, in place of another, counts once.
struct SkippedSample {
  std::int64_t epoch = 0;
  std::uint64_t place = 0;
  std::int64_t sample = 0;  // its number in the source
  std::string why;
};

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

/// What happens to a sample for which a stage throws DataError.
enum class OnError {
  skip,     // left out, counted, reported
  fail,     // the error reaches the consumer at the sample's place in the order
  replace,  // the next usable sample of the order takes its place; counted and reported too
};
inline std::vector<std::string> value_names(OnError) { return {"skip", "fail", "replace"}; }

/// What happens to half-filled groups where an epoch ends.
enum class Partial {
  /// They leave the group stage as they are; a group that has lost all its members is left out.
  keep,
  /// Their members wait for the next epoch: groups are always full (except the last of a flow that
  /// ends), and each
  /// number has its item: a group that has lost all its members gets the next usable sample of the
  /// order.
  wrap,
};

/// Which part of a flow a process takes, among those that train together.
struct Share {
  std::int64_t rank = 0, ranks = 1;
};

/// How an order shuffles.
struct Shuffle {
  bool on = false;
  // > 0: only whole windows of so many neighbours, and neighbours inside them
  std::int64_t window = 0;
};

struct FlowOptions {
  std::uint64_t seed = 1;
  /// Each epoch another permutation; otherwise 0, 1, 2, ...
  Shuffle shuffle;
  /// Groups have `ranks` times as many members; this flow takes the rank-th part of each.
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  /// 0: endless.
  std::int64_t epochs = 1;
  Partial partial = Partial::keep;
  /// Threads of the graph; 0: all cores.
  int threads = 0;
  /// Samples between source and consumer; 0: enough to keep all threads busy.
  std::int64_t in_flight = 0;
  /// Maximum bytes of their messages (at least one group is in flight, whatever its size); 0: no
  /// bound.
  std::int64_t in_flight_bytes = 0;
  OnError on_error = OnError::skip;
  /// Share of an epoch's samples that may be unusable; more is an Error.
  double max_skipped = 0.1;
  /// Where to go on.
  Cursor start;
};

}  // namespace millrace
