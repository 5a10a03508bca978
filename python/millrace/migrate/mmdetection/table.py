"""Maps MMDetection's keys to ours: one table for each part of a recipe, in reading order. Data and
training are in data.py and training.py, where most keys need arithmetic."""

from __future__ import annotations

from millrace.migrate.mmdetection import rules
from millrace.migrate.shared_rules import NO_LOSS_WEIGHTS
from millrace.migrate.translation import (
    Rule,
    always,
    copy,
    expect,
    ignore,
    part,
    refused,
    required,
)

SOFTMAX = "the class loss is softmax cross-entropy"
CROSS_ENTROPY = "the mask loss is binary cross-entropy"

# below "model."
MODEL: list[Rule] = [
    rules.model_type,
    part("data_preprocessor.", [rules.pixels("bgr_to_rgb")]),
]

BACKBONE: list[Rule] = [
    required("type", "ResNet", "ResNetV1d"),
    rules.depth,
    refused("not supported by any backbone", "dcn", "plugins", "conv_cfg"),
    ignore("num_stages", "out_indices", "in_channels", "with_cp", "strides"),
    expect("dilations", [1] * 4, "dilated stages are not supported"),
    rules.stem,
    copy("deep_stem", "model.backbone.deep_stem"),
    copy("avg_down", "model.backbone.avg_down"),
    copy("base_channels", "model.backbone.width"),
    rules.frozen_stages,
    rules.backbone_norm,
    rules.stride,
    rules.weights,
]

NECK: list[Rule] = [
    rules.neck,
    required("type", "FPN"),
    ignore("in_channels", "start_level"),
    copy("out_channels", "model.fpn.out_channels"),
    expect("num_outs", 5, "the pyramid has five levels"),
    refused("only plain convolutions are supported", "conv_cfg"),
    rules.norm("model.fpn.norm"),
    rules.extra_levels,
]

RETINA_HEAD: list[Rule] = [
    required("type", "RetinaHead"),
    ignore("num_classes", "in_channels"),
    rules.channels("feat_channels", "convolutions have the same channels as the pyramid"),
    copy("stacked_convs", "model.head.num_convs"),
    rules.norm("model.head.norm"),
    part("anchor_generator.", [rules.anchors]),
    part("bbox_coder.", [rules.coder("deltas are not scaled")]),
    expect("loss_cls.type", "FocalLoss", "the class loss is the focal loss"),
    expect("loss_cls.use_sigmoid", True, "the class loss is the sigmoid focal loss"),
    copy("loss_cls.gamma", "model.head.focal_loss_gamma"),
    copy("loss_cls.alpha", "model.head.focal_loss_alpha"),
    expect("loss_cls.loss_weight", 1.0, NO_LOSS_WEIGHTS),
    part("loss_bbox.", [rules.box_loss("model.head")]),
]

RPN_HEAD: list[Rule] = [
    always("model.roi.level_eps", 2.5e-7,
           "as MMDetection's 1e-6: regions of 56 pixels use P2"),
    required("type", "RPNHead"),
    ignore("in_channels"),
    rules.channels("feat_channels", "the convolution has the same channels as the pyramid"),
    expect("num_convs", 1, "only one convolution is supported"),
    part("anchor_generator.", [rules.anchors]),
    part("bbox_coder.", [rules.coder("deltas of proposals are not scaled")]),
    expect("loss_cls.type", "CrossEntropyLoss",
           "the objectness loss is binary cross-entropy"),
    expect("loss_cls.use_sigmoid", True, "each anchor has one score"),
    expect("loss_cls.loss_weight", 1.0, NO_LOSS_WEIGHTS),
    part("loss_bbox.", [rules.box_loss("model.rpn")]),
    always("model.rpn.loss_normalizer", "sampled", "normaliser of MMDetection's RPN losses"),
]  # fmt: skip

# Keys of a training configuration that have no effect.
DEBUG: list[Rule] = [ignore("debug"), expect("pos_weight", -1, NO_LOSS_WEIGHTS)]

ASSIGNER: list[Rule] = [
    expect("type", "MaxIoUAssigner", "boxes are matched by IoU"),
    ignore("min_pos_iou", "match_low_quality", "gpu_assign_thr", "iou_calculator"),
    expect("ignore_iof_thr", -1, "crowd objects are not trained on"),
]


def sampler(ours: str) -> list[Rule]:
    return [
        expect("type", "RandomSampler", "samples are random"),
        copy("num", f"{ours}.batch_size_per_image"),
        copy("pos_fraction", f"{ours}.positive_fraction"),
        expect("neg_pos_ub", -1, "the rest is background"),
        expect("add_gt_as_proposals", ours == "model.roi",
               "ground truth is added to the regions, not to the anchors"),
    ]  # fmt: skip


# below "model.train_cfg."; in 2.x also "train_cfg."
RETINA_TRAINING: list[Rule] = [
    part("assigner.", [rules.two_thresholds("model.head"), *ASSIGNER]),
    expect("sampler.type", "PseudoSampler", "all anchors are used"),
    expect("allowed_border", -1, "all anchors are used"),
    *DEBUG,
]
RCNN_TRAINING: list[Rule] = [
    part("rpn.assigner.", [rules.two_thresholds("model.rpn"), rules.best_anchor, *ASSIGNER]),
    part("rpn.sampler.", sampler("model.rpn")),
    copy("rpn.allowed_border", "model.rpn.boundary_thresh"),
    part("rpn.", DEBUG),
    copy("rpn_proposal.nms_pre", "model.rpn.pre_nms_top_n_train"),
    copy("rpn_proposal.max_per_img", "model.rpn.post_nms_top_n_train",
         "rpn_proposal.max_num", "rpn_proposal.nms_post"),
    copy("rpn_proposal.nms.iou_threshold", "model.rpn.nms_thresh", "rpn_proposal.nms_thr"),
    expect("rpn_proposal.nms.type", "nms", "NMS of proposals is hard"),
    ignore("rpn_proposal.nms_across_levels", "rpn_proposal.min_bbox_size"),
]  # fmt: skip
REGION_TRAINING: list[Rule] = [
    part("rcnn.", [rules.region_training(
        [
            part("assigner.", ASSIGNER),
            expect("mask_size", 28, "masks have twice the size of model.mask.pooler_resolution"),
            *DEBUG,
        ],
        sampler("model.roi"),
    )]),
]  # fmt: skip

