// Properties that every detector must have.
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/models/layers/views.h"
#include "millrace/models/pyramid_detector.h"
#include "tests/models/small_batch.h"
#include "tests/support/tensors.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

std::vector<SmallKind> every_detector() {
  return {
      {"maskrcnn", kFewProposals + "mask.conv_dim = 8\n"},
      {"maskrcnn", kFewProposals + "mask.conv_dim = 8\nstyle = 'torchvision'\n"},
      {"maskrcnn", kFewOnC4 + "mask.conv_dim = 8\n"},
      {"fasterrcnn", kFewProposals},
      {"fasterrcnn", kFewOnC4 + "style = 'torchvision'\n"},
      {"fasterrcnn", kFewProposals +
                         "box.type = '4conv1fc'\nbox.norm = 'gn'\nfpn.norm = 'gn'\n"
                         "box.bbox_reg_loss_type = 'giou'\nbox.label_smoothing = 0.1\n"
                         "box.cls_agnostic_bbox_reg = true\nbackbone.deep_stem = true\n"},
      {"cascadercnn", kFewProposals + "masks = true\nmask.conv_dim = 8\n"},
      {"cascadercnn", kFewProposals + "style = 'torchvision'\nbox.type = '4conv1fc'\n"},
      {"retinanet", ""},
      {"retinanet", "style = 'torchvision'\n"},
      {"retinanet", "head.norm = 'gn'\nhead.bbox_reg_loss_type = 'giou'\nhead.num_convs = 1\n"}};
}

/// Returns the fraction of pixels in which mask `a` differs from the mirrored mask `b`; 0 if there
/// are no masks.
double unlike_mirrored(const coco::Rle& a, const coco::Rle& b) {
  const std::size_t width = a.width, pixels = width * a.height;
  std::vector<std::uint8_t> left(pixels), right(pixels);
  coco::decode(a, left.data());
  coco::decode(b, right.data());
  std::size_t unlike = 0;
  for (std::size_t i = 0; i < pixels; ++i)
    unlike += left[i] != right[i / width * width + width - 1 - i % width];
  return static_cast<double>(unlike) / static_cast<double>(std::max<std::size_t>(1, pixels));
}

class EveryDetector : public ::testing::TestWithParam<SmallKind> {
 protected:
  std::unique_ptr<Detector> detector(const std::string& more = {}) const {
    return small_detector(GetParam().name, GetParam().more + more);
  }
};

INSTANTIATE_TEST_SUITE_P(ByName, EveryDetector, ::testing::ValuesIn(every_detector()), title_of);

/// Returns copies of the buffers, such as running statistics.
std::vector<at::Tensor> buffers(const Detector& model) {
  std::vector<at::Tensor> values;
  for (const auto& parameter : model.parameters())
    if (parameter.kind == ParameterKind::buffer) values.push_back(parameter.value.clone());
  return values;
}

bool same_all(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return tensors_equal(x, y); });
}

TEST_P(EveryDetector, MeasuresLossesWithoutSideEffects) {
  const auto model = detector();
  const auto before = buffers(*model);
  const auto measured = [&] {
    const c10::NoGradGuard no_graph;
    return model->losses(small_batch(), {.step = 3, .without_training = true});
  };
  const auto first = measured();
  EXPECT_TRUE(same_all(buffers(*model), before));
  const auto second = measured();
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(tensors_equal(first[i].second, second[i].second)) << first[i].first;
    EXPECT_TRUE(std::isfinite(first[i].second.item<double>())) << first[i].first;
  }
  model->losses(small_batch(), {.step = 3});
  EXPECT_FALSE(same_all(buffers(*model), before)) << "a training step updates the statistics";
}

