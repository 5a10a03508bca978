// Every operator of millrace/models/ops/operators.cpp on the device against the CPU's, from no box
// to 4,000, with odd input, and twice for the same bytes.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/cli/check_gpu/part.h"
#include "millrace/models/backbones/pyramid.h"
#include "millrace/models/detector/precision.h"
#include "millrace/models/maskrcnn/mask_targets.h"
#include "millrace/models/ops/dispatched.h"
#include "millrace/models/ops/focal_loss.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/ops/nms.h"
#include "millrace/models/ops/proposals.h"
#include "millrace/models/ops/roi_align.h"
#include "millrace/models/ops/sampling.h"

namespace millrace::cli {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

using Tensors = std::vector<at::Tensor>;
/// An operator's results for the same input on a device.
using OnDevice = std::function<Tensors(at::Device)>;

at::Tensor uniform(at::IntArrayRef shape, double low, double high, std::uint64_t seed) {
  return at::rand(shape, at::detail::createCPUGenerator(seed), at::kFloat) * (high - low) + low;
}

/// (count, 4) with corners in a square of `extent` pixels and sides of 1 .. `side`.
at::Tensor boxes(std::int64_t count, double extent, double side, std::uint64_t seed) {
  const auto corner = uniform({count, 2}, 0, extent, seed);
  return at::cat({corner, corner + uniform({count, 2}, 1, side, seed + 1)}, 1);
}

at::Tensor whole(std::int64_t count, std::int64_t below, std::uint64_t seed) {
  return at::randint(below, {count}, at::detail::createCPUGenerator(seed), at::kLong);
}

/// The largest difference, as a share of the largest expected value, which counts as 1 at least.
double error_of(const at::Tensor& found, const at::Tensor& expected) {
  if (found.sizes() != expected.sizes()) return kInfinite;
  if (expected.numel() == 0) return 0;
  const auto wanted = expected.to(at::kDouble);
  return ((found.to(at::kDouble) - wanted).abs().max() / wanted.abs().max().clamp_min(1))
      .item<double>();
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.equal(b);
}

class OperatorChecks {
 public:
  explicit OperatorChecks(PartRun& run) : run_(run), device_(run.device()) {}

  /// `most`: of error_of, for values; 0: the very same.
  void compare(const std::string& what, double most, const OnDevice& work) {
    try {
      const auto expected = work(at::kCPU);
      const auto found = on_host(work(device_)), again = on_host(work(device_));
      if (found.size() != expected.size()) throw Error("it gives another number of tensors");
      double error = 0;
      bool repeats = true;
      for (std::size_t i = 0; i < found.size(); ++i) {
        const auto one = error_of(found[i], expected[i]);
        error = one <= error ? error : one;  // NaN stays
        repeats = repeats && same_bytes(found[i], again[i]);
      }
      run_.report.check(what, error <= most && repeats,
                        fmt::format("off by {:.2g}, at most {:.2g}; {}", error, most,
                                    repeats ? "twice the same bytes" : "other bytes each time"));
    } catch (const std::exception& problem) {
      run_.report.check(what, false, std::string("it threw: ") + problem.what());
    }
  }

  /// Numbers of boxes.
  std::vector<std::int64_t> counts() const {
    return run_.options.small ? std::vector<std::int64_t>{0, 1, 33}
                              : std::vector<std::int64_t>{0, 1, 2, 33, 64, 65, 1000, 4000};
  }
  bool small() const { return run_.options.small; }

  /// Fails for an operator that no check here is for.
  void finish(const std::set<std::string>& known) {
    for (const auto& op : c10::Dispatcher::singleton().getAllOpNames())
      if (op.name.starts_with("millrace::") && !known.contains(op.name))
        run_.report.check(op.name, false, "there is no check of this operator yet");
  }

 private:
  static Tensors on_host(Tensors tensors) {
    for (auto& tensor : tensors) tensor = tensor.cpu();
    return tensors;
  }

