// How a flow runs: order, share, bounds and what to do about samples that cannot be used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/engine/dataflow.h"
#include "millrace/engine/order.h"

namespace millrace {

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
