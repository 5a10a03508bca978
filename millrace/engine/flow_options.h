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
  keep,  // they leave the group stage as they are; a group that has lost all its members is left out
  wrap,  // their members wait for the next epoch: groups are always full (but at the flow's very end), and each
  // number has its item: one that has lost all its members gets the next usable sample of the order
};

/// Which part of a flow a process takes, among those that train together.
struct Share {
  std::int64_t rank = 0, ranks = 1;
};

struct FlowOptions {
  std::uint64_t seed = 1;
  Shuffle shuffle;  // each epoch another permutation; otherwise 0, 1, 2, ...
  std::int64_t rank =
      0;  // of groups of `ranks` times as many members this flow takes the rank-th part
  std::int64_t ranks = 1;
  std::int64_t epochs = 1;  // 0: endless
  Partial partial = Partial::keep;
  int threads = 0;  // of the graph; 0: all cores
  std::int64_t in_flight =
      0;  // samples between source and consumer; 0: enough to keep all threads busy
  std::int64_t in_flight_bytes =
      0;  // of their messages, at most (but for the fewest samples that cannot hang); 0: no bound
  OnError on_error = OnError::skip;
  double max_skipped = 0.1;  // share of an epoch's samples that may be unusable; more is an Error
  Cursor start;              // where to go on
};

}  // namespace millrace
