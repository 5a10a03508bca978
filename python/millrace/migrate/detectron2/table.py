"""Maps detectron2's keys to ours: one table for each part of a recipe, in reading order."""

from __future__ import annotations

from millrace.migrate.detectron2 import rules
from millrace.migrate.detectron2.rules import follows, norm
from millrace.migrate.shared_rules import NO_LOSS_WEIGHTS
from millrace.migrate.translation import Rule, copy, expect, ignore, required

CLASSES = "classes come from the data set; data.classes selects some of them"
SOFTMAX = "the class loss is softmax cross-entropy"
ONES = (1.0, 1.0, 1.0, 1.0)

# below "MODEL."
MODEL: list[Rule] = [
    required("META_ARCHITECTURE", "GeneralizedRCNN", "RetinaNet"),
    required("KEYPOINT_ON", "False"),
    required("LOAD_PROPOSALS", "False"),
    required("ANCHOR_GENERATOR.NAME", "DefaultAnchorGenerator"),
]

ANCHORS: list[Rule] = [
    rules.anchors,
    expect("OFFSET", 0.0, "anchors are centred on the corners of cells"),
    ignore("ANGLES"),
]

RPN: list[Rule] = [
    rules.anchor_matching("model.rpn"),
    copy("BOUNDARY_THRESH", "model.rpn.boundary_thresh"),
    copy("BATCH_SIZE_PER_IMAGE", "model.rpn.batch_size_per_image"),
    copy("POSITIVE_FRACTION", "model.rpn.positive_fraction"),
    copy("SMOOTH_L1_BETA", "model.rpn.smooth_l1_beta"),
    copy("PRE_NMS_TOPK_TRAIN", "model.rpn.pre_nms_top_n_train"),
    copy("PRE_NMS_TOPK_TEST", "model.rpn.pre_nms_top_n_test"),
    copy("POST_NMS_TOPK_TRAIN", "model.rpn.post_nms_top_n_train"),
    copy("POST_NMS_TOPK_TEST", "model.rpn.post_nms_top_n_test"),
    copy("NMS_THRESH", "model.rpn.nms_thresh"),
    lambda t, at: t.copy("MODEL.PROPOSAL_GENERATOR.MIN_SIZE", "model.rpn.min_size"),
    required("HEAD_NAME", "StandardRPNHead"),
    required("CONV_DIMS", "[-1]"),
    ignore("IN_FEATURES"),
    expect(
        "BBOX_REG_LOSS_TYPE", "smooth_l1", "the box loss of proposals is (smooth) L1 of the deltas"
    ),
    expect("BBOX_REG_LOSS_WEIGHT", 1.0, NO_LOSS_WEIGHTS),
    expect("LOSS_WEIGHT", 1.0, NO_LOSS_WEIGHTS),
    expect("BBOX_REG_WEIGHTS", ONES, "deltas of proposals have weight 1"),
]

# below "MODEL."
REGIONS: list[Rule] = [
    rules.regions,
    expect("ROI_HEADS.IOU_LABELS", [0, 1], "labels of regions are fixed: background or foreground"),
    copy("ROI_HEADS.BATCH_SIZE_PER_IMAGE", "model.roi.batch_size_per_image"),
    copy("ROI_HEADS.POSITIVE_FRACTION", "model.roi.positive_fraction"),
    copy("ROI_HEADS.SCORE_THRESH_TEST", "model.test.score_thresh"),
    copy("ROI_HEADS.NMS_THRESH_TEST", "model.test.nms_thresh"),
    expect(
        "ROI_HEADS.PROPOSAL_APPEND_GT",
        True,
        "ground truth is always added to the sampled regions",
    ),
    ignore("ROI_HEADS.IN_FEATURES"),
    expect("ROI_HEADS.NUM_CLASSES", 80, CLASSES),
]

