// What holds for every detector, whatever its parts.
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/models/pyramid_detector.h"
#include "tests/models/small_batch.h"
#include "tests/support/tensors.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::small_batch;
using testing::small_detector;

const std::string kTwoStages =
    "rpn.post_nms_top_n_train = 40\nrpn.post_nms_top_n_test = 40\nroi.batch_size_per_image = "
    "32\nbox.fc_dim = 32\n";

/// Detections of a network that has learned nothing.
const std::string kEverything =
    "test.score_thresh = 0.0\ntest.detections_per_img = 20\ntest.min_size = 0.1\n";

struct NamedDetector {
  std::string name, more;
  friend void PrintTo(const NamedDetector& one, std::ostream* out) {
    *out << one.name << " " << one.more;
  }
};

std::vector<NamedDetector> every_detector() {
  return {
      {"maskrcnn", kTwoStages + "mask.conv_dim = 8\n"},
      {"maskrcnn", kTwoStages + "mask.conv_dim = 8\nstyle = 'torchvision'\n"},
      {"fasterrcnn", kTwoStages},
      {"fasterrcnn", kTwoStages + "box.type = '4conv1fc'\nbox.norm = 'gn'\nfpn.norm = 'gn'\n"
                                  "box.bbox_reg_loss_type = 'giou'\nbox.label_smoothing = 0.1\n"
                                  "box.cls_agnostic_bbox_reg = true\nbackbone.deep_stem = true\n"},
      {"cascadercnn", kTwoStages + "masks = true\nmask.conv_dim = 8\n"},
      {"cascadercnn", kTwoStages + "style = 'torchvision'\nbox.type = '4conv1fc'\n"},
      {"retinanet", ""},
      {"retinanet", "style = 'torchvision'\n"},
      {"retinanet", "head.norm = 'gn'\nhead.bbox_reg_loss_type = 'giou'\nhead.num_convs = 1\n"}};
}

/// The share of pixels in which a mask is not the mirrored other one; 0 where there are none.
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

class EveryDetector : public ::testing::TestWithParam<NamedDetector> {
 protected:
  std::unique_ptr<Detector> detector(const std::string& more = {}) const {
    return small_detector(GetParam().name, GetParam().more + more);
  }
};

INSTANTIATE_TEST_SUITE_P(ByName, EveryDetector, ::testing::ValuesIn(every_detector()),
                         [](const auto& one) {
                           return one.param.name + std::to_string(one.index);
                         });

/// Running statistics and the like, joined.
std::vector<at::Tensor> buffers(const Detector& model) {
  std::vector<at::Tensor> values;
  for (const auto& parameter : model.parameters())
    if (parameter.kind == ParameterKind::buffer) values.push_back(parameter.value.clone());
  return values;
}

bool same_all(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return testing::same(x, y); });
}

TEST_P(EveryDetector, MeasuresItsLossesWithoutChangingAnything) {
  const auto model = detector();
  const auto before = buffers(*model);
  const auto measured = [&] {
    const c10::NoGradGuard no_graph;
    return model->losses(small_batch(), {.step = 3, .measured_only = true});
  };
  const auto first = measured();
  EXPECT_TRUE(same_all(buffers(*model), before));
  const auto second = measured();
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(testing::same(first[i].second, second[i].second)) << first[i].first;
    EXPECT_TRUE(std::isfinite(first[i].second.item<double>())) << first[i].first;
  }
  model->losses(small_batch(), {.step = 3});
  EXPECT_FALSE(same_all(buffers(*model), before)) << "a step of training follows the statistics";
}

TEST_P(EveryDetector, GivesEveryTrainedTensorAFiniteGradient) {
  const auto model = detector();
  at::Tensor total;
  for (const auto& [name, loss] : model->losses(small_batch(), {})) {
    EXPECT_TRUE(std::isfinite(loss.item<double>())) << name;
    total = total.defined() ? total + loss : loss;
  }
  total.backward();
  for (const auto& parameter : model->parameters()) {
    if (!parameter.trainable()) continue;
    ASSERT_TRUE(parameter.value.grad().defined()) << parameter.name;
    EXPECT_TRUE(parameter.value.grad().isfinite().all().item<bool>()) << parameter.name;
  }
}

TEST_P(EveryDetector, LearnsFromABatchWithoutObjectsThatThereIsNothing) {
  const auto model = detector();
  auto batch = small_batch();
  batch.objects = {{}, {}};
  double boxes = 0;
  at::Tensor total;
  for (const auto& [name, loss] : model->losses(batch, {})) {
    EXPECT_TRUE(std::isfinite(loss.item<double>())) << name;
    if (name.find("box_reg") != std::string::npos || name == "loss_mask")
      boxes += loss.item<double>();
    total = total.defined() ? total + loss : loss;
  }
  EXPECT_EQ(boxes, 0);
  total.backward();
}