TEST_P(EveryDetector, HasFiniteGradientsForTrainableParameters) {
  const auto model = detector();
  total_of(model->losses(small_batch(), {})).backward();
  for (const auto& parameter : model->parameters()) {
    if (!parameter.trainable()) continue;
    ASSERT_TRUE(parameter.value.grad().defined()) << parameter.name;
    EXPECT_TRUE(parameter.value.grad().isfinite().all().item<bool>()) << parameter.name;
  }
}

TEST_P(EveryDetector, ReturnsZeroBoxLossWithoutObjects) {
  const auto model = detector();
  auto batch = small_batch();
  batch.objects = {{}, {}};
  const auto losses = model->losses(batch, {});
  for (const auto& [name, loss] : losses)
    if (name.find("box_reg") != std::string::npos || name == "loss_mask") {
      EXPECT_EQ(loss.item<double>(), 0) << name;
    }
  total_of(losses).backward();
}

TEST_P(EveryDetector, ReturnsSortedObjectsInsideImage) {
  const auto model = detector(kEverything);
  const auto batch = small_batch();
  const auto found = model->detect(batch);
  ASSERT_EQ(found.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_FALSE(found[i].empty());
    EXPECT_LE(found[i].size(), 20U);
    expect_inside(found[i], batch.images[i]);
    EXPECT_TRUE(std::ranges::is_sorted(found[i], std::ranges::greater(), &DetectedObject::score));
    for (const auto& object : found[i]) EXPECT_TRUE(object.label >= 0 && object.label < 3);
  }
}

TEST_P(EveryDetector, ReportsProposalsAndRawDetections) {
  const auto model = detector(kEverything);
  const auto batch = small_batch();
  const bool two_stages = GetParam().name != "retinanet";
  ASSERT_EQ(model->gives_notes(), two_stages);
  if (!two_stages) return;
  DetectionNotes notes;
  const auto found = model->detect(batch, &notes);
  for (std::size_t i = 0; i < 2; ++i) {
    expect_inside(notes.proposals[i], batch.images[i]);
    EXPECT_TRUE(
        std::ranges::is_sorted(notes.proposals[i], std::ranges::greater(), &DetectedObject::score));
    EXPECT_FALSE(notes.proposals[i].empty());
    EXPECT_GT(notes.raw[i].size(), found[i].size());
    for (const auto& object : found[i])
      EXPECT_TRUE(std::ranges::any_of(notes.raw[i], [&](const auto& one) {
        return one.label == object.label && one.score == object.score && one.box == object.box;
      }));
  }
  expect_same_objects(model->detect(batch)[0], found[0]);  // the same detections without notes
  EXPECT_FALSE(detector("test.aug_flip = true\n")->gives_notes());
}

TEST_P(EveryDetector, FindsSameObjectsInEqualViews) {
  const auto once = detector(kEverything)->detect(small_batch());
  const auto twice = detector(kEverything + "test.aug_scales = [1, 1]\n")->detect(small_batch());
  for (std::size_t i = 0; i < 2; ++i) {
    expect_same_objects(twice[i], once[i]);
    for (std::size_t d = 0; d < once[i].size(); ++d) EXPECT_EQ(once[i][d].mask, twice[i][d].mask);
  }
}

TEST_P(EveryDetector, FindsMirroredObjectsInMirroredImage) {
  const auto model = detector(kEverything + "test.aug_flip = true\n");
  const auto batch = small_batch();
  // Only the first image is compared. The second has padding, and boxes there have equal scores.
  const auto found = model->detect(batch)[0],
             mirrored = model->detect(apply_view(batch, {1, true}))[0];
  const auto width = static_cast<float>(batch.images[0].original_width);
  ASSERT_EQ(found.size(), mirrored.size());
  const auto fits = [&](const DetectedObject& a, const DetectedObject& b) {
    return a.label == b.label && std::abs(a.score - b.score) < 1e-5 &&
           std::abs(a.box.x1 - (width - b.box.x2)) < 1e-2 && std::abs(a.box.y2 - b.box.y2) < 1e-2 &&
           unlike_mirrored(a.mask, b.mask) < 0.02;
  };
  for (std::size_t d = 0; d < found.size(); ++d)  // nearly equal scores may swap
    EXPECT_TRUE(std::ranges::any_of(mirrored, [&](const auto& b) { return fits(found[d], b); }))
        << d << ": score " << found[d].score;
}

