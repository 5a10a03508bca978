// Compares every operator of millrace/models/ops/operators.cpp on the device with the CPU, for up
// to 4,000 boxes and for unusual input. Two runs on the device must return the same bytes.
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <numbers>
#include <optional>
#include <set>

#include "millrace/models/backbones/pyramid.h"
#include "millrace/models/detector/device_tools.h"
#include "millrace/models/detector/precision.h"
#include "millrace/models/layers/convolution.h"
#include "millrace/models/ops/dispatched.h"
#include "millrace/models/ops/focal_loss.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/ops/nms.h"
#include "millrace/models/ops/proposals.h"
#include "millrace/models/ops/roi_align.h"
#include "millrace/models/ops/sampling.h"
#include "tests/gpu/on_device.h"
#include "tests/models/operators.h"
#include "tests/support/mask_targets.h"

namespace millrace::testing {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Returns the largest difference relative to the largest expected value or 1, whichever is larger.
double error_of(const at::Tensor& found, const at::Tensor& expected) {
  if (found.sizes() != expected.sizes()) return kInfinite;
  if (expected.numel() == 0) return 0;
  const auto wanted = expected.to(at::kDouble);
  return ((found.to(at::kDouble) - wanted).abs().max() / wanted.abs().max().clamp_min(1))
      .item<double>();
}

/// Returns `count` integers below `below`.
at::Tensor whole(std::int64_t count, std::int64_t below, std::uint64_t seed) {
  return random_values({count}, 0, static_cast<double>(below), seed).floor().to(at::kLong);
}

class Operators : public OnDevice {
 protected:
  /// Expects two runs on the device to return the same bytes, and error_of() relative to the CPU's
  /// result to be at most `tolerance`.
  void compare(const std::string& what, double tolerance,
               const std::function<Tensors(at::Device)>& results) const {
    SCOPED_TRACE(what);
    const auto expected = results(at::kCPU), found = results(device_), again = results(device_);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(tensors_equal(again[i], found[i])) << "tensor " << i << " of the second run";
      EXPECT_LE(error_of(found[i].cpu(), expected[i]), tolerance) << "tensor " << i;
    }
  }

  /// Returns the numbers of boxes to test.
  std::vector<std::int64_t> counts() const {
    if (small_) return {0, 1, 33};
    return {0, 1, 2, 7, 33, 63, 64, 65, 300, 1000, 4000};
  }
};

TEST_F(Operators, MatchCpuNms) {
  for (const auto count : counts())
    for (const std::int64_t groups : {1, 9}) {
      auto all = random_boxes(count, 400, 120, 1);
      if (count > 20) {
        all[3].copy_(all[7]);                                  // ties
        all[5].narrow(0, 2, 2).copy_(all[5].narrow(0, 0, 2));  // empty box
      }
      const auto scores = (random_values({count}, 0, 1, 2) * 64).floor() / 64;
      const auto group = whole(count, groups, 3);
      compare(fmt::format("{} boxes in {} groups", count, groups), 0,
              [&](at::Device on) -> Tensors {
                return {batched_nms(all.to(on), scores.to(on), group.to(on), 0.5)};
              });
    }
}

class Proposing : public Operators {
 protected:
  Proposing() {
    for (const auto count : levels_) total_ += count;
    anchors_ = random_boxes(total_, 500, 200, 3);
    logits_ = random_values({2, total_}, -5, 5, 1);
    deltas_ = random_values({2, total_, 4}, -1, 1, 2);
  }

  void compare_with(const std::string& what, const ProposalOptions& options) const {
    compare(what, 1e-5, [&](at::Device on) {
      auto each = proposals(logits_.to(on), deltas_.to(on), anchors_.to(on), levels_,
                            {{500, 400}, {300, 520}}, options)
                      .each();
      // Boxes may swap, since sigmoids are rounded differently.
      if (options.by_probability)
        for (auto& boxes : each) boxes = std::get<0>(boxes.sort(0));
      return each;
    });
  }
  void compare_all(const std::string& what) const {
    for (const bool by_probability : {false, true})
      for (const std::int64_t kept : {1, 1000, 2000})
        compare_with(fmt::format("{}, {} kept, by probability: {}", what, kept, by_probability),
                     {.before = kept, .after = kept, .by_probability = by_probability});
  }

