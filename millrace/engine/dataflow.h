// The edge between a flow of data and whoever consumes it: pull, one item at a time.
#pragma once

#include <chrono>
#include <cstdint>
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

}  // namespace millrace