  PartRun& run_;
  at::Device device_;
};

void check_nms(OperatorChecks& checks) {
  for (const auto count : checks.counts())
    for (const std::int64_t groups : {1, 9}) {
      auto all = boxes(count, 400, 120, 1);
      if (count > 20) {
        all[3].copy_(all[7]);                                  // ties
        all[5].narrow(0, 2, 2).copy_(all[5].narrow(0, 0, 2));  // without area
      }
      const auto scores = (uniform({count}, 0, 1, 2) * 64).floor() / 64;
      const auto group = whole(count, groups, 3);
      checks.compare(
          fmt::format("nms, {} boxes in {}", count, counted(groups, "group")), 0,
          [&](at::Device device) -> Tensors {
            return {batched_nms(all.to(device), scores.to(device), group.to(device), 0.5)};
          });
    }
}

void check_proposals(OperatorChecks& checks) {
  const std::vector<std::pair<double, double>> sizes{{500, 400}, {300, 520}};
  const auto levels = checks.small() ? std::vector<std::int64_t>{60, 15, 1}
                                     : std::vector<std::int64_t>{60000, 15000, 3750, 945, 252};
  std::int64_t total = 0;
  for (const auto count : levels) total += count;
  const auto anchors = boxes(total, 500, 200, 3);
  for (const char* kind : {"plain", "with ties", "with NaN and infinities", "all equal"}) {
    auto logits = uniform({2, total}, -5, 5, 1), deltas = uniform({2, total, 4}, -1, 1, 2);
    if (kind == std::string("with ties")) logits = (logits * 4).round() / 4;
    if (kind == std::string("all equal")) logits.zero_();
    if (kind == std::string("with NaN and infinities")) {
      logits[0][3] = kNan, logits[1][5] = kInfinite, logits[1][6] = -kInfinite;
      deltas[0][7][2] = kNan, deltas[1][9][3] = kInfinite, deltas[0][11][2] = 1e9F;
    }
    for (const bool by_probability : {false, true})
      for (const std::int64_t kept : {1, 1000, 2000})
        checks.compare(
            fmt::format("proposals, {} of {}, {}{}", kept, total, kind,
                        by_probability ? ", by probability" : ""),
            1e-5, [&](at::Device device) {
              return proposals(logits.to(device), deltas.to(device), anchors.to(device), levels,
                               sizes,
                               {.before = kept, .after = kept, .by_probability = by_probability})
                  .each();
            });
  }
}

void check_match(OperatorChecks& checks) {
  const std::vector<std::int64_t> truths =
      checks.small() ? std::vector<std::int64_t>{0, 3} : std::vector<std::int64_t>{0, 1, 40, 500};
  auto counts = checks.counts();
  if (!checks.small()) counts.push_back(268569);  // anchors of 800 x 1344
  for (const auto count : counts)
    for (const auto truth : truths)
      for (const bool low_quality : {false, true}) {
        auto own = boxes(truth, 500, 200, 1);
        if (truth > 2) own[1].copy_(own[0]), own[2] += 1e5;  // twice the same; one that none meets
        const auto all = boxes(count, 500, 200, 2);
        const MatchOptions options{.low = 0.3, .high = 0.7, .low_quality = low_quality};
        checks.compare(fmt::format("match, {} boxes to {}{}", count, counted(truth, "truth"),
                                   low_quality ? ", with the best of each" : ""),
                       0, [&](at::Device device) -> Tensors {
                         const auto found = match(own.to(device), all.to(device), options);
                         return {found.truth, found.label};
                       });
      }
  // Three images at once, the second without an object.
  const auto places = checks.small() ? 100 : 20000;
  const auto own = boxes(9, 500, 200, 1), all = boxes(3 * places, 500, 200, 2).view({3, -1, 4});
  const auto begins = at::tensor({0, 4, 4, 9}, at::kLong);
  checks.compare(fmt::format("match, 3 images with {} boxes", places), 0,
                 [&](at::Device device) -> Tensors {
                   const auto found = match(own.to(device), begins.to(device), all.to(device),
                                            {.low = 0.3, .high = 0.7, .low_quality = true});
                   return {found.truth, found.label};
                 });
  for (const std::int64_t count : {1, 1023, 1025, checks.small() ? 3000 : 268569}) {
    // A thirtieth foreground, a sixth between the thresholds.
    const auto drawn_from = whole(2 * count, 30, 5).view({2, count});
    const auto label = drawn_from.eq(0).to(at::kChar) - drawn_from.ge(25).to(at::kChar);
    checks.compare(fmt::format("draw, 256 of {} in 2 images", counted(count, "candidate")), 0,
                   [&](at::Device device) -> Tensors {
                     const auto drawn =
                         draw({lot_of(label.to(device), 256, 0.5, [](std::size_t image) {
                           return Rng{7, image};
                         })}).at(0);
                     return {drawn.rows, drawn.image, drawn.slots, drawn.foreground};
                   });
  }
}

/// Image index and corners, some outside, without area or not finite.
at::Tensor odd_rois(std::int64_t count, std::int64_t images) {
  auto rois = at::cat(
      {whole(count, images, 3).to(at::kFloat).unsqueeze(1), boxes(count, 600, 400, 4) - 60}, 1);
  if (count < 10) return rois;
  rois[0].narrow(0, 3, 2).copy_(rois[0].narrow(0, 1, 2));
  rois[1].narrow(0, 1, 4).add_(1e6);
  rois[2][1] = kNan, rois[3][4] = kInfinite;
  rois[4].narrow(0, 1, 4).copy_(at::tensor({0.F, 0.F, 5000.F, 5000.F}));
  rois[5].narrow(0, 1, 4).copy_(at::tensor({90.F, 80.F, 10.F, 20.F}));  // turned round
  return rois;
}

struct RoiCase {
  std::int64_t count, channels;
  RoiAlignOptions options;
  at::ScalarType type;
};

Tensors pooled(const RoiCase& what, at::Device device) {
  // The CPU computes in fp32 with what the device is given.
  const auto type = device.is_cpu() ? at::kFloat : what.type;
  Tensors maps;
  std::int64_t height = 100, width = 168;
  for (int level = 0; level < 4; ++level, height = (height + 1) / 2, width = (width + 1) / 2)
    maps.push_back(uniform({2, what.channels, height, width}, -1, 1, 10 + level)
                       .to(what.type)
                       .to(type)
                       .to(device)
                       .contiguous(at::MemoryFormat::ChannelsLast)
                       .requires_grad_());
  const auto levels = whole(what.count, 4, 7);
  const auto output =
      roi_align(maps, odd_rois(what.count, 2).to(device), levels.to(device), what.options);
  output.backward(uniform(output.sizes(), -1, 1, 5).to(what.type).to(type).to(device));
  Tensors results{output.detach()};
  for (const auto& map : maps) results.push_back(map.grad());
  return results;
}

void check_roi_align(OperatorChecks& checks) {
  const std::vector<std::pair<at::ScalarType, double>> types{
      {at::kFloat, 1e-5}, {at::kBFloat16, 3e-2}, {at::kHalf, 4e-3}};
  const auto one = [&](const RoiCase& what, double most) {
    checks.compare(fmt::format("roi_align and its gradient, {}, {} regions, {} channels, {} x {} "
                               "cells, {} samples{}",
                               c10::toString(what.type), what.count, what.channels,
                               what.options.height, what.options.width, what.options.sampling_ratio,
                               what.options.aligned ? ", aligned" : ""),
                   most, [&](at::Device device) { return pooled(what, device); });
  };
  for (const auto& [type, most] : types) {
    for (const auto count : checks.counts())
      one({count, checks.small() ? 3 : 256, {7, 7, 0.25, 2, true}, type}, most);
    for (const bool aligned : {false, true})
      for (const std::int64_t samples : {0, 2})
        for (const std::int64_t channels : {1, 70})
          one({checks.small() ? 20 : 300, channels, {14, 14, 0.25, samples, aligned}, type}, most);
    one({checks.small() ? 20 : 300, 5, {3, 5, 0.25, 0, true}, type}, most);
  }
}

/// A star of so many points around a place in a square of 100 pixels.
coco::Polygon star(std::size_t points, Rng& rng) {
  coco::Polygon polygon;
  const auto x = rng.uniform(10, 90), y = rng.uniform(10, 90);
  for (std::size_t i = 0; i < points; ++i) {
    const auto angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(points);
    const auto radius = rng.uniform(1, 45);
    polygon.push_back(x + radius * std::cos(angle));
    polygon.push_back(y + radius * std::sin(angle));
  }
  return polygon;
}

void check_mask_targets(OperatorChecks& checks) {
  for (const auto count : checks.counts()) {
    Rng rng{11};
    std::vector<coco::Segmentation> shapes;
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<coco::Polygon> parts;
      for (std::uint64_t part = 0; part <= rng.below(3); ++part)
        parts.push_back(star(3 + rng.below(40), rng));
      shapes.emplace_back(std::move(parts));
    }
    std::vector<const coco::Segmentation*> each;
    for (const auto& shape : shapes) each.push_back(&shape);
    auto around = boxes(count, 60, 70, 12) - 10;
    if (count > 10) around[3].narrow(0, 2, 2).copy_(around[3].narrow(0, 0, 2));  // without area
    for (const std::int64_t size : {1, 14, 28, 65, 112}) {
      if (count > 1000 && size > 28) continue;  // 50 million cells say no more
      checks.compare(
          fmt::format("mask_targets, {}, {} x {} cells", counted(count, "shape"), size, size), 0,
          [&](at::Device device) -> Tensors {
            return {mask_targets(each, around.to(device), size, MaskTarget::binary, 100, 100)};
          });
    }
  }
}