  const std::vector<std::int64_t> levels_ =
      small_ ? std::vector<std::int64_t>{60, 15, 1}
             : std::vector<std::int64_t>{60000, 15000, 3750, 945, 252};
  std::int64_t total_ = 0;
  at::Tensor anchors_, logits_, deltas_;
};

TEST_F(Proposing, MatchesCpu) {
  compare_all("plain");
  compare_with("7 boxes", {.before = 7, .after = 3});
  compare_with("large boxes", {.before = 4000, .after = 4000, .min_side = 4});
}

TEST_F(Proposing, MatchesCpuForEqualLogits) {
  logits_ = (logits_ * 4).round() / 4;
  compare_all("ties");
  logits_.zero_();
  compare_all("all equal");
}

TEST_F(Proposing, MatchesCpuForNanAndInfinity) {
  logits_[0][3] = kNan, logits_[1][5] = kInfinite, logits_[1][6] = -kInfinite;
  deltas_[0][7][2] = kNan, deltas_[1][9][3] = kInfinite, deltas_[0][11][2] = 1e9F;
  compare_all("odd");
  const auto none = proposals(at::full_like(logits_, kNan).to(device_), deltas_.to(device_),
                              anchors_.to(device_), levels_, {{500, 400}, {300, 520}}, {});
  EXPECT_TRUE(tensors_equal(none.counts.cpu(), longs({0, 0})));
  EXPECT_TRUE(none.boxes.eq(0).all().item<bool>());
}

class Matching : public Operators {
 protected:
  /// Compares matches for the truths of several images; `begins` has the first truth of each image.
  void compare_images(const std::string& what, const at::Tensor& truth,
                      const std::vector<std::int64_t>& begins, const at::Tensor& boxes) const {
    for (const bool low_quality : {false, true})
      compare(fmt::format("{}, low quality: {}", what, low_quality), 0,
              [&](at::Device on) -> Tensors {
                const auto all =
                    match(truth.to(on), longs(begins).to(on), boxes.to(on),
                          {.bg_iou_thresh = 0.3, .fg_iou_thresh = 0.7, .low_quality = low_quality});
                return {all.truth, all.label};
              });
  }
};

TEST_F(Matching, MatchesCpuForOneImage) {
  auto all_counts = counts();
  if (!small_) all_counts.push_back(268569);  // anchors for 800 x 1344 pixels
  for (const auto count : all_counts)
    for (const std::int64_t truths : {0, 1, 3, 40, 500, 4000}) {
      if (truths > (small_ ? 3 : count > 4000 ? 500 : 4000)) continue;
      auto own = random_boxes(truths, 500, 200, 1);
      if (truths > 2) own[1].copy_(own[0]), own[2] += 1e5;  // a duplicate, a box without overlap
      const auto boxes = random_boxes(count, 500, 200, 2);
      for (const bool low_quality : {false, true})
        compare(fmt::format("{} boxes, {} objects, low quality: {}", count, truths, low_quality), 0,
                [&](at::Device on) -> Tensors {
                  const auto found = match(
                      own.to(on), boxes.to(on),
                      {.bg_iou_thresh = 0.3, .fg_iou_thresh = 0.7, .low_quality = low_quality});
                  return {found.truth, found.label};
                });
    }
}

