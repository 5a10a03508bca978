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
  std::int64_t next =
      0;  // first position that no item up to here has taken: epoch * size + place in it
  std::vector<std::int64_t>
      pending;  // positions before `next` that wait in half-filled groups, ascending
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// An item with its place in the flow.
template <class T>
struct Delivery {
  T value;
  Cursor cursor;           // the place after this item
  std::int64_t epoch = 0;  // of the item's first member
  double progress = 0;     // epochs of samples taken up to and including this item, over all ranks
  std::int64_t number =
      0;  // of the item, 0 for the first after the start; the same step on all ranks
};

/// What one stage has done since the flow started.
struct StageReport {
  std::string name;
  std::int64_t items = 0;
  double busy_s = 0;         // summed over threads
  std::int64_t waiting = 0;  // items in front of it now
};

/// What one thread of a flow works on.
struct StageWork {
  std::string stage;
  std::string
      sample;  // its name where the source knows one, else its number; of a group, the first
  double seconds = 0;  // for so long already
};

struct FlowReport {
  std::vector<StageReport> stages;
  std::int64_t skipped = 0;                  // samples left out by the fault policy
  std::vector<std::string> skipped_reasons;  // the first few
  std::int64_t filtered = 0;                 // samples that a filter did not let through
  double wait_s = 0;                         // time the consumer has spent in next()
  std::vector<StageWork> in_work;            // now, the longest first
};

/// A running flow. `next` is for one consumer thread; destroying the flow stops it and leaves no thread.
template <class T>
class DataFlow {
 public:
  virtual ~DataFlow() = default;
  /// The next item, in order; nothing once the last epoch has ended. Rethrows what a stage threw, at its place
  /// in the order.
  virtual std::optional<Delivery<T>> next() = 0;
  /// Whether `next` would give something at once, waited for so long at most; true where nobody knows.
  virtual bool is_ready(std::chrono::milliseconds) { return true; }
  /// Samples of one epoch, over all ranks.
  virtual std::int64_t epoch_size() const = 0;
  virtual FlowReport report() const = 0;
};

}  // namespace millrace
