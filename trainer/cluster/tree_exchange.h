// A sum over ranks as one tree, made of messages between every two of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace millrace {

/// Where the values begin that a rank adds for all: those of rank r end where those of r + 1 begin.
std::int64_t begin_of_part(std::int64_t count, std::int64_t ranks, std::int64_t rank);

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
/// exchanges, the same on every rank. Has the bits of the sums over MPI.
void sum_as_tree(const at::Tensor& values, std::int64_t rank, std::int64_t ranks,
                 const ExchangeMessages& exchange);

}  // namespace millrace