TEST_P(EveryDetector, MergesDetectionsFromSeveralScales) {
  const auto model = detector(kEverything + "test.aug_scales = [0.5, 1.0, 1.3]\n");
  const auto found = model->detect(small_batch());
  for (const auto& image : found) EXPECT_FALSE(image.empty());
}

TEST(Views, KeepBatchIfNotScaledOrFlipped) {
  const auto batch = small_batch();
  auto same = apply_view(batch, {});
  same.objects = batch.objects;
  EXPECT_EQ(digest(same), digest(batch));
}

TEST(Views, RestoreBoxesByInverseTransform) {
  const auto batch = small_batch();
  const auto boxes = at::tensor({1, 2, 30, 40, 50, 6, 70, 8}, at::kFloat).view({2, 4});
  for (const auto& view : {View{1.5, false}, View{0.6, true}, View{1, true}}) {
    const auto there = apply_view(batch, view).images[1];
    EXPECT_TRUE(tensors_close(
        out_of_view(into_view(boxes, batch.images[1], there, view), batch.images[1], there, view),
        boxes, 1e-6));
  }
}

TEST(RetinaNet, UsesTorchvisionTensorNames) {
  const auto model = small_detector("retinanet", "style = 'torchvision'\n");
  std::set<std::string> names;
  for (const auto& parameter : model->parameters())
    if (!parameter.name.starts_with("backbone.body.")) names.insert(parameter.name);
  std::set<std::string> expected;
  const auto add = [&](const std::string& name) {
    expected.insert({name + ".weight", name + ".bias"});
  };
  for (const auto* level : {"0", "1", "2"})
    for (const auto* blocks : {"inner_blocks.", "layer_blocks."})
      add(std::string("backbone.fpn.") + blocks + level + ".0");
  add("backbone.fpn.extra_blocks.p6"), add("backbone.fpn.extra_blocks.p7");
  for (const std::string head : {"classification_head", "regression_head"})
    for (const auto* conv : {"0", "1", "2", "3"}) add("head." + head + ".conv." + conv + ".0");
  add("head.classification_head.cls_logits"), add("head.regression_head.bbox_reg");
  EXPECT_EQ(names, expected);
  EXPECT_EQ(model->parameters().find("head.classification_head.cls_logits.weight")->value.size(0),
            9 * 4);
}

TEST(CascadeRcnn, NumbersTensorsByStage) {
  const auto model = small_detector("cascadercnn");
  for (const auto* name :
       {"roi_heads.box_head.0.fc6.weight", "roi_heads.box_predictor.2.bbox_pred.weight"})
    EXPECT_TRUE(model->parameters().find(name)) << name;
  EXPECT_EQ(model->parameters().find("roi_heads.box_predictor.2.bbox_pred.weight")->value.size(0),
            4);
}

TEST(HrNet, TrainsAndDetectsAsBackbone) {
  for (const auto& [name, more] :
       {std::pair<std::string, std::string>{"maskrcnn", kFewProposals}, {"retinanet", ""}}) {
    const auto model =
        small_detector(name, more + kEverything + "backbone.type = 'hrnet_w18'\n", "gn");
    total_of(model->losses(small_batch(), {})).backward();
    for (const auto& parameter : model->parameters())
      EXPECT_TRUE(!parameter.trainable() || parameter.value.grad().defined()) << parameter.name;
    for (const auto& image : model->detect(small_batch())) EXPECT_FALSE(image.empty());
  }
}