BOX_HEAD: list[Rule] = [
    rules.box_layers,
    copy("POOLER_RESOLUTION", "model.box.pooler_resolution"),
    copy("CLS_AGNOSTIC_BBOX_REG", "model.box.cls_agnostic_bbox_reg"),
    rules.box_loss("SMOOTH_L1_BETA", "model.box"),
    expect("BBOX_REG_LOSS_WEIGHT", 1.0, NO_LOSS_WEIGHTS),
    expect(
        "TRAIN_ON_PRED_BOXES",
        False,
        "masks train on the proposals, as by default in detectron2",
    ),
    expect("USE_FED_LOSS", False, SOFTMAX),
    expect("USE_SIGMOID_CE", False, SOFTMAX),
    copy("POOLER_SAMPLING_RATIO", "model.roi.sampling_ratio"),
    rules.pooler_type,
]

# below "MODEL."
MASK_HEAD: list[Rule] = [
    required("ROI_MASK_HEAD.NAME", "MaskRCNNConvUpsampleHead"),
    rules.mask_pooler,
    copy("ROI_MASK_HEAD.NUM_CONV", "model.mask.num_convs"),
    copy("ROI_MASK_HEAD.CONV_DIM", "model.mask.conv_dim"),
    follows("ROI_MASK_HEAD.NORM", "FPN.NORM"),
    follows("ROI_MASK_HEAD.POOLER_SAMPLING_RATIO", "ROI_BOX_HEAD.POOLER_SAMPLING_RATIO"),
    follows("ROI_MASK_HEAD.POOLER_TYPE", "ROI_BOX_HEAD.POOLER_TYPE"),
    expect("ROI_MASK_HEAD.CLS_AGNOSTIC_MASK", False, "masks are per class"),
]

RETINANET: list[Rule] = [
    rules.anchor_matching("model.head"),
    copy("NUM_CONVS", "model.head.num_convs"),
    copy("PRIOR_PROB", "model.head.prior_prob"),
    copy("FOCAL_LOSS_GAMMA", "model.head.focal_loss_gamma"),
    copy("FOCAL_LOSS_ALPHA", "model.head.focal_loss_alpha"),
    copy("SCORE_THRESH_TEST", "model.test.score_thresh"),
    copy("TOPK_CANDIDATES_TEST", "model.test.topk_candidates"),
    copy("NMS_THRESH_TEST", "model.test.nms_thresh"),
    rules.box_loss("SMOOTH_L1_LOSS_BETA", "model.head"),
    expect("BBOX_REG_WEIGHTS", ONES, "deltas of anchors have weight 1"),
    norm("NORM", "model.head.norm"),
    ignore("IN_FEATURES"),
    expect("NUM_CLASSES", 80, CLASSES),
]

RESNET: list[Rule] = [
    rules.resnet,
    required("STEM_OUT_CHANNELS", "64"),
    required("DEFORM_ON_PER_STAGE", "[False, False, False, False]"),
    ignore("DEFORM_MODULATED", "DEFORM_NUM_GROUPS", "OUT_FEATURES"),
    norm("NORM", "model.backbone.norm"),
    lambda t, at: t.copy("MODEL.BACKBONE.FREEZE_AT", "model.backbone.freeze_at"),
    rules.stride,
]

FPN: list[Rule] = [
    ignore("IN_FEATURES"),
    copy("OUT_CHANNELS", "model.fpn.out_channels"),
    norm("NORM", "model.fpn.norm"),
    required("FUSE_TYPE", "sum"),
]
NO_FPN: list[Rule] = [ignore("IN_FEATURES", "OUT_CHANNELS", "NORM", "FUSE_TYPE")]

INPUT: list[Rule] = [
    rules.pixel_order,
    lambda t, at: t.copy("MODEL.PIXEL_MEAN", "model.pixel_mean"),
    lambda t, at: t.copy("MODEL.PIXEL_STD", "model.pixel_std"),
    copy("MIN_SIZE_TRAIN", "data.short_side"),
    copy("MAX_SIZE_TRAIN", "data.max_side"),
    rules.image_sizes,
    expect("MASK_FORMAT", "polygon", "polygons and run lengths keep their format"),
    rules.flip_and_crop,
]