TEST_P(EveryDetector, FindsObjectsInsideTheImageBestFirst) {
  const auto model = detector(kEverything);
  const auto batch = small_batch();
  const auto found = model->detect(batch);
  ASSERT_EQ(found.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_FALSE(found[i].empty());
    EXPECT_LE(found[i].size(), 20U);
    for (std::size_t d = 0; d < found[i].size(); ++d) {
      const auto& object = found[i][d];
      EXPECT_GE(object.box.x1, 0);
      EXPECT_LE(object.box.x2, static_cast<float>(batch.images[i].original_width));
      EXPECT_LE(object.box.y2, static_cast<float>(batch.images[i].original_height));
      EXPECT_TRUE(object.label >= 0 && object.label < 3);
      EXPECT_LE(object.score, found[i][d > 0 ? d - 1 : 0].score);
    }
  }
}

TEST_P(EveryDetector, FindsTheSameInTwoEqualViewsAsInOne) {
  const auto once = detector(kEverything)->detect(small_batch());
  const auto twice = detector(kEverything + "test.aug_scales = [1, 1]\n")->detect(small_batch());
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(once[i].size(), twice[i].size());
    for (std::size_t d = 0; d < once[i].size(); ++d) {
      EXPECT_EQ(once[i][d].score, twice[i][d].score);
      EXPECT_EQ(once[i][d].label, twice[i][d].label);
      EXPECT_EQ(once[i][d].box.x1, twice[i][d].box.x1);
      EXPECT_EQ(once[i][d].mask.counts, twice[i][d].mask.counts);
    }
  }
}

TEST_P(EveryDetector, WithMirroredViewsAMirroredImageHasTheMirroredObjects) {
  const auto model = detector(kEverything + "test.aug_flip = true\n");
  const auto batch = small_batch();
  // The first image: it has no padding, which would hold boxes of equal score.
  const auto found = model->detect(batch)[0], mirrored = model->detect(seen(batch, {1, true}))[0];
  const auto width = static_cast<float>(batch.images[0].original_width);
  ASSERT_EQ(found.size(), mirrored.size());
  const auto fits = [&](const DetectedObject& a, const DetectedObject& b) {
    return a.label == b.label && std::abs(a.score - b.score) < 1e-5 &&
           std::abs(a.box.x1 - (width - b.box.x2)) < 1e-2 && std::abs(a.box.y2 - b.box.y2) < 1e-2 &&
           unlike_mirrored(a.mask, b.mask) < 0.02;
  };
  for (std::size_t d = 0; d < found.size(); ++d)  // near-equal scores may change places
    EXPECT_TRUE(std::ranges::any_of(mirrored, [&](const auto& b) { return fits(found[d], b); }))
        << d << ": score " << found[d].score;
}

TEST_P(EveryDetector, MergesWhatItFindsInViewsOfOtherSizes) {
  const auto model = detector(kEverything + "test.aug_scales = [0.5, 1.0, 1.3]\n");
  const auto found = model->detect(small_batch());
  for (const auto& image : found) EXPECT_FALSE(image.empty());
}

TEST(Views, AreTheImageItselfWhereNothingChanges) {
  const auto batch = small_batch();
  auto same = seen(batch, {});
  same.objects = batch.objects;
  EXPECT_EQ(digest(same), digest(batch));
}

TEST(Views, BoxesComeBackFromWhereTheyWent) {
  const auto batch = small_batch();
  const auto boxes = at::tensor({1, 2, 30, 40, 50, 6, 70, 8}, at::kFloat).view({2, 4});
  for (const auto& view : {View{1.5, false}, View{0.6, true}, View{1, true}}) {
    const auto there = seen(batch, view).images[1];
    EXPECT_TRUE(testing::close(
        out_of_view(into_view(boxes, batch.images[1], there, view), batch.images[1], there, view),
        boxes, 1e-6));
  }
}

