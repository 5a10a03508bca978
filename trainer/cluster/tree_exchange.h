// A sum over ranks as one tree, made of messages between each pair of ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace millrace {

/// Values sent to or received from a rank: contiguous, not empty.
struct RankMessage {
  std::int64_t rank = 0;
  at::Tensor values;
};

/// Sends and receives all messages concurrently. Two ranks exchange at most one message in each
/// direction. On a GPU, the exchange is queued on the current stream.
using ExchangeMessages = std::function<void(const std::vector<RankMessage>& sent,
                                            const std::vector<RankMessage>& received)>;

/// Replaces `values` (contiguous, float, double or half precision) by their sum over `ranks` ranks.
/// First a reduce-scatter: each rank receives its part from all other ranks and adds them like
/// tree_sum; half precision is added in fp32 and rounded once. Then an all-gather. Uses two
/// exchanges, which are the same on every rank.
void sum_as_tree(const at::Tensor& values, std::int64_t rank, std::int64_t ranks,
                 const ExchangeMessages& exchange);

}  // namespace millrace