LOADER: list[Rule] = [
    rules.filter_empty,
    copy("ASPECT_RATIO_GROUPING", "data.aspect_grouping"),
    lambda t, at: rules.data_sets(t, "DATASETS."),
    rules.sampler,
    expect(
        "NUM_WORKERS",
        4,
        "data is read by threads of the process; data.threads, default one per core",
    ),
    expect(
        "RANDOM_SUBSET_RATIO",
        1.0,
        'use [[data.sources]] type = "take" or "fixed_size" for a part of a data set',
    ),
]
PROPOSAL_FILES = (
    "PROPOSAL_FILES_TRAIN",
    "PROPOSAL_FILES_TEST",
    "PRECOMPUTED_PROPOSAL_TOPK_TRAIN",
    "PRECOMPUTED_PROPOSAL_TOPK_TEST",
)

OPTIMIZER: list[Rule] = [
    copy("BASE_LR", "optimizer.lr"),
    copy("MOMENTUM", "optimizer.momentum"),
    copy("NESTEROV", "optimizer.nesterov"),
    copy("WEIGHT_DECAY", "optimizer.weight_decay"),
    copy("WEIGHT_DECAY_NORM", "optimizer.weight_decay_norm"),
    copy("WEIGHT_DECAY_BIAS", "optimizer.weight_decay_bias"),
    copy("BIAS_LR_FACTOR", "optimizer.bias_lr_factor"),
    lambda t, at: rules.clipping(t, at + "CLIP_GRADIENTS."),
    rules.half_precision,
]

SCHEDULE: list[Rule] = [
    expect("BASE_LR_END", 0.0, "the learning rate decays to 0"),
    expect("RESCALE_INTERVAL", False, "warm-up is part of the schedule"),
    ignore("NUM_DECAYS"),
    rules.warmup,
    copy("WARMUP_FACTOR", "schedule.warmup_factor"),
    expect("WARMUP_METHOD", "linear", "warm-up is linear"),
]

# Read only if the recipe itself sets the key.
RUN_IF_SET: list[tuple[str, Rule]] = [
    ("SOLVER.CHECKPOINT_PERIOD", rules.every("SOLVER.CHECKPOINT_PERIOD", "callbacks.checkpoint")),
    ("TEST.EVAL_PERIOD", lambda t, at: rules.evaluation(t, "TEST.")),
    ("OUTPUT_DIR", rules.output),
    ("SEED", rules.seed),
    ("MODEL.DEVICE", lambda t, at: rules.device(t, "MODEL.")),
]
RUN: list[Rule] = [
    expect("CUDNN_BENCHMARK", False, "train.deterministic = false lets libtorch choose kernels"),
    expect("FLOAT32_PRECISION", "", "use train.precision: fp32, tf32, bf16, fp16"),
    expect("VIS_PERIOD", 0, "use callbacks.pictures, which draws validation images"),
    expect(
        "TEST.EXPECTED_RESULTS",
        [],
        "use `targets` of callbacks.evaluate, which end the training when reached",
    ),
    expect(
        "TEST.PRECISE_BN.ENABLED",
        False,
        "statistics come from training; frozen_bn keeps those of the weights",
    ),
    ignore("TEST.PRECISE_BN.NUM_ITER"),
]

# Keys that only detectron2's other models read; they have no effect on ours.
OTHER_MODELS = {
    "MODEL.ROI_KEYPOINT_HEAD": "keypoints are not supported",
    "MODEL.SEM_SEG_HEAD": "semantic segmentation is not supported",
    "MODEL.PANOPTIC_FPN": "panoptic segmentation is not supported",
    "TEST.KEYPOINT_OKS_SIGMAS": "keypoints are not supported",
    "GLOBAL": "not read by detectron2",
}