TEST(RetinaNet, ItsTensorsAreNamedAsInTorchvision) {
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

TEST(CascadeRcnn, NumbersItsStages) {
  const auto model = small_detector("cascadercnn");
  for (const auto* name :
       {"roi_heads.box_head.0.fc6.weight", "roi_heads.box_predictor.2.bbox_pred.weight"})
    EXPECT_TRUE(model->parameters().find(name)) << name;
  EXPECT_EQ(model->parameters().find("roi_heads.box_predictor.2.bbox_pred.weight")->value.size(0),
            4);
}

std::string complaint(const std::string& name, const std::string& table) {
  return testing::message_of<ConfigError>(
      [&] { detectors().at(name).check(parse_config(table, "a.toml")); });
}

TEST(DetectorOptions, ThatContradictEachOtherAreRefusedWithTheirPlace) {
  EXPECT_THAT(complaint("maskrcnn", "box.bbox_reg_weights = [1, 2, 3]"),
              HasSubstr("a.toml:1:24: box.bbox_reg_weights"));
  EXPECT_THAT(complaint("cascadercnn", "masks = true\nroi.fg_iou_thresh = [0.5, 0.6]"),
              HasSubstr("a.toml:2:21: roi.fg_iou_thresh wants other box.bbox_reg_weights: four "
                        "numbers, dx dy dw dh, "
                        "for each number of roi.fg_iou_thresh"));
  EXPECT_THAT(complaint("cascadercnn", "box.cls_agnostic_bbox_reg = false"),
              HasSubstr("a.toml:1:29: box.cls_agnostic_bbox_reg must be true for a cascade"));
  EXPECT_THAT(complaint("retinanet", "\nanchors.sizes = [32, 64]"), HasSubstr("a.toml:2:17: "));
  EXPECT_THAT(complaint("retinanet", "head.bg_iou_thresh = 0.6"), HasSubstr("head.fg_iou_thresh"));
  EXPECT_THAT(complaint("fasterrcnn", "rpn.bg_iou_thresh = 0.8"), HasSubstr("rpn.fg_iou_thresh"));
  EXPECT_THAT(complaint("retinanet", "pixel_mean = 3"), HasSubstr("three numbers"));
  EXPECT_THAT(complaint("retinanet", "test.aug_scales = []"), HasSubstr("at least one scale"));
  EXPECT_THAT(complaint("retinanet", "test.nms_type = 'soft'"),
              HasSubstr("hard | linear | gaussian"));
  EXPECT_THAT(complaint("fasterrcnn", "backbone.norm = 'syncbn'"), HasSubstr("is not one of"));
  EXPECT_THAT(complaint("retinanet", "rpn.batch_size_per_image = 5"),
              HasSubstr("unknown key 'rpn'"));
  EXPECT_EQ(complaint("cascadercnn", "style = 'torchvision'"), "");
}

TEST(DetectorOptions, ThatChangeNothingBesideTheOthersAreRefusedWithTheirPlace) {
  EXPECT_EQ(complaint("maskrcnn", "\nbox.norm = 'gn'"),
            "a.toml:2:12: box.norm = \"gn\" changes nothing: box.type = \"2fc\" has no "
            "convolutions; leave it out, or at \"none\"");
  const std::vector<std::pair<std::string, std::string>> idle = {
      {"maskrcnn", "test.soft_nms_sigma = 0.7"},
      {"retinanet", "test.nms_type = 'linear'\ntest.soft_nms_sigma = 0.7"},
      {"retinanet", "test.nms_type = 'gaussian'\ntest.nms_thresh = 0.6"},
      {"cascadercnn", "box.bbox_reg_loss_type = 'giou'\nbox.smooth_l1_beta = 1"},
      {"retinanet", "head.bbox_reg_loss_type = 'giou'\nhead.smooth_l1_beta = 0.1"},
      {"retinanet", "head.num_convs = 0\nhead.norm = 'gn'"},
      {"maskrcnn", "backbone.type = 'resnet18'\nbackbone.stride_in_1x1 = false"},
      {"maskrcnn", "backbone.norm = 'none'\nnorm_eps = 0.001"},
      {"maskrcnn", "backbone.norm = 'none'\nbackbone.zero_init_residual = true"}};
  for (const auto& [name, table] : idle)
    EXPECT_THAT(complaint(name, table), HasSubstr("changes nothing")) << table;
}

TEST(DetectorOptions, ThatHaveAUseOrSayTheDefaultAreTaken) {
  const std::vector<std::pair<std::string, std::string>> fine = {
      {"maskrcnn", "box.type = '4conv1fc'\nbox.norm = 'gn'"},
      {"maskrcnn", "test.nms_type = 'gaussian'\ntest.soft_nms_sigma = 0.7"},
      {"maskrcnn", "test.soft_nms_sigma = 0.5\nbox.norm = 'none'"},
      {"maskrcnn", "style = 'torchvision'\nbox.bbox_reg_loss_type = 'giou'"},
      {"maskrcnn", "backbone.norm = 'none'\nfpn.norm = 'gn'\nnorm_eps = 0.001"}};
  for (const auto& [name, table] : fine) EXPECT_EQ(complaint(name, table), "") << table;
}

}  // namespace
}  // namespace millrace
