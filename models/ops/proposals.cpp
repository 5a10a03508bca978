#include "millrace/models/ops/proposals.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numeric>
#include <span>
#include <stdexcept>
#include <tuple>

#include "millrace/models/ops/cpu/simd.h"
#include "millrace/models/ops/dispatched.h"
#include "millrace/models/ops/suppressor.h"
#include "millrace/models/ops/top_k.h"

namespace millrace {
namespace {

/// Boxes and their scores, best first.
struct Ranked {
  std::vector<std::array<float, 4>> boxes;
  std::vector<float> scores;
};

/// The numbers of BoxCoder and an image's size, in float.
struct Decoding {
  float weights[4], max_log_scale, offset, width, height;
};

/// Planes of `count` numbers, one for each coordinate of anchors and deltas.
struct Planes {
  explicit Planes(std::size_t count) : stride(count), memory(8 * count) {}

  float* anchor(std::size_t side) { return memory.data() + side * stride; }
  float* delta(std::size_t side) { return memory.data() + (4 + side) * stride; }

  std::size_t stride;
  std::vector<float> memory;
};

/// Divides dw or dh, the arguments of the exponential, by their weight and clamps them.
MILLRACE_SIMD void scale_logs(float* value, std::size_t count, float weight, float most) {
  for (std::size_t i = 0; i < count; ++i) {
    const float scaled = value[i] / weight;
    value[i] = scaled > most ? most : scaled;
  }
}

/// Decodes and clips one axis, in the order of operations of BoxCoder::decode and clip_boxes: `low`
/// and `high` become the box's ends.
MILLRACE_SIMD void decode_axis(float* low, float* high, const float* shift, const float* growth,
                               std::size_t count, float weight, float offset, float limit) {
  for (std::size_t i = 0; i < count; ++i) {
    const float side = high[i] - low[i] + offset;
    const float centre = shift[i] / weight * side + (low[i] + 0.5F * side);
    const float half = 0.5F * growth[i] * side;
    const float first = centre - half, last = centre + half - offset;
    const float inside_first = first < 0 ? 0 : first, inside_last = last < 0 ? 0 : last;
    low[i] = inside_first > limit ? limit : inside_first;
    high[i] = inside_last > limit ? limit : inside_last;
  }
}

/// Replaces the planes of anchors by those of boxes.
void decode(Planes& planes, const Decoding& by) {
  const auto count = planes.stride;
  for (const std::size_t axis : {2, 3})
    scale_logs(planes.delta(axis), count, by.weights[axis], by.max_log_scale);
  at::from_blob(planes.delta(2), {static_cast<std::int64_t>(2 * count)}, at::kFloat).exp_();
  for (const std::size_t axis : {0, 1})
    decode_axis(planes.anchor(axis), planes.anchor(axis + 2), planes.delta(axis),
                planes.delta(axis + 2), count, by.weights[axis], by.offset,
                axis == 0 ? by.width : by.height);
}

/// One level of one image.
struct Level {
  std::span<const float> logits;
  const float *deltas, *anchors;  // 4 of each per logit
};

Ranked best_of_level(const Level& level, const Decoding& by, const ProposalOptions& options) {
  const auto chosen = top_k(level.logits, options.before);
  const auto count = chosen.size();
  Planes planes(count);
  std::vector<float> scores(count);
  for (std::size_t i = 0; i < count; ++i) {
    scores[i] = level.logits[static_cast<std::size_t>(chosen[i])];
    for (std::size_t side = 0; side < 4; ++side) {
      planes.anchor(side)[i] = level.anchors[4 * chosen[i] + static_cast<std::int64_t>(side)];
      planes.delta(side)[i] = level.deltas[4 * chosen[i] + static_cast<std::int64_t>(side)];
    }
  }
  decode(planes, by);

  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options.by_probability) {  // rounding may create ties and swap neighbours
    at::from_blob(scores.data(), {static_cast<std::int64_t>(count)}, at::kFloat).sigmoid_();
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  }

