// detectron2's keys: what differs in arithmetic, what is left out, what is refused.
#include "tests/migration/recipes.h"

namespace millrace::testing {
namespace {

ImportedConfig imported(const std::string& name, const ImportOptions& options = {}) {
  return import_config(kRecipes / "detectron2" / name, options);
}

/// The published Mask R-CNN with some values in its place.
ImportedConfig with(const std::vector<std::string>& overrides) {
  return imported("mask_rcnn_R50_FPN_1x.yaml", {overrides});
}
std::string refused(const std::vector<std::string>& overrides) {
  return message_of<ConfigError>([&] { with(overrides); });
}

TEST(Detectron2, IterationsBecomeEpochsOfTheImagesThatAreTrainedOn) {
  const auto config = imported("mask_rcnn_R50_FPN_1x.yaml", {.gpus = 8});
  EXPECT_EQ(text_at(config, "train.epochs"), "12.2798");  // 90000 x 16 / 117266
  EXPECT_EQ(text_at(config, "schedule.milestones"), "[8.1865, 10.9154]");
  EXPECT_EQ(text_at(config, "data.batch_size"), "2");
  EXPECT_EQ(text_at(config, "optimizer.lr_batch"), "16");
  EXPECT_EQ(text_at(config, "schedule.warmup"), "\"1000 steps\"");
  EXPECT_THAT(origin_at(config, "train.epochs"),
              AllOf(HasSubstr("base_rcnn.yaml:26 SOLVER.MAX_ITER"),
                    HasSubstr("90000 x 16 images / 117266")));
  EXPECT_EQ(text_at(with({"DATALOADER.FILTER_EMPTY_ANNOTATIONS", "False"}), "train.epochs"),
            "12.1738");  // of all 118287
  EXPECT_EQ(text_at(imported("mask_rcnn_R50_FPN_1x.yaml", {.images = 1440000}), "train.epochs"),
            "1");
}

TEST(Detectron2, DataSetsThatCodeRegistersNeedTheirSize) {
  const std::vector<std::string> mine = {"DATASETS.TRAIN", "('mine',)"};
  EXPECT_THAT(refused(mine), AllOf(HasSubstr("base_rcnn.yaml:26"), HasSubstr("--images N")));
  const auto config = import_config(kRecipes / "detectron2" / "mask_rcnn_R50_FPN_1x.yaml",
                                    {.overrides = mine, .images = 1000});
  EXPECT_THAT(reason_of(config, "DATASETS.TRAIN"), HasSubstr("set data.root and data.train"));
}

TEST(Detectron2, BatchesDivideAmongProcesses) {
  EXPECT_THAT(message_of([] { imported("mask_rcnn_R50_FPN_1x.yaml", {.gpus = 3}); }),
              AllOf(HasSubstr("SOLVER.IMS_PER_BATCH = 16"), HasSubstr("3 GPUs")));
  EXPECT_EQ(text_at(with({"SOLVER.REFERENCE_WORLD_SIZE", "4"}), "data.batch_size"), "4");
}

TEST(Detectron2, ItsDefaultsCountWhereARecipeIsSilent) {
  const auto config = imported("mask_rcnn_R50_FPN_1x.yaml");
  EXPECT_EQ(text_at(config, "model.rpn.batch_size_per_image"), "256");
  EXPECT_THAT(origin_at(config, "model.rpn.batch_size_per_image"),
              HasSubstr("detectron2's default"));
  EXPECT_EQ(text_at(imported("base_retinanet.yaml"), "model.head.smooth_l1_beta"), "0");
  EXPECT_TRUE(config.left_out.empty()) << config.left_out.front().key;
}

TEST(Detectron2, CascadesSayTheirStages) {
  const auto config = imported("cascade_mask_rcnn_R50_FPN_1x.yaml");
  EXPECT_EQ(text_at(config, "model.type"), "\"cascadercnn\"");
  EXPECT_EQ(text_at(config, "model.masks"), "true");
  EXPECT_EQ(text_at(config, "model.roi.fg_iou_thresh"), "[0.5, 0.6, 0.7]");
  EXPECT_EQ(text_at(config, "model.box.bbox_reg_weights"),
            "[10, 10, 5, 5, 20, 20, 10, 10, 30, 30, 15, 15]");
}

TEST(Detectron2, AnchorsWithinAnOctaveAreCounted) {
  const auto config = imported("retinanet_R50_FPN_1x.yaml");
  EXPECT_EQ(text_at(config, "model.anchors.sizes"), "[32, 64, 128, 256, 512]");
  EXPECT_EQ(text_at(config, "model.anchors.scales_per_octave"), "3");
  EXPECT_THAT(refused({"MODEL.ANCHOR_GENERATOR.SIZES", "[[32, 48], [64], [128], [256], [512]]"}),
              HasSubstr("evenly within an octave"));
}

TEST(Detectron2, AugmentationsOfTestsAreSharesOfTheLargest) {
  const auto config = with({"TEST.AUG.ENABLED", "True", "TEST.AUG.MIN_SIZES", "(400, 800)",
                            "TEST.AUG.MAX_SIZE", "1400"});
  EXPECT_EQ(text_at(config, "model.test.aug_scales"), "[0.5, 1]");
  EXPECT_EQ(text_at(config, "model.test.aug_flip"), "true");
  EXPECT_EQ(text_at(config, "data.test_short_side"), "800");
  EXPECT_EQ(text_at(config, "data.resize_style"), "\"detectron2\"");
  EXPECT_EQ(text_at(config, "data.test_max_side"), "1400");
}

TEST(Detectron2, CropsComeBeforeResizesWithWidthFirst) {
  const auto config = with({"INPUT.CROP.ENABLED", "True", "INPUT.CROP.SIZE", "[0.6, 0.9]"});
  EXPECT_THAT(text_at(config, "data.stages"),
              AllOf(HasSubstr("{ type = \"random_crop\", crop_type = \"relative_range\", size = "
                              "[0.9, 0.6], keep_object = false }, { type = "
                              "\"resize_shortest_edge\" }, { type = \"flip\" }")));
}

TEST(Detectron2, WhatHasNoCounterpartIsListed) {
  const auto config = with({"MODEL.RPN.LOSS_WEIGHT", "2.0", "SOLVER.CLIP_GRADIENTS.ENABLED", "True",
                            "SOLVER.CLIP_GRADIENTS.CLIP_TYPE", "norm", "MODEL.MINE.DEPTH", "3",
                            "MODEL.ROI_KEYPOINT_HEAD.NUM_KEYPOINTS", "4",
                            "MODEL.RETINANET.NUM_CONVS", "2", "SOLVER.STEPS", "(60000, 95000)"});
  EXPECT_THAT(reason_of(config, "MODEL.RPN.LOSS_WEIGHT"), HasSubstr("without weights"));
  EXPECT_THAT(reason_of(config, "SOLVER.CLIP_GRADIENTS.CLIP_TYPE"), HasSubstr("each parameter"));
  EXPECT_THAT(reason_of(config, "MODEL.MINE.DEPTH"), HasSubstr("no key of detectron2"));
  EXPECT_THAT(reason_of(config, "MODEL.ROI_KEYPOINT_HEAD.NUM_KEYPOINTS"), HasSubstr("keypoints"));
  EXPECT_THAT(reason_of(config, "MODEL.RETINANET.NUM_CONVS"), HasSubstr("without an effect"));
  EXPECT_THAT(reason_of(config, "SOLVER.STEPS"), HasSubstr("95000 is not before MAX_ITER"));
  EXPECT_EQ(text_at(config, "schedule.milestones"), "[8.1865]");
  EXPECT_EQ(config.left_out.size(), 6);
}

TEST(Detectron2, AnotherModelIsRefusedWithItsLine) {
  EXPECT_THAT(refused({"MODEL.META_ARCHITECTURE", "PanopticFPN"}),
              AllOf(HasSubstr("command line: MODEL.META_ARCHITECTURE = 'PanopticFPN'"),
                    HasSubstr("GeneralizedRCNN, RetinaNet")));
  for (const auto& [key, value] : {std::pair{"MODEL.BACKBONE.NAME", "build_mnv2_backbone"},
                                   {"MODEL.RESNETS.DEPTH", "152"},
                                   {"MODEL.RESNETS.RES5_DILATION", "2"},
                                   {"MODEL.KEYPOINT_ON", "True"},
                                   {"MODEL.ROI_HEADS.NAME", "PointRendROIHeads"},
                                   {"MODEL.ROI_BOX_HEAD.NUM_FC", "3"}})
    EXPECT_THAT(refused({key, value}), HasSubstr(key));
  EXPECT_THAT(refused({"SOLVER.BASE_LR", "much"}), HasSubstr("a number is needed, not a string"));
  EXPECT_THAT(refused({"SOLVER.BASE_LR"}), HasSubstr("has no value"));
}

TEST(Detectron2, HeadsOnC4AreSaidByTheBackbonesOutput) {
  const auto config = imported("mask_rcnn_R50_C4_1x.yaml");
  EXPECT_EQ(text_at(config, "model.backbone.out"), "\"c4\"");
  EXPECT_EQ(text_at(config, "model.anchors.sizes"), "[32, 64, 128, 256, 512]");
  EXPECT_EQ(text_at(config, "model.rpn.pre_nms_top_n_test"), "6000");
  EXPECT_EQ(text_at(config, "model.box.pooler_resolution"), "14");
  EXPECT_EQ(text_at(config, "model.mask.num_convs"), "0");
  EXPECT_EQ(text_at(config, "model.fpn.out_channels"), "");
  EXPECT_TRUE(config.left_out.empty()) << config.left_out.front().key;
  EXPECT_THAT(refused({"MODEL.BACKBONE.NAME", "build_resnet_backbone"}),
              HasSubstr("MODEL.ROI_HEADS.NAME"));  // those of a pyramid
}

TEST(Detectron2, GroupsMakeAResNeXt) {
  const auto config =
      with({"MODEL.RESNETS.NUM_GROUPS", "32", "MODEL.RESNETS.WIDTH_PER_GROUP", "8"});
  EXPECT_EQ(text_at(config, "model.backbone.groups"), "32");
  EXPECT_EQ(text_at(config, "model.backbone.width_per_group"), "8");
}

TEST(Detectron2, OtherFilesAreRefused) {
  EXPECT_THAT(message_of<ConfigError>([] { import_config("tests/migration/CMakeLists.txt", {}); }),
              HasSubstr("docs/migrating"));
}

}  // namespace
}  // namespace millrace::testing