TEST_F(Matching, MatchesCpuForSeveralImages) {
  for (const auto count : counts())
    compare_images(fmt::format("{} boxes per image", count), random_boxes(40, 500, 200, 1),
                   {0, 17, 17, 40}, random_boxes(3 * count, 500, 200, 2).view({3, count, 4}));
  compare_images("same boxes in each image", random_boxes(40, 500, 200, 1), {0, 0, 40},
                 random_boxes(small_ ? 101 : 20'001, 500, 200, 2).unsqueeze(0).expand({2, -1, -1}));
  compare_images("no truth", at::zeros({0, 4}), {0, 0}, random_boxes(10, 500, 200, 2).unsqueeze(0));
}

TEST_F(Operators, MatchCpuSampling) {
  for (const std::int64_t count : {1, 1023, 1024, 1025, small_ ? 3000 : 268569}) {
    const auto labels = random_values({3, count}, -1, 2, 9).floor().to(at::kChar);
    labels[1].fill_(-1);
    compare(fmt::format("{} candidates", count), 0, [&](at::Device on) {
      const auto label = labels.to(on);
      const auto rng = [](std::size_t image) { return Rng{5, image}; };
      Tensors results;
      for (const auto& samples :
           sample_candidates({make_sampling_task(label, 256, 0.5, rng), {label, count, 0, rng}}))
        for (const auto& tensor : {samples.rows, samples.image, samples.slots, samples.foreground})
          results.push_back(tensor);
      return results;
    });
  }
}

/// Returns regions [count, 5] (image index, box); some boxes are outside, empty or not finite.
at::Tensor odd_rois(std::int64_t count) {
  auto rois = at::cat(
      {whole(count, 2, 3).to(at::kFloat).unsqueeze(1), random_boxes(count, 600, 400, 4) - 60}, 1);
  if (count < 10) return rois;
  rois[0].narrow(0, 3, 2).copy_(rois[0].narrow(0, 1, 2));
  rois[1].narrow(0, 1, 4).add_(1e6);
  rois[2][1] = kNan, rois[3][4] = kInfinite;
  rois[4].narrow(0, 1, 4).copy_(at::tensor({0.F, 0.F, 5000.F, 5000.F}));
  rois[5].narrow(0, 1, 4).copy_(at::tensor({90.F, 80.F, 10.F, 20.F}));  // inverted
  return rois;
}

struct RoiCase {
  std::int64_t count, channels;
  RoiAlignOptions options;
  at::ScalarType type;
};

/// Returns the output of pooling from four levels, and the gradient of each level. The CPU computes
/// in fp32 from the values that the device gets.
Tensors pooled(const RoiCase& what, at::Device on) {
  const auto type = on.is_cpu() ? at::kFloat : what.type;
  const auto given = [&](const at::Tensor& values) { return values.to(what.type).to(type).to(on); };
  Tensors maps;
  std::int64_t height = 100, width = 168;
  for (std::uint64_t level = 0; level < 4;
       ++level, height = (height + 1) / 2, width = (width + 1) / 2)
    maps.push_back(given(random_values({2, what.channels, height, width}, -1, 1, 10 + level))
                       .contiguous(at::MemoryFormat::ChannelsLast)
                       .requires_grad_());
  const auto output =
      roi_align(maps, odd_rois(what.count).to(on), whole(what.count, 4, 7).to(on), what.options);
  output.backward(given(random_values(output.sizes(), -1, 1, 5)));
  Tensors results{output.detach()};
  for (const auto& map : maps) results.push_back(map.grad());
  return results;
}

class RoiAlign : public Operators, public ::testing::WithParamInterface<at::ScalarType> {
 protected:
  void compare_pooled(std::int64_t count, std::int64_t channels,
                      const RoiAlignOptions& options) const {
    const auto type = GetParam();
    const double tolerance = type == at::kFloat ? 1e-5 : type == at::kHalf ? 4e-3 : 3e-2;
    compare(fmt::format("{} regions, {} channels, {} x {} cells, {} samples, aligned: {}", count,
                        channels, options.height, options.width, options.sampling_ratio,
                        options.aligned),
            tolerance, [&](at::Device on) {
              return pooled({count, channels, options, type}, on);
            });
  }
};

TEST_P(RoiAlign, MatchesCpuOutputAndGradients) {
  for (const auto count : counts()) compare_pooled(count, small_ ? 3 : 256, {7, 7, 0.25, 2, true});
  const auto count = small_ ? 20 : 300;
  for (const bool aligned : {false, true})
    for (const std::int64_t samples : {0, 2})
      for (const std::int64_t channels : {1, 70})
        compare_pooled(count, channels, {14, 14, 0.25, samples, aligned});
  for (const std::int64_t channels : {3, 8, 256}) {
    if (small_ && channels > 8) continue;
    compare_pooled(65, channels, {7, 7, 0.25, 0, true});
  }
  compare_pooled(count, 5, {3, 5, 0.25, 0, true});
  compare_pooled(5, 8, {1, 3, 0.25, 0, true});
  compare_pooled(5, 8, {14, 128, 0.25, 0, true});
}

TEST_P(RoiAlign, RejectsTooManyCells) {
  if (!tested().on_cuda()) GTEST_SKIP() << "only plugins/cuda has this limit";
  EXPECT_THROW(pooled({1, 8, {257, 7, 0.25, 0, true}, GetParam()}, device_), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Types, RoiAlign, ::testing::Values(at::kFloat, at::kHalf, at::kBFloat16),
                         [](const auto& one) { return std::string(c10::toString(one.param)); });

/// Returns a star with `points` points around a random position in a square of 100 pixels.
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

TEST_F(Operators, MatchCpuMaskTargets) {
  for (const auto count : counts()) {
    Rng rng{11};
    std::vector<coco::Segmentation> shapes;
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<coco::Polygon> parts;
      for (std::uint64_t part = 0; part < rng.below(4); ++part)  // some shapes have no part
        parts.push_back(star(3 + rng.below(40), rng));
      shapes.emplace_back(std::move(parts));
    }
    std::vector<const coco::Segmentation*> each;
    for (const auto& shape : shapes) each.push_back(&shape);
    auto around = random_boxes(count, 60, 70, 12) - 10;
    if (count > 10) around[3].narrow(0, 2, 2).copy_(around[3].narrow(0, 0, 2));  // empty
    for (const std::int64_t size : {1, 14, 28, 29, 65, 112, 256}) {
      if (count * size * size > 5'000'000) continue;  // larger cases test nothing new
      compare(fmt::format("{} shapes, {} x {} cells", count, size, size), 0,
              [&](at::Device on) -> Tensors {
                return {mask_targets(each, around.to(on), size, MaskTarget::binary, 100, 100)};
              });
    }
  }
}

TEST_F(Operators, MatchCpuFocalLossAndGradient) {
  for (const auto count : counts())
    for (const std::int64_t classes : {1, 7, 80})
      for (const double gamma : {0., 1.5, 2.}) {
        auto logits = random_values({count, classes}, -8, 8, 1);
        if (count > 10) logits[2][0] = 80.F, logits[3][0] = -80.F;
        const auto own = whole(count, classes + 2, 2) + kIgnored;
        compare(fmt::format("{} anchors, {} classes, gamma {}", count, classes, gamma), 1e-5,
                [&](at::Device on) -> Tensors {
                  const auto x = logits.detach().to(on, at::kFloat, false, true).requires_grad_();
                  const auto sum = focal_loss_sum(x, own.to(on), {.gamma = gamma});
                  (sum * 3).backward();
                  return {sum.detach(), x.grad()};
                });
      }
}

TEST_F(Operators, MatchCpuNormalizationBitwise) {
  for (const int images : {1, 3, 70}) {  // 70 images need two kernel launches
    Batch batch{.height = 33, .width = 47};
    for (int i = 0; i < images; ++i)
      batch.images.push_back({.width = 47 - i % 5, .height = 33 - i % 7});
    batch.pixels.reset(new std::uint8_t[batch.bytes()]);
    for (std::size_t i = 0; i < batch.bytes(); ++i)
      batch.pixels[i] = static_cast<std::uint8_t>(i * 7 % 251);
    for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16})
      for (const auto order : {ChannelOrder::bgr, ChannelOrder::rgb}) {
        const PixelOptions options{.pixel_order = order, .pixel_std = {57.1, 58.2, 59.3}};
        compare(fmt::format("{} images, {}, {}", images, c10::toString(type), value_name(order)), 0,
                [&](at::Device on) -> Tensors {
                  const ComputeIn precision(on.is_cpu() ? at::kFloat : type, on.type());
                  return {normalize(batch, options, on, {64, 64}).to(type)};
                });
      }
  }
}

