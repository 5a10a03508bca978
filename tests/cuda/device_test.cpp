// The operators on a GPU against those on the CPU; skipped without a GPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "millrace/models/maskrcnn/mask_targets.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/ops/nms.h"
#include "millrace/models/ops/proposals.h"
#include "millrace/models/ops/roi_align.h"
#include "millrace/plugins/loader.h"
#include "millrace/trainer/detector/device_tools.h"
#include "tests/cuda/on_a_gpu.h"
#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

at::Tensor gpu(const at::Tensor& tensor) { return tensor.to(at::kCUDA); }

at::Tensor rois(std::int64_t count) {
  return at::cat(
      {random_values({count, 1}, 0, 2, 3).floor(), random_boxes(count, 500, 300, 4) - 40}, 1);
}

struct Pooled {
  at::Tensor output;
  std::vector<at::Tensor> gradients;
};

/// Three levels of 70 channels, pooled and weighted.
Pooled pool(at::Device device, at::ScalarType type, const RoiAlignOptions& options) {
  std::vector<at::Tensor> maps;
  for (const std::int64_t side : {128, 64, 32})
    maps.push_back(random_values({2, 70, side, side}, -1, 1, 1)
                       .to(type)
                       .to(device)
                       .contiguous(at::MemoryFormat::ChannelsLast)
                       .requires_grad_());
  const auto levels = random_values({300}, 0, 3, 7).floor().to(at::kLong).to(device);
  const auto output = roi_align(maps, rois(300).to(device), levels, options);
  output.backward(random_values(output.sizes(), -1, 1, 5).to(type).to(device));
  return {output.detach().cpu(),
          {maps[0].grad().cpu(), maps[1].grad().cpu(), maps[2].grad().cpu()}};
}

TEST_F(OnAGpu, RoiAlignAndItsGradientAreTheCpus) {
  for (const bool aligned : {false, true})
    for (const std::int64_t ratio : {0, 2}) {
      const RoiAlignOptions options{7, 7, 0.25, ratio, aligned};
      const auto expected = pool(at::kCPU, at::kFloat, options);
      for (const auto& [type, tolerance] :
           {std::pair{at::kFloat, 1e-5}, {at::kHalf, 4e-3}, {at::kBFloat16, 3e-2}}) {
        const auto found = pool(at::kCUDA, type, options);
        EXPECT_TRUE(close(found.output, expected.output, tolerance)) << type;
        for (std::size_t i = 0; i < 3; ++i)
          EXPECT_TRUE(close(found.gradients[i], expected.gradients[i], tolerance)) << type;
        const auto again = pool(at::kCUDA, type, options);
        for (std::size_t i = 0; i < 3; ++i)
          EXPECT_TRUE(same(found.gradients[i], again.gradients[i])) << type;
      }
    }
}

TEST_F(OnAGpu, NmsKeepsTheSameBoxes) {
  const auto boxes = random_boxes(3000, 400, 120, 1), scores = random_values({3000}, 0, 1, 2);
  const auto groups = random_values({3000}, 0, 9, 3).floor().to(at::kLong);
  EXPECT_TRUE(same(batched_nms(gpu(boxes), gpu(scores), gpu(groups), 0.5).cpu(),
                   batched_nms(boxes, scores, groups, 0.5)));
}

TEST_F(OnAGpu, ProposalsAreTheCpus) {
  const std::vector<std::int64_t> counts{6000, 1500, 300};
  const auto logits = random_values({2, 7800}, -5, 5, 1),
             deltas = random_values({2, 7800, 4}, -1, 1, 2);
  const auto anchors = random_boxes(7800, 500, 200, 3);
  const std::vector<std::pair<double, double>> sizes{{500, 400}, {300, 520}};
  for (const bool by_probability : {false, true}) {
    const ProposalOptions options{.by_probability = by_probability};
    const auto expected = proposals(logits, deltas, anchors, counts, sizes, options);
    const auto found = proposals(gpu(logits), gpu(deltas), gpu(anchors), counts, sizes, options);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(close(found[i].cpu(), expected[i], 1e-5));
  }
}

TEST_F(OnAGpu, MatchesAreTheCpus) {
  const auto truth = random_boxes(40, 500, 200, 1), boxes = random_boxes(20000, 500, 200, 2);
  const MatchOptions options{.low = 0.3, .high = 0.7, .low_quality = true};
  const auto expected = match(truth, boxes, options);
  const auto found = match(gpu(truth), gpu(boxes), options);
  EXPECT_TRUE(same(found.truth.cpu(), expected.truth));
  EXPECT_TRUE(same(found.label.cpu(), expected.label));
}

TEST_F(OnAGpu, MaskTargetsAreTheCpus) {
  const std::vector<coco::Segmentation> shapes{
      std::vector<coco::Polygon>{{10, 10, 90, 20, 60, 80}, {5, 60, 30, 60, 20, 90}},
      std::vector<coco::Polygon>{{0, 0, 50, 0, 50, 50, 0, 50}}};
  const std::vector<const coco::Segmentation*> each{&shapes[0], &shapes[1], &shapes[0]};
  const auto boxes = random_boxes(3, 20, 70, 1);
  EXPECT_TRUE(same(mask_targets(each, gpu(boxes), 28, "binary", 100, 100).cpu(),
                   mask_targets(each, boxes, 28, "binary", 100, 100)));
}

// What `trainer check-gpu` asks of the plug-in.
TEST_F(OnAGpu, WorkIsRecordedAsAGraphThatReadsTheSameMemoryEachTime) {
  const auto tools = device_tools().at("cuda").create();
  const auto in = gpu(at::ones({1000})), out = gpu(at::zeros({1000}));
  const auto graph = tools->recorded([&] { out.copy_(in * 2); });
  in.fill_(3);
  graph();
  EXPECT_TRUE(same(out.cpu(), at::full({1000}, 6.F)));
  EXPECT_FALSE(tools->facts().empty());
}

TEST_F(OnAGpu, ASumOverOneGpuChangesNothing) {
  const auto values = gpu(random_values({100000}, -1, 1, 1));
  const auto before = values.clone();
  EXPECT_THAT(device_tools().at("cuda").create()->sum_alone(values), ::testing::HasSubstr("NCCL"));
  EXPECT_TRUE(same(values, before));
}

}  // namespace
}  // namespace millrace::testing