void check_focal_loss(OperatorChecks& checks) {
  for (const auto count : checks.counts())
    for (const std::int64_t classes : {1, 80})
      for (const double gamma : {0., 1.5, 2.}) {
        auto logits = uniform({count, classes}, -8, 8, 1);
        if (count > 10) logits[2][0] = 80.F, logits[3][0] = -80.F;
        const auto own = whole(count, classes + 2, 2) + kIgnored;
        checks.compare(fmt::format("focal_loss and its gradient, {}, {} classes, gamma {}",
                                   counted(count, "anchor"), classes, gamma),
                       1e-5, [&](at::Device device) -> Tensors {
                         const auto x =
                             logits.detach().to(device, at::kFloat, false, true).requires_grad_();
                         const auto sum = focal_loss_sum(x, own.to(device), {.gamma = gamma});
                         sum.backward();
                         return {sum.detach(), x.grad()};
                       });
      }
}

void check_normalize(OperatorChecks& checks) {
  Batch batch{.height = 70, .width = 90};
  for (const auto& [width, height] : {std::pair{90, 60}, {80, 70}, {1, 1}})
    batch.images.push_back({.width = width, .height = height});
  batch.pixels.reset(new std::uint8_t[batch.bytes()]);
  Rng rng{13};
  for (std::size_t i = 0; i < batch.bytes(); ++i)
    batch.pixels[i] = static_cast<std::uint8_t>(rng.below(256));
  for (const auto& [type, most] :
       {std::pair{at::kFloat, 1e-6}, {at::kBFloat16, 1e-2}, {at::kHalf, 2e-3}})
    for (const auto order : {ChannelOrder::bgr, ChannelOrder::rgb}) {
      PyramidOptions options;
      options.pixel_order = order;
      checks.compare(fmt::format("normalize, {}, {}", c10::toString(type), value_name(order)), most,
                     [&](at::Device device) -> Tensors {
                       const ComputeIn precision(device.is_cpu() ? at::kFloat : type,
                                                 device.type());
                       return {normalize(batch, options, device, {96, 128}).to(at::kFloat)};
                     });
    }
}