TEST(C4, HasExpectedTensorShapes) {
  const auto model = small_detector("maskrcnn", kFewOnC4 + "mask.conv_dim = 8\n");
  const auto shape = [&](const std::string& name) {
    const auto* found = model->parameters().find(name);
    return found ? found->value.sizes().vec() : std::vector<std::int64_t>();
  };
  using Sides = std::vector<std::int64_t>;
  EXPECT_EQ(shape("rpn.head.conv.0.0.weight"), Sides({64, 64, 3, 3}));
  EXPECT_EQ(shape("rpn.head.cls_logits.weight"), Sides({15, 64, 1, 1}));
  EXPECT_EQ(shape("roi_heads.box_predictor.cls_score.weight"), Sides({4, 128}));
  EXPECT_EQ(shape("roi_heads.mask_predictor.conv5_mask.weight"), Sides({128, 8, 2, 2}));
  for (const auto& parameter : model->parameters()) {
    EXPECT_EQ(parameter.name.find("fpn"), std::string::npos) << parameter.name;
    EXPECT_EQ(parameter.name.find("box_head"), std::string::npos) << parameter.name;
  }
}

TEST(C4, TrainsLastStageThroughBothHeads) {
  const auto model = small_detector("maskrcnn", kFewOnC4 + "mask.conv_dim = 8\n");
  const auto name = "backbone.body.layer4.1.conv2.weight";
  for (const std::string loss : {"loss_classifier", "loss_mask", "loss_objectness"}) {
    auto& weight = model->parameters().find(name)->value;
    weight.mutable_grad() = at::Tensor();
    for (const auto& [its_name, value] : model->losses(small_batch(), {}))
      if (its_name == loss) value.backward();
    const bool learns = weight.grad().defined() && weight.grad().abs().sum().item<float>() > 0;
    EXPECT_EQ(learns, loss != "loss_objectness") << loss;
  }
}

std::string complaint(const std::string& name, const std::string& table) {
  return message_of<ConfigError>(
      [&] { detectors().at(name).check(parse_config(table, "a.toml")); });
}

TEST(DetectorOptions, RejectContradictions) {
  const std::vector<std::array<std::string, 3>> wrong = {
      {"maskrcnn", "box.bbox_reg_weights = [1, 2, 3]", "a.toml:1:24: box.bbox_reg_weights"},
      {"cascadercnn", "masks = true\nroi.fg_iou_thresh = [0.5, 0.6]",
       "a.toml:2:21: roi.fg_iou_thresh"},
      {"cascadercnn", "box.cls_agnostic_bbox_reg = false",
       "a.toml:1:29: box.cls_agnostic_bbox_reg"},
      {"retinanet", "\nanchors.sizes = [32, 64]", "a.toml:2:17: "},
      {"retinanet", "anchors.rounding = 'square'", "exact | rounded | legacy"},
      {"retinanet", "head.bg_iou_thresh = 0.6", "head.fg_iou_thresh"},
      {"fasterrcnn", "rpn.bg_iou_thresh = 0.8", "rpn.fg_iou_thresh"},
      {"retinanet", "pixel_mean = 3", "pixel_mean"},
      {"retinanet", "test.aug_scales = []", "test.aug_scales"},
      {"retinanet", "test.nms_type = 'soft'", "hard | linear | gaussian"},
      {"fasterrcnn", "backbone.norm = 'syncbn'", "frozen_bn"},
      {"fasterrcnn", "backbone.type = 'resnet20'", "resnet18"},
      {"maskrcnn", "backbone.out = 'c4'\nbackbone.type = 'hrnet_w32'", "a.toml:1:16: backbone.out"},
      {"retinanet", "backbone.out = 'c4'", "unknown key 'backbone.out'"},
      {"cascadercnn", "\nbackbone.out = 'c4'", "a.toml:2:16: backbone.out"},
      {"maskrcnn", "backbone.out = 'c4'\nbox.pooler_resolution = 7", "mask.pooler_resolution"},
      {"maskrcnn", "anchors.sizes = [8, 16]\n", "a.toml:1:17: anchors.sizes"},
      {"retinanet", "rpn.batch_size_per_image = 5", "unknown key 'rpn'"}};
  for (const auto& [name, table, said] : wrong)
    EXPECT_THAT(complaint(name, table), HasSubstr(said)) << table;
}