TEST_F(Operators, MatchCpuConvolutionEpilogue) {
  static const auto op =
      dispatched<void(const at::Tensor&, const std::optional<at::Tensor>&,
                      const std::optional<at::Tensor>&, bool)>("millrace::finish_convolution_");
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16})
    for (const std::int64_t channels : {1, 3, 64, 70, 72})
      for (const std::int64_t height : {0, 1, 13})
        for (int which = 0; which < 8; ++which)
          compare(fmt::format("{}, {} channels, {} rows, {}", c10::toString(type), channels, height,
                              which),
                  0, [&](at::Device on) -> Tensors {
                    const auto values = [&](std::uint64_t seed) {
                      return random_values({2, channels, height, 7}, -1, 1, seed)
                          .to(type)
                          .to(on)
                          .contiguous(at::MemoryFormat::ChannelsLast);
                    };
                    auto y = values(1);
                    op.call(y,
                            which & 1 ? std::optional(random_values({channels}, -1, 1, 3).to(on))
                                      : std::nullopt,
                            which & 2 ? std::optional(values(2)) : std::nullopt, which & 4);
                    return {y};
                  });
}

TEST_F(Operators, MatchCpuConvolutionAndGradients) {
  for (const bool add : {false, true})
    // TF32 has 10 mantissa bits.
    compare(add ? "with addition" : "alone", 3e-3, [&](at::Device on) -> Tensors {
      const auto values = [&](at::IntArrayRef sizes, std::uint64_t seed) {
        return random_values(sizes, -1, 1, seed)
            .to(on)
            .contiguous(at::MemoryFormat::ChannelsLast)
            .requires_grad_();
      };
      const auto x = values({2, 8, 9, 11}, 1), weight = values({16, 8, 3, 3}, 2),
                 more = values({2, 16, 5, 6}, 3);
      const auto scale = random_values({16}, 0.5, 2, 4).to(on);
      const auto bias = random_values({16}, -1, 1, 5).to(on).requires_grad_();
      const auto y = convolve(x, {weight, scale, bias, 2, 1},
                              {.add = add ? more : at::Tensor(), .activation = Activation::relu});
      y.backward(random_values(y.sizes(), -1, 1, 6).to(on));
      return {y.detach(), x.grad(), weight.grad(), bias.grad()};
    });
}

