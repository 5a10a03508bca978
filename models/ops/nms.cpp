#include "millrace/models/ops/nms.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "millrace/models/onnx/operations.h"
#include "millrace/models/ops/dispatched.h"
#include "millrace/models/ops/suppressor.h"

namespace millrace {
namespace {

/// Ranks of boxes, best first.
using Ranks = std::vector<std::int64_t>;

/// Returns the ranks of each group, in the order of the groups' first appearance.
std::vector<Ranks> split(const std::int64_t* order, std::int64_t count,
                         const std::int64_t* groups) {
  std::vector<Ranks> result;
  std::unordered_map<std::int64_t, std::size_t> place;
  for (std::int64_t rank = 0; rank < count; ++rank) {
    const auto [found, added] = place.emplace(groups[order[rank]], result.size());
    if (added) result.emplace_back();
    result[found->second].push_back(rank);
  }
  return result;
}

at::Tensor nms_on_cpu(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups,
                      double threshold, double offset) {
  const auto count = scores.numel();
  const auto corners = boxes.contiguous(), group = groups.contiguous();
  const auto order_tensor =
      std::get<1>(scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
  const float* box = corners.const_data_ptr<float>();
  const std::int64_t* order = order_tensor.const_data_ptr<std::int64_t>();

  std::vector<char> keep(static_cast<std::size_t>(count), 0);  // by rank
  const auto filter = [&](const Ranks& ranks) {
    Suppressor suppressor(ranks.size(), threshold, offset);
    for (const auto rank : ranks)
      keep[static_cast<std::size_t>(rank)] = suppressor.keep(box + 4 * order[rank]);
  };
  const auto parts = split(order, count, group.const_data_ptr<std::int64_t>());
  std::atomic<std::size_t> next = 0;  // groups differ in size: each thread takes the next one
  at::parallel_for(0, std::ssize(parts), 1, [&](std::int64_t, std::int64_t) {
    for (std::size_t part; (part = next++) < parts.size();) filter(parts[part]);
  });

  auto result = at::empty({std::count(keep.begin(), keep.end(), 1)}, order_tensor.options());
  auto* out = result.mutable_data_ptr<std::int64_t>();
  for (std::int64_t rank = 0; rank < count; ++rank)
    if (keep[static_cast<std::size_t>(rank)]) *out++ = order[rank];
  return result;
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) { library.impl("nms", nms_on_cpu); }

}  // namespace

at::Tensor batched_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups,
                       double threshold, double offset) {
  if (boxes.dim() != 2 || boxes.size(0) != scores.numel() || boxes.size(1) != 4 ||
      scores.dim() != 1 || groups.sizes() != scores.sizes() || groups.scalar_type() != at::kLong)
    throw std::invalid_argument(
        "batched_nms: boxes must be (N, 4), scores (N) and groups (N) int64");
  static const auto op = dispatched<decltype(nms_on_cpu)>("millrace::nms");
  return op.call(boxes, scores, groups, threshold, offset);
}

onnx::Value batched_nms(const onnx::Value& boxes, const onnx::Value& scores, double threshold,
                        double offset, std::int64_t most) {
  auto& g = *boxes.graph;
  auto corners = boxes;
  if (offset != 0)
    corners = boxes + g.constant(at::tensor({0.0, 0.0, offset, offset}, at::kFloat), "offset");
  return g.add("NonMaxSuppression",
               {corners, scores, g.ints({most}), g.scalar(rounded_down(threshold), onnx::Type::f32),
                g.scalar(0, onnx::Type::f32)},
               {}, onnx::Type::i64);
}

}  // namespace millrace
