// MMDetection's keys in both spellings: what differs in arithmetic, what is left out.
#include "tests/migration/recipes.h"

namespace millrace::testing {
namespace {

ImportedConfig recipe(const std::vector<std::string>& overrides, const ImportOptions& more = {}) {
  auto options = more;
  options.overrides = overrides;
  return import_config(kRecipes / "mmdetection3" / "mask_rcnn.py", options);
}
ImportedConfig old(const ImportOptions& options = {}) {
  return import_config(kRecipes / "mmdetection2" / "retinanet.py", options);
}

TEST(MmDetection, PixelsKeepTheirOrder) {
  EXPECT_EQ(text_at(recipe({}), "model.pixel_order"), "\"rgb\"");
  EXPECT_EQ(text_at(recipe({}), "model.pixel_mean"), "[123.675, 116.28, 103.53]");
  EXPECT_EQ(text_at(old(), "model.pixel_order"), "\"bgr\"");
  EXPECT_EQ(text_at(old(), "model.pixel_mean"), "[103.53, 116.28, 123.675]");
  EXPECT_EQ(text_at(old(), "data.divisor"), "64");
}

TEST(MmDetection, EpochsOfARepeatedDataSetAreLonger) {
  const auto config = recipe({});
  EXPECT_EQ(text_at(config, "train.epochs"), "36");
  EXPECT_EQ(text_at(config, "schedule.milestones"), "[30, 33]");  // _base_.param_scheduler[1]
  EXPECT_EQ(text_at(config, "callbacks.evaluate.every"), "\"3 epochs\"");
  EXPECT_EQ(text_at(config, "callbacks.checkpoint.every"), "\"3 epochs\"");
  EXPECT_THAT(origin_at(config, "schedule.milestones"), HasSubstr("mask_rcnn.py:7 "));
}

TEST(MmDetection, IterationsBecomeEpochs) {
  EXPECT_EQ(text_at(old(), "optimizer.lr_batch"), "32");  // 8 x 4
  EXPECT_EQ(text_at(old(), "train.epochs"), "24.5595");   // 90000 x 32 / 117266
  EXPECT_EQ(text_at(old({.gpus = 4}), "train.epochs"), "12.2798");
  EXPECT_EQ(text_at(old({.gpus = 4}), "optimizer.lr_batch"), "16");
  EXPECT_EQ(text_at(old({.images = 2880000}), "train.epochs"), "1");
  EXPECT_EQ(text_at(old(), "callbacks.evaluate.every"), "\"10000 steps\"");
}

TEST(MmDetection, AnchorsAreScalesTimesStrides) {
  EXPECT_EQ(text_at(recipe({}), "model.anchors.sizes"), "[32, 64, 128, 256, 512]");
  EXPECT_EQ(text_at(old(), "model.anchors.sizes"), "[32, 64, 128, 256, 512]");
  EXPECT_EQ(text_at(old(), "model.anchors.scales_per_octave"), "3");
  EXPECT_EQ(text_at(old(), "model.anchors.order"), "\"ratio\"");
  EXPECT_EQ(text_at(old(), "model.fpn.p6_from"), "\"p5\"");
}

TEST(MmDetection, DeviationsAreOneOverWeights) {
  EXPECT_EQ(text_at(recipe({}), "model.box.bbox_reg_weights"), "[10, 10, 5, 5]");
}

TEST(MmDetection, NormsSayWhatIsFrozen) {
  const auto norm = [](const std::string& type, const std::string& grad, const std::string& eval) {
    return text_at(recipe({"model.backbone.norm_cfg.type='" + type + "'",
                           "model.backbone.norm_cfg.requires_grad=" + grad,
                           "model.backbone.norm_eval=" + eval}),
                   "model.backbone.norm");
  };
  EXPECT_EQ(norm("BN", "True", "True"), "\"frozen_stats\"");
  EXPECT_EQ(norm("BN", "False", "True"), "\"frozen_bn\"");
  EXPECT_EQ(norm("BN", "True", "False"), "\"bn\"");
  EXPECT_EQ(norm("SyncBN", "True", "False"), "\"sync_bn\"");
  EXPECT_EQ(norm("GN", "True", "False"), "\"gn\"");
  EXPECT_EQ(text_at(recipe({}), "model.backbone.freeze_at"), "2");
  EXPECT_EQ(text_at(recipe({"model.backbone.frozen_stages=-1"}), "model.backbone.freeze_at"), "0");
}

TEST(MmDetection, OptimizersWithTheirRules) {
  const auto config = recipe({});
  EXPECT_EQ(text_at(config, "optimizer.type"), "\"adamw\"");
  EXPECT_EQ(text_at(config, "optimizer.momentum"), "0.9");
  EXPECT_EQ(text_at(config, "optimizer.beta2"), "0.98");
  EXPECT_EQ(text_at(config, "optimizer.weight_decay_norm"), "0");
  EXPECT_EQ(text_at(config, "optimizer.clip_norm"), "35");
  EXPECT_EQ(text_at(config, "optimizer.groups"), "[{ match = \"backbone.*\", lr_factor = 0.1 }]");
  EXPECT_EQ(text_at(config, "train.precision"), "\"fp16\"");
  // Norms that are trained decay in torch as all else.
  EXPECT_EQ(text_at(recipe({"optim_wrapper.paramwise_cfg=None"}), "optimizer.weight_decay_norm"),
            "0.05");
  EXPECT_EQ(text_at(old(), "optimizer.weight_decay_norm"), "");
  EXPECT_EQ(text_at(old(), "optimizer.lr"), "0.02");
  EXPECT_EQ(text_at(old(), "train.loss_scale"), "512");
}

TEST(MmDetection, PipelinesBecomeSizesAndFlips) {
  EXPECT_EQ(text_at(recipe({}), "data.short_side"), "[640, 800]");
  EXPECT_EQ(text_at(recipe({}), "data.short_side_range"), "true");
  EXPECT_EQ(text_at(old(), "data.short_side"), "[640, 672, 800]");
  EXPECT_EQ(text_at(old(), "data.short_side_range"), "");
  EXPECT_EQ(text_at(old(), "data.flip"), "0.25");
  EXPECT_EQ(text_at(old(), "model.test.aug_flip"), "true");
  EXPECT_EQ(text_at(old(), "data.test_short_side"), "800");
  EXPECT_EQ(text_at(old(), "data.root"), "\"data/coco\"");
  EXPECT_EQ(text_at(recipe({}), "data.val"), "\"val2017\"");
  EXPECT_EQ(text_at(recipe({}), "data.classes"), "[\"person\", \"bicycle\"]");
}

TEST(MmDetection, LargeScaleJitterIsAStage) {
  const std::string pipeline = "train_dataloader.dataset.dataset.pipeline.2";
  const auto config =
      recipe({pipeline + "=dict(type='RandomResize', scale=(640, 512), ratio_range=(0.1, 2.0))"});
  EXPECT_THAT(text_at(config, "data.stages"),
              HasSubstr("{ type = \"large_scale_jitter\", min_scale = 0.1, max_scale = 2, width = "
                        "640, height = 512 }"));
}

TEST(MmDetection, SuppressionByName) {
  EXPECT_EQ(text_at(recipe({}), "model.test.nms_type"), "\"linear\"");
  EXPECT_EQ(text_at(recipe({}), "model.test.nms_thresh"), "0.6");
  EXPECT_EQ(text_at(recipe({"model.test_cfg.rcnn.nms.method='gaussian'",
                            "model.test_cfg.rcnn.nms.sigma=0.4"}),
                    "model.test.soft_nms_sigma"),
            "0.4");
}

TEST(MmDetection, WhatHasNoCounterpartIsListed) {
  const auto config =
      recipe({"model.roi_head.bbox_head.loss_bbox.loss_weight=2.0", "model.mine=dict(a=1)",
              "custom_hooks=[dict(type='EMAHook')]", "load_from='http://x/y.pth'"});
  EXPECT_THAT(reason_of(config, "model.train_cfg.rpn.assigner.min_pos_iou"),
              HasSubstr("best anchor is foreground"));
  EXPECT_THAT(reason_of(config, "model.roi_head.bbox_head.loss_bbox.loss_weight"),
              HasSubstr("without weights"));
  EXPECT_EQ(reason_of(config, "model.mine.a"), "no counterpart is known");
  EXPECT_THAT(reason_of(config, "custom_hooks"), HasSubstr("callbacks"));
  EXPECT_THAT(reason_of(config, "unused_pipeline"), HasSubstr("used by no other line"));
  EXPECT_THAT(reason_of(config, "log_level"), HasSubstr("not what is trained"));
  EXPECT_THAT(reason_of(config, "load_from"), HasSubstr("docs/migrating"));
  EXPECT_THAT(reason_of(old(), "model.bbox_head.loss_bbox.loss_weight"),
              HasSubstr("without weights"));
}

TEST(MmDetection, AnotherModelIsRefusedWithItsLine) {
  const auto refused = [](const std::string& one) {
    return message_of<ConfigError>([&] { recipe({one}); });
  };
  EXPECT_THAT(refused("model.backbone.type='ResNeXt'"),
              AllOf(HasSubstr("model.backbone.type = 'ResNeXt'"), HasSubstr("ResNetV1d")));
  EXPECT_THAT(refused("model.backbone.depth=152"), HasSubstr("model.backbone.depth = 152"));
  EXPECT_THAT(refused("model.neck=None"), HasSubstr("no neck"));
  EXPECT_THAT(refused("model.type='DETR'"), HasSubstr("model.type = 'DETR'"));
  EXPECT_THAT(refused("model.backbone.dcn=dict(type='DCN')"), HasSubstr("model.backbone.dcn"));
  EXPECT_THAT(refused("nothing"), HasSubstr("key=value"));
  EXPECT_THAT(refused("model"), HasSubstr("key=value"));
}

}  // namespace
}  // namespace millrace::testing