TEST(DetectorOptions, RejectOptionsWithoutEffect) {
  EXPECT_THAT(complaint("maskrcnn", "\nbox.norm = 'gn'"), HasSubstr("a.toml:2:12: box.norm"));
  const std::vector<std::pair<std::string, std::string>> idle = {
      {"maskrcnn", "test.soft_nms_sigma = 0.7"},
      {"retinanet", "test.nms_type = 'linear'\ntest.soft_nms_sigma = 0.7"},
      {"retinanet", "test.nms_type = 'gaussian'\ntest.nms_thresh = 0.6"},
      {"cascadercnn", "box.bbox_reg_loss_type = 'giou'\nbox.smooth_l1_beta = 1"},
      {"retinanet", "head.bbox_reg_loss_type = 'giou'\nhead.smooth_l1_beta = 0.1"},
      {"retinanet", "head.num_convs = 0\nhead.norm = 'gn'"},
      {"maskrcnn", "backbone.type = 'resnet18'\nbackbone.stride_in_1x1 = false"},
      {"maskrcnn", "backbone.norm = 'none'\nnorm_eps = 0.001"},
      {"maskrcnn", "box.type = 'mean'\nbox.fc_dim = 5"},
      {"maskrcnn", "backbone.type = 'hrnet_w18'\nbackbone.width = 32"},
      {"maskrcnn", "backbone.type = 'hrnet_w18'\nbackbone.deep_stem = true"},
      {"retinanet", "backbone.type = 'hrnet_w18'\nfpn.p6_from = 'p5'"},
      {"maskrcnn", "backbone.type = 'resnet18'\nbackbone.groups = 32"},
      {"maskrcnn", "backbone.out = 'c4'\nfpn.out_channels = 128"},
      {"maskrcnn", "backbone.out = 'c4'\nfpn.norm = 'gn'"},
      {"maskrcnn", "backbone.out = 'c4'\nroi.canonical_box_size = 100"},
      {"maskrcnn", "backbone.out = 'c4'\nbox.fc_dim = 100"},
      {"maskrcnn", "backbone.norm = 'none'\nbackbone.zero_init_residual = true"}};
  for (const auto& [name, table] : idle)
    EXPECT_THAT(complaint(name, table), HasSubstr("changes nothing")) << table;
}

TEST(DetectorOptions, AcceptEffectiveOptionsAndDefaults) {
  const std::vector<std::pair<std::string, std::string>> fine = {
      {"cascadercnn", "style = 'torchvision'"},
      {"maskrcnn", "box.type = '4conv1fc'\nbox.norm = 'gn'"},
      {"maskrcnn", "test.nms_type = 'gaussian'\ntest.soft_nms_sigma = 0.7"},
      {"maskrcnn", "test.soft_nms_sigma = 0.5\nbox.norm = 'none'"},
      {"maskrcnn", "style = 'torchvision'\nbox.bbox_reg_loss_type = 'giou'"},
      {"maskrcnn", "backbone.norm = 'none'\nfpn.norm = 'gn'\nnorm_eps = 0.001"},
      {"fasterrcnn", "backbone.out = 'c4'\nanchors.sizes = [64, 256]"},
      {"maskrcnn", "backbone.out = 'c4'\nmask.num_convs = 2\nfpn.norm = 'gn'"},
      {"maskrcnn", "backbone.out = 'c4'\nbox.type = '2fc'"}};
  for (const auto& [name, table] : fine) EXPECT_EQ(complaint(name, table), "") << table;
}

}  // namespace
}  // namespace millrace::testing