  const auto min_side = static_cast<float>(options.min_side);
  const auto large_enough = [&](float side) { return min_side > 0 ? side >= min_side : side > 0; };
  Ranked result;
  Suppressor suppressor(count, options.threshold, options.coder.offset);
  for (const auto i : order) {
    std::array<float, 4> box;
    for (std::size_t side = 0; side < 4; ++side) box[side] = planes.anchor(side)[i];
    const bool finite = std::ranges::all_of(box, [](float side) { return std::isfinite(side); });
    if (!finite || !large_enough(box[2] - box[0]) || !large_enough(box[3] - box[1])) continue;
    if (!suppressor.keep(box.data())) continue;
    result.boxes.push_back(box);
    result.scores.push_back(scores[i]);
    if (std::ssize(result.boxes) == options.after) break;  // a level can contribute no more
  }
  return result;
}

/// Writes the best `count` boxes of all levels; returns their number.
std::int64_t write_best(std::span<const Ranked> levels, std::int64_t count, float* out) {
  std::vector<float> scores;
  std::vector<const float*> boxes;
  for (const auto& level : levels) {
    scores.insert(scores.end(), level.scores.begin(), level.scores.end());
    for (const auto& box : level.boxes) boxes.push_back(box.data());
  }
  const auto best = top_k(scores, count);
  for (const auto i : best) out = std::copy_n(boxes[static_cast<std::size_t>(i)], 4, out);
  return std::ssize(best);
}

void check(const at::Tensor& logits, const at::Tensor& deltas, const at::Tensor& anchors,
           const std::vector<std::int64_t>& level_counts, std::size_t images) {
  const auto total = std::accumulate(level_counts.begin(), level_counts.end(), std::int64_t{0});
  const auto n = static_cast<std::int64_t>(images);
  if (logits.sizes() != at::IntArrayRef{n, total} ||
      deltas.sizes() != at::IntArrayRef{n, total, 4} ||
      anchors.sizes() != at::IntArrayRef{total, 4})
    throw std::invalid_argument(
        "proposals: logits must be (N, T), deltas (N, T, 4), anchors (T, 4), and the levels must "
        "sum to T");
}

std::tuple<at::Tensor, at::Tensor> proposals_on_cpu(
    const at::Tensor& logits, const at::Tensor& deltas, const at::Tensor& anchors,
    at::IntArrayRef level_counts, at::ArrayRef<double> sizes, std::int64_t before,
    std::int64_t after, double threshold, double min_side, bool by_probability,
    at::ArrayRef<double> weights, double max_log_scale, double offset) {
  ProposalOptions options{before,   after,          threshold,
                          min_side, by_probability, {{}, max_log_scale, offset}};
  std::copy(weights.begin(), weights.end(), options.coder.weights.begin());
  const auto plain = [](const at::Tensor& values) { return values.to(at::kFloat).contiguous(); };
  const auto all_logits = plain(logits), all_deltas = plain(deltas), all_anchors = plain(anchors);
  const auto* logit = all_logits.const_data_ptr<float>();
  const auto* delta = all_deltas.const_data_ptr<float>();
  const auto* anchor = all_anchors.const_data_ptr<float>();

  const auto total = anchors.size(0), images = logits.size(0), levels = std::ssize(level_counts);
  std::vector<std::int64_t> starts(level_counts.size());
  std::exclusive_scan(level_counts.begin(), level_counts.end(), starts.begin(), std::int64_t{0});
  const auto& coder = options.coder;
  std::vector<Ranked> ranked(static_cast<std::size_t>(images * levels));
  std::atomic<std::int64_t> next = 0;  // levels differ in size: each thread takes the next one
  at::parallel_for(0, images * levels, 1, [&](std::int64_t, std::int64_t) {
    const at::NoGradGuard no_grad_here;
    for (std::int64_t task; (task = next++) < images * levels;) {
      const auto image = static_cast<std::size_t>(task % images);  // largest levels first
      const auto level = static_cast<std::size_t>(task / images);
      const auto first = static_cast<std::int64_t>(image) * total + starts[level];
      Decoding by{{},
                  static_cast<float>(coder.max_log_scale),
                  static_cast<float>(coder.offset),
                  static_cast<float>(sizes[2 * image + 1]),
                  static_cast<float>(sizes[2 * image])};
      std::copy(coder.weights.begin(), coder.weights.end(), by.weights);
      ranked[image * level_counts.size() + level] =
          best_of_level({{logit + first, static_cast<std::size_t>(level_counts[level])},
                         delta + 4 * first,
                         anchor + 4 * starts[level]},
                        by, options);
    }
  });

  std::int64_t most = 0;
  for (const auto count : level_counts) most += std::min(count, before);
  most = std::min(most, after);
  auto boxes = at::zeros({images, most, 4}, at::kFloat);
  auto counts = at::empty({images}, at::kLong);
  auto* const box = boxes.mutable_data_ptr<float>();
  auto* const count = counts.mutable_data_ptr<std::int64_t>();
  at::parallel_for(0, images, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto image = begin; image < end; ++image)
      count[image] = write_best({ranked.data() + image * levels, level_counts.size()}, after,
                                box + image * most * 4);
  });
  return {std::move(boxes), std::move(counts)};
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) { library.impl("proposals", proposals_on_cpu); }

}  // namespace

std::vector<at::Tensor> Proposals::each() const {
  const auto here = counts.cpu();
  const auto* count = here.const_data_ptr<std::int64_t>();
  std::vector<at::Tensor> result;
  for (std::int64_t image = 0; image < boxes.size(0); ++image)
    result.push_back(boxes[image].narrow(0, 0, count[image]));
  return result;
}

Proposals proposals(const at::Tensor& logits, const at::Tensor& deltas, const at::Tensor& anchors,
                    const std::vector<std::int64_t>& level_counts,
                    const std::vector<std::pair<double, double>>& sizes,
                    const ProposalOptions& options) {
  const at::NoGradGuard no_grad;
  check(logits, deltas, anchors, level_counts, sizes.size());
  std::vector<double> sides;
  for (const auto& [height, width] : sizes) sides.insert(sides.end(), {height, width});
  static const auto op = dispatched<decltype(proposals_on_cpu)>("millrace::proposals");
  const auto& coder = options.coder;
  auto [boxes, counts] =
      op.call(logits, deltas, anchors, level_counts, sides, options.before, options.after,
              options.threshold, options.min_side, options.by_probability, coder.weights,
              coder.max_log_scale, coder.offset);
  return {std::move(boxes), std::move(counts)};
}

}  // namespace millrace
