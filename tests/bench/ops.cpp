// Cost of the detectors' operators on inputs that ops.py also generates for torchvision. The
// counter `check` is a value of the result, which must be equal for both.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include "millrace/models/layers/anchors.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/ops/nms.h"
#include "millrace/models/ops/proposals.h"
#include "millrace/models/ops/roi_align.h"
#include "tests/support/mask_targets.h"

namespace millrace {
namespace {

/// Returns the fractional parts of multiples of `step`, [N] double: evenly spread in [0, 1) and
/// equal in C++ and Python.
at::Tensor spread(std::int64_t count, double step) {
  const auto values = at::arange(count, at::kDouble) * step;
  return values - values.floor();
}

/// Returns boxes [N, 4] with widths and heights from `least` to `most`, within width x height
/// pixels.
at::Tensor boxes(std::int64_t count, double width, double height, double least, double most) {
  const auto side = [&](double step) { return spread(count, step) * (most - least) + least; };
  const auto w = side(0.5545497), h = side(0.3025187);
  const auto x = spread(count, 0.7548777) * width, y = spread(count, 0.5698403) * height;
  return at::stack({x, y, (x + w).clamp_max(width), (y + h).clamp_max(height)}, 1).to(at::kFloat);
}

/// Times `work` and reports `check` of its result. OMP_NUM_THREADS sets the number of threads.
template <typename Work, typename Check>
void measure(benchmark::State& state, Work work, Check check) {
  auto result = work();
  for (auto _ : state) benchmark::DoNotOptimize(result = work());
  state.counters["check"] = static_cast<double>(check(result));
}

/// The levels P2 to P5 of two 512 x 512 images, and regions of all sizes.
struct Pooling {
  std::vector<at::Tensor> maps;
  at::Tensor rois, levels, weights;
  RoiAlignOptions options;

  Pooling(std::int64_t regions, std::int64_t size, bool adaptive)
      : options{size, size, 0.25, adaptive ? 0 : 2, adaptive} {
    for (std::int64_t side = 128; side >= 16; side /= 2)
      maps.push_back(spread(2 * 256 * side * side, 0.6180339)
                         .to(at::kFloat)
                         .view({2, 256, side, side})
                         .contiguous(at::MemoryFormat::ChannelsLast)
                         .requires_grad_());
    const auto image = at::arange(regions).remainder(2).to(at::kFloat).unsqueeze(1);
    rois = at::cat({image, boxes(regions, 512, 512, 16, 300)}, 1);
    const auto sides = rois.slice(1, 3) - rois.slice(1, 1, 3);
    levels =
        (sides.prod(1).sqrt() / 224 + 1e-8).log2().add(4).floor().clamp(2, 5).to(at::kLong) - 2;
  }

  at::Tensor operator()() const { return roi_align(maps, rois, levels, options); }
};

/// Arguments: regions, cells per row and column, adaptive sampling.
void roi_align_forward(benchmark::State& state) {
  const at::NoGradGuard no_grad;
  const Pooling pooling(state.range(0), state.range(1), state.range(2) != 0);
  measure(state, pooling, [](const at::Tensor& x) { return x.mean().item<double>(); });
}

void roi_align_backward(benchmark::State& state) {
  const Pooling pooling(state.range(0), state.range(1), state.range(2) != 0);
  const auto output = pooling();
  const auto weights = at::ones_like(output);
  measure(
      state,
      [&] {
        return torch::autograd::grad({output}, pooling.maps, {weights}, /*retain_graph=*/true);
      },
      [](const std::vector<at::Tensor>& grads) { return grads[0].square().mean().item<double>(); });
}

/// Arguments: boxes, groups, IoU threshold in hundredths.
void nms_of_groups(benchmark::State& state) {
  const auto count = state.range(0), groups = state.range(1);
  const auto candidates = boxes(count, 600, 600, 16, 300);
  const auto scores = spread(count, 0.4142136).to(at::kFloat);
  const auto group = at::arange(count).remainder(groups);
  const auto threshold = static_cast<double>(state.range(2)) / 100;
  measure(
      state, [&] { return batched_nms(candidates, scores, group, threshold); },
      [](const at::Tensor& kept) { return kept.numel(); });
}

/// The anchors of an 800 x 1344 image.
struct Anchors {
  std::vector<at::Tensor> levels;
  std::vector<std::int64_t> counts;

