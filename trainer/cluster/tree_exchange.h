// A sum over ranks as one tree, made of messages between every two of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace millrace {

/// Values to or from a rank: contiguous, not empty.
struct RankMessage {
  std::int64_t rank = 0;
  at::Tensor values;
};

/// Sends and receives all of them at the same time. Two ranks have at most one message each way.
/// On a GPU it is queued on the current stream.
using ExchangeMessages = std::function<void(const std::vector<RankMessage>& sent,
                                            const std::vector<RankMessage>& received)>;

/// Replaces `values` (contiguous, float, double or half precision) by their sum over `ranks` ranks,
/// of which this is `rank`: a reduce-scatter, in which each rank gets its part from all others and
/// adds them as tree_sum does, half precision in fp32 and rounded once; then an all-gather. Two
/// exchanges, the same on every rank.
void sum_as_tree(const at::Tensor& values, std::int64_t rank, std::int64_t ranks,
                 const ExchangeMessages& exchange);

}  // namespace millrace