TEST_F(Operators, HaveTests) {
  const std::set<std::string> known{
      "millrace::normalize", "millrace::finish_convolution_", "millrace::nms",
      "millrace::proposals", "millrace::match", "millrace::label_counts", "millrace::ranked_labels",
      "millrace::roi_align", "millrace::roi_align_backward", "millrace::mask_targets",
      "millrace::focal_loss", "millrace::focal_loss_backward",
      // Operators that run only on CPUs.
      "millrace::winograd", "millrace::winograd_backward", "millrace::sparse_convolution_backward",
      "millrace::roi_align_add_gradients_"};
  for (const auto& op : c10::Dispatcher::singleton().getAllOpNames())
    EXPECT_TRUE(!op.name.starts_with("millrace::") || known.contains(op.name))
        << op.name << " has no test";
}

// The plug-in's functions that `trainer check-gpu` and training runs use.
class Tools : public OnDevice {
 protected:
  std::unique_ptr<DeviceTools> make() const { return device_tools().at(tested().kind).create(); }
};

TEST_F(Tools, DescribeDevice) { EXPECT_FALSE(make()->facts().empty()); }

TEST_F(Tools, ReplayGraphsOnSameMemory) {
  const auto in = at::ones({1000}).to(device_), out = at::zeros({1000}).to(device_);
  const auto graph = make()->recorded([&] { out.copy_(in * 2); });
  in.fill_(3);
  graph();
  EXPECT_TRUE(tensors_equal(out.cpu(), at::full({1000}, 6.F)));
}

TEST_F(Tools, KeepValuesInSumOverOneDevice) {
  const auto values = random_values({small_ ? 1000 : 16 << 20}, -1, 1, 1).to(device_);
  const auto before = values.clone();
  const auto library = make()->sum_alone(values);
  EXPECT_THAT(library, ::testing::HasSubstr(tested().on_cuda() ? "NCCL" : "nothing"));
  EXPECT_TRUE(tensors_equal(values, before));
}

}  // namespace
}  // namespace millrace::testing