# below "model.test_cfg."; in 2.x also "test_cfg."
RETINA_DETECTION: list[Rule] = [
    copy("nms_pre", "model.test.topk_candidates"),
    copy("min_bbox_size", "model.test.min_size"),
    rules.detections,
]
PROPOSALS: list[Rule] = [
    copy("rpn.nms_pre", "model.rpn.pre_nms_top_n_test"),
    copy("rpn.max_per_img", "model.rpn.post_nms_top_n_test", "rpn.max_num", "rpn.nms_post"),
    expect("rpn.nms.type", "nms", "NMS of proposals is hard"),
    ignore("rpn.nms_across_levels"),
    part("rpn.", [rules.same_nms]),
    copy("rpn.min_bbox_size", "model.rpn.min_size"),
]
RCNN_DETECTION: list[Rule] = [
    part("rcnn.", [rules.detections]),
    expect("rcnn.mask_thr_binary", 0.5, "the mask threshold is 0.5"),
]

# Keys in which all stages of a cascade must agree; the first stage's value is used.
_ALIKE = (
    "type",
    "fc_out_channels",
    "reg_class_agnostic",
    "loss_bbox",
    "conv_out_channels",
    "norm_cfg",
)
_POOLER: list[Rule] = [
    required("type", "SingleRoIExtractor"),
    required("roi_layer.type", "RoIAlign"),
    ignore("out_channels", "featmap_strides", "finest_scale"),
]

# below "model.roi_head."
BOX_HEAD: list[Rule] = [
    rules.roi_head,
    rules.box_heads(
        [
            required("type", "Shared2FCBBoxHead", "Shared4Conv1FCBBoxHead"),
            ignore("in_channels", "roi_feat_size", "num_classes"),
            expect("loss_cls.type", "CrossEntropyLoss", SOFTMAX),
            expect("loss_cls.use_sigmoid", False, SOFTMAX),
            expect("loss_cls.loss_weight", 1.0, NO_LOSS_WEIGHTS),
            ignore("reg_decoded_bbox"),  # is read with the loss
        ],
        [rules.box_layers, part("loss_bbox.", [rules.box_loss("model.box")])],
        _ALIKE,
    ),
    part("bbox_roi_extractor.", [
        *_POOLER,
        copy("roi_layer.output_size", "model.box.pooler_resolution", "roi_layer.out_size"),
        copy("roi_layer.sampling_ratio", "model.roi.sampling_ratio", "roi_layer.sample_num"),
        copy("roi_layer.aligned", "model.roi.aligned"),
        rules.canonical_size,
    ]),
]  # fmt: skip
MASK_HEAD: list[Rule] = [
    part("mask_roi_extractor.", [
        *_POOLER,
        copy("roi_layer.output_size", "model.mask.pooler_resolution", "roi_layer.out_size"),
        part("roi_layer.", [rules.mask_pooler]),
    ]),
    part("mask_head.", [
        required("type", "FCNMaskHead"),
        copy("num_convs", "model.mask.num_convs"),
        copy("conv_out_channels", "model.mask.conv_dim"),
        ignore("in_channels", "num_classes", "roi_feat_size"),
        expect("class_agnostic", False, "masks are per class"),
        rules.mask_heads,
        expect("loss_mask.type", "CrossEntropyLoss", CROSS_ENTROPY),
        expect("loss_mask.use_mask", True, CROSS_ENTROPY),
        expect("loss_mask.loss_weight", 1.0, NO_LOSS_WEIGHTS),
        rules.mask_norm,
    ]),
    always("model.mask.init_std", 0.0, "He initialisation, as of FCNMaskHead's predictor"),
]  # fmt: skip

# Pipeline steps that Millrace always performs.
PLAIN_STEPS = """LoadImageFromFile DefaultFormatBundle Collect PackDetInputs ImageToTensor ToTensor
    DefaultFormat FilterAnnotations""".split()

# Loader keys that affect only how the loader runs.
LOADER = """num_workers persistent_workers workers_per_gpu drop_last sampler pin_memory
    collate_fn""".split()

# Keys for how MMDetection runs, without an effect on training results.
RUNNING = """default_scope env_cfg vis_backends visualizer log_processor log_level dist_params
    opencv_num_threads mp_start_method find_unused_parameters cudnn_benchmark gpu_ids device resume
    resume_from launcher val_cfg test_cfg""".split()

# Keys whose members are only partly translated.
REST = """default_hooks checkpoint_config evaluation optimizer optimizer_config optim_wrapper fp16
    lr_config runner train_cfg auto_scale_lr log_config custom_imports tta_model
    tta_pipeline""".split()

# Other top-level names that MMDetection itself reads.
KNOWN = """model train_dataloader val_dataloader test_dataloader val_evaluator test_evaluator
    param_scheduler custom_hooks load_from data workflow total_epochs work_dir seed
    randomness""".split()