  Anchors() {
    for (std::int64_t stride = 4; stride <= 64; stride *= 2) {
      const auto size = static_cast<double>(stride);
      const auto cells = cell_anchors({8 * size}, {0.5, 1, 2}, AnchorRounding::rounded, size);
      levels.push_back(
          grid_anchors(cells, (800 + stride - 1) / stride, 1344 / stride, {size, size}));
      counts.push_back(levels.back().size(0));
    }
  }
};

/// Selects the proposals of two images.
void proposals_of_batch(benchmark::State& state) {
  const Anchors anchors;
  const auto all = at::cat(anchors.levels);
  const auto total = all.size(0);
  const auto logits = (spread(2 * total, 0.7548777).view({2, total}) * 8 - 6).to(at::kFloat);
  const auto deltas = (spread(8 * total, 0.5698403).view({2, total, 4}) - 0.5).to(at::kFloat);
  measure(
      state,
      [&] {
        return proposals(logits, deltas, all, anchors.counts, {{800, 1333}, {800, 1200}},
                         {.before = 2000, .after = 2000, .min_side = 1e-3, .by_probability = true});
      },
      [](const Proposals& found) { return found.counts.sum().item<std::int64_t>(); });
}

/// Argument: number of objects.
void match_anchors(benchmark::State& state) {
  const Anchors anchors;
  const auto all = at::cat(anchors.levels), truth = boxes(state.range(0), 1333, 800, 10, 400);
  measure(
      state,
      [&] {
        return match(truth, all, {0.3, 0.7, /*low_quality=*/true});
      },
      [](const Matches& matches) { return matches.label.eq(1).sum().item<double>(); });
}

/// Computes targets of 128 regions with 20 octagonal objects in a 512 x 512 image. Argument: 1 =
/// soft, 0 = binary targets.
void targets_of_masks(benchmark::State& state) {
  const auto objects = boxes(20, 512, 512, 40, 300);
  std::vector<coco::Segmentation> shapes;
  for (std::int64_t i = 0; i < 20; ++i) {
    const auto* b = objects.const_data_ptr<float>() + 4 * i;
    const double w = b[2] - b[0], h = b[3] - b[1];
    coco::Polygon polygon;
    for (const auto& [x, y] :
         {std::pair{.3, 0.}, {.7, 0.}, {1., .3}, {1., .7}, {.7, 1.}, {.3, 1.}, {0., .7}, {0., .3}})
      polygon.insert(polygon.end(), {b[0] + x * w, b[1] + y * h});
    shapes.emplace_back(std::vector<coco::Polygon>{polygon});
  }
  const auto index = at::arange(128).remainder(20);
  std::vector<const coco::Segmentation*> matched;
  for (std::size_t i = 0; i < 128; ++i) matched.push_back(&shapes[i % 20]);
  const auto regions = objects.index_select(0, index);
  measure(
      state,
      [&] {
        return mask_targets(matched, regions, 28,
                            state.range(0) ? MaskTarget::soft : MaskTarget::binary, 512, 512);
      },
      [](const at::Tensor& targets) { return targets.mean().item<double>(); });
}

#define MILLRACE_OP(function) BENCHMARK(function)->MeasureProcessCPUTime()->UseRealTime()
MILLRACE_OP(roi_align_forward)
    ->ArgsProduct({{1024}, {7}, {0, 1}})
    ->ArgsProduct({{256}, {14}, {0, 1}});
MILLRACE_OP(roi_align_backward)
    ->ArgsProduct({{1024}, {7}, {0, 1}})
    ->ArgsProduct({{256}, {14}, {0, 1}});
MILLRACE_OP(nms_of_groups)
    ->ArgsProduct({{1000, 5000}, {1}, {50, 70}})
    ->ArgsProduct({{5000}, {5, 80}, {70}});
MILLRACE_OP(proposals_of_batch);
MILLRACE_OP(match_anchors)->Arg(20)->Arg(200);
MILLRACE_OP(targets_of_masks)->Arg(0)->Arg(1);

}  // namespace
}  // namespace millrace

BENCHMARK_MAIN();