void check_finish_convolution(OperatorChecks& checks) {
  static const auto op =
      dispatched<void(const at::Tensor&, const std::optional<at::Tensor>&,
                      const std::optional<at::Tensor>&, bool)>("millrace::finish_convolution_");
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const std::int64_t channels : {1, 64, 70})
      for (const std::int64_t height : {0, 13})
        for (const bool adds : {false, true})
          for (const bool relu : {false, true}) {
            const auto values = [&](std::uint64_t seed, at::Device device) {
              return uniform({2, channels, height, 7}, -1, 1, seed)
                  .to(type)
                  .to(device)
                  .contiguous(at::MemoryFormat::ChannelsLast);
            };
            const auto bias = uniform({channels}, -1, 1, 3);
            checks.compare(
                fmt::format("finish_convolution_, {}, {} x {} x 7: bias{}{}", c10::toString(type),
                            channels, height, adds ? ", sum" : "", relu ? ", ReLU" : ""),
                0, [&](at::Device device) -> Tensors {
                  const auto y = values(1, device);
                  op.call(y, bias.to(device),
                          adds ? std::optional(values(2, device)) : std::nullopt, relu);
                  return {y};
                });
          }
}

}  // namespace

void check_operators(PartRun& run) {
  OperatorChecks checks(run);
  check_normalize(checks);
  check_finish_convolution(checks);
  check_nms(checks);
  check_proposals(checks);
  check_match(checks);
  check_roi_align(checks);
  check_mask_targets(checks);
  check_focal_loss(checks);
  checks.finish({"millrace::normalize", "millrace::finish_convolution_", "millrace::nms",
                 "millrace::proposals", "millrace::match", "millrace::label_counts",
                 "millrace::ranked_labels", "millrace::roi_align", "millrace::roi_align_backward",
                 "millrace::mask_targets", "millrace::focal_loss", "millrace::focal_loss_backward",
                 // Called for CPUs alone.
                 "millrace::winograd", "millrace::winograd_backward",
                 "millrace::sparse_convolution_backward", "millrace::roi_align_add_gradients_"});
}

}  // namespace millrace::cli
