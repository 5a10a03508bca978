// What detectors' options were called before: their old names are errors, and tables that an
// earlier version has written are read with the new ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/base/renamed_keys.h"
#include "millrace/models/detector/make_detector.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

/// [model] as the version before the names changed has written it into a run's config.toml: what
/// both detectors have, and each one's own.
const std::string kBoth = R"(backbone = "resnet18"
width = 32
norm = "sync_bn"
freeze_at = 0
pixel_order = "bgr"
pixel_mean = [103.53, 116.28, 123.675]
pixel_std = [57.375, 57.12, 58.395]
fpn_channels = 64
fpn_norm = "sync_bn"
weights = ""
style = "detectron2"
norm_epsilon = 1e-05
stride_in_1x1 = true
deep_stem = false
pool_shortcut = false
zero_init_residual = false
box_offset = 0.0
max_log_scale = 4.135166556742356
score_threshold = 0.05
detection_nms = 0.5
nms_kind = "hard"
soft_nms_sigma = 0.5
detections = 100
detection_min_side = 0.0
test_scales = [1.0]
test_flip = false
anchor_ratios = [0.5, 1.0, 2.0]
anchor_cells = "exact"
anchor_stride = "level"
anchor_order = "size"
)";
const std::string kCascade = kBoth + R"(anchor_sizes = [16, 32, 64, 128, 256]
name = "cascadercnn"
rpn_batch = 128
rpn_pre_nms_train = 500
rpn_pre_nms_test = 300
rpn_post_nms_train = 200
rpn_post_nms_test = 100
roi_batch = 64
roi_sampling_ratio = 2
box_channels = 256
mask_channels = 48
mask_convs = 2
mask_init = 0
masks = true
box_head = "4conv1fc"
anchor_scales = 1
anchor_boundary = -1.0
rpn_high = 0.7
rpn_low = 0.3
rpn_positive = 0.5
rpn_beta = 0.0
rpn_normalizer = "batch"
rpn_nms = 0.7
rpn_rank = "logit"
rpn_min_side = 0.0
roi_aligned = true
level_epsilon = 1e-08
level_epsilon_after_log = 0.0
level_canonical_size = 224.0
roi_iou = [0.5, 0.6, 0.7]
roi_positive = 0.25
roi_weights = [10.0, 10.0, 5.0, 5.0, 20.0, 20.0, 10.0, 10.0, 30.0, 30.0, 15.0, 15.0]
box_norm = "none"
box_size = 7
class_agnostic = true
roi_loss = "smooth_l1"
roi_beta = 0.0
label_smoothing = 0.0
background = "last"
mask_size = 14
mask_target = "binary"
mask_paste = "grid"
)";
const std::string kRetinaNet = kBoth + R"(anchor_sizes = [16, 32, 64, 96, 128]
name = "retinanet"
retina_convs = 2
retina_norm = "gn"
background = "none"
p6_from = "c5"
anchor_scales = 3
retina_high = 0.5
retina_low = 0.4
retina_prior = 0.01
focal_alpha = 0.25
focal_gamma = 2.0
retina_loss = "smooth_l1"
retina_beta = 0.0
retina_normalizer = "batch"
retina_candidates = 1000
)";

class OldModel : public ::testing::TestWithParam<std::string> {
 protected:
  Config old = parse_config(GetParam(), "old.toml");
  Config now = with_new_model_keys(old);
  const Registry<DetectorFactory>::Entry& detector =
      detectors().at(std::get<std::string>(now.find("type")->data));
};

INSTANTIATE_TEST_SUITE_P(Detectors, OldModel, ::testing::Values(kCascade, kRetinaNet));

/// Options that earlier versions did not have.
const std::set<std::string> kNewer = {"backbone.out", "backbone.groups",
                                      "backbone.width_per_group"};

TEST_P(OldModel, IsReadWithItsValues) {
  detector.check(own_options(now));
  auto complete = now;
  detector.complete(complete);
  for (const auto& [key, value] : leaves(complete))
    EXPECT_TRUE(now.find_path(key) || kNewer.contains(key)) << key << " has got a default instead";
  std::vector<std::string> before, after;
  for (const auto& [key, value] : leaves(old)) before.push_back(value_text(*value));
  for (const auto& [key, value] : leaves(now)) after.push_back(value_text(*value));
  EXPECT_THAT(after, ::testing::UnorderedElementsAreArray(before));
}

TEST_P(OldModel, WithNewNamesStaysAsItIs) {
  EXPECT_EQ(to_toml(with_new_model_keys(now)), to_toml(now));
}

TEST_P(OldModel, EveryOldKeyIsAnErrorThatNamesTheNewOne) {
  const auto complaint = message_of<ConfigError>([&] {
    detector.check(without(old, {"name", "weights"}));
  });
  std::size_t renamed = 0;
  for (const auto& [key, value] : old.table()) {
    if (key == "name" || now.find_path(key)) continue;
    const auto values = leaves(now);
    const auto moved = std::ranges::find(values, value.origin.line,
                                         [](const auto& leaf) { return leaf.second->origin.line; });
    ASSERT_NE(moved, values.end()) << key;
    EXPECT_THAT(complaint, HasSubstr(value.origin.text() + ": model." + key + " is called model." +
                                     moved->first + " now"));
    ++renamed;
  }
  EXPECT_GT(renamed, 20U);
}

}  // namespace
}  // namespace millrace::testing
