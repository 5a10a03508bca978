"""MMDetection's keys and ours: a table for each part of a recipe, in the order in which they are
read. What needs arithmetic is between the tables, in model.py, data.py and training.py."""

from __future__ import annotations

from millrace.migrate.shared_rules import NO_LOSS_WEIGHTS
from millrace.migrate.translation import Rule, copy, expect, ignore

SOFTMAX = "classes are learned with softmax"
CROSS_ENTROPY = "masks are learned with binary cross-entropy"

# Norms of necks and heads.
NORMS = {"GN": "gn", "BN": "bn", "SyncBN": "sync_bn"}

# Files behind the names of weights that its recipes start from.
_TORCH = "https://download.pytorch.org/models/"
_MM = "https://download.openmmlab.com/pretrain/third_party/"
WEIGHTS = {
    "torchvision://resnet18": _TORCH + "resnet18-f37072fd.pth",
    "torchvision://resnet34": _TORCH + "resnet34-b627a593.pth",
    "torchvision://resnet50": _TORCH + "resnet50-0676ba61.pth",
    "torchvision://resnet101": _TORCH + "resnet101-63fe2227.pth",
    "open-mmlab://detectron2/resnet50_caffe": _MM + "resnet50_msra-5891d200.pth",
    "open-mmlab://detectron2/resnet101_caffe": _MM + "resnet101_msra-6cc46731.pth",
    "open-mmlab://detectron/resnet50_caffe": _MM + "resnet50_caffe-788b5fa3.pth",
    "open-mmlab://detectron/resnet101_caffe": _MM + "resnet101_caffe-3ad79236.pth",
    "open-mmlab://detectron/resnet50_gn": _MM + "resnet50_gn-9186a21c.pth",
    "open-mmlab://detectron/resnet101_gn": _MM + "resnet101_gn-cac0ab98.pth",
    "open-mmlab://resnet50_v1c": _MM + "resnet50_v1c-2cccc1ad.pth",
    "open-mmlab://resnet101_v1c": _MM + "resnet101_v1c-e67eebb6.pth",
}

BACKBONE: list[Rule] = [
    copy("deep_stem", "model.backbone.deep_stem"),
    copy("avg_down", "model.backbone.avg_down"),
    copy("base_channels", "model.backbone.width"),
]

ANCHORS: list[Rule] = [
    copy("ratios", "model.anchors.aspect_ratios"),
    expect("center_offset", 0.0, "anchors stand at the corners of cells"),
    expect("scale_major", True, "anchors go by ratio and then by scale"),
]

BOX_CODER: list[Rule] = [
    expect("type", "DeltaXYWHBBoxCoder", "boxes are dx dy dw dh"),
    expect("target_means", [0.0] * 4, "the means are 0"),
    expect("clip_border", True, "boxes are cut at the image's border"),
]

RPN_LOSS: list[Rule] = [
    expect("type", "CrossEntropyLoss", "objectness is learned with binary cross-entropy"),
    expect("use_sigmoid", True, "one score per anchor"),
    expect("loss_weight", 1.0, NO_LOSS_WEIGHTS),
]

RETINA_LOSS: list[Rule] = [
    expect("type", "FocalLoss", "the focal loss"),
    expect("use_sigmoid", True, "the focal loss of sigmoids"),
    copy("gamma", "model.head.focal_loss_gamma"),
    copy("alpha", "model.head.focal_loss_alpha"),
    expect("loss_weight", 1.0, NO_LOSS_WEIGHTS),
]

BOX_HEAD: list[Rule] = [
    ignore("in_channels", "roi_feat_size", "num_classes"),
    expect("loss_cls.type", "CrossEntropyLoss", SOFTMAX),
    expect("loss_cls.use_sigmoid", False, SOFTMAX),
    expect("loss_cls.loss_weight", 1.0, NO_LOSS_WEIGHTS),
    ignore("reg_decoded_bbox"),  # goes with its loss
]
# All stages of a cascade are alike in these: the first decides.
BOX_HEAD_ALIKE = (
    "type",
    "fc_out_channels",
    "reg_class_agnostic",
    "loss_bbox",
    "conv_out_channels",
    "norm_cfg",
)

MASK_HEAD: list[Rule] = [
    copy("num_convs", "model.mask.num_convs"),
    copy("conv_out_channels", "model.mask.conv_dim"),
    ignore("in_channels", "num_classes", "roi_feat_size"),
    expect("class_agnostic", False, "each class has a mask"),
]
MASK_LOSS: list[Rule] = [
    expect("type", "CrossEntropyLoss", CROSS_ENTROPY),
    expect("use_mask", True, CROSS_ENTROPY),
    expect("loss_weight", 1.0, NO_LOSS_WEIGHTS),
]

RETINA_TRAINING: list[Rule] = [
    expect("sampler.type", "PseudoSampler", "all anchors count"),
    expect("allowed_border", -1, "all anchors count"),
]
RETINA_DETECTION: list[Rule] = [
    copy("nms_pre", "model.test.topk_candidates"),
    copy("min_bbox_size", "model.test.min_size"),
]

# What stands in a training's configuration and changes nothing.
DEBUG: list[Rule] = [ignore("debug"), expect("pos_weight", -1, NO_LOSS_WEIGHTS)]

DETECTIONS: list[Rule] = [
    copy("score_thr", "model.test.score_thresh"),
    copy("max_per_img", "model.test.detections_per_img"),
]

OPTIMIZER: list[Rule] = [
    copy("lr", "optimizer.lr"),
    copy("momentum", "optimizer.momentum"),
    copy("nesterov", "optimizer.nesterov"),
]

# Steps of a pipeline without a choice: what they do is done here, too.
PLAIN_STEPS = (
    "LoadImageFromFile",
    "DefaultFormatBundle",
    "Collect",
    "PackDetInputs",
    "ImageToTensor",
    "ToTensor",
    "DefaultFormat",
    "FilterAnnotations",
)

# Of each loader, how it works.
LOADER = (
    "num_workers",
    "persistent_workers",
    "workers_per_gpu",
    "drop_last",
    "sampler",
    "pin_memory",
    "collate_fn",
)

# How MMDetection runs, not what is trained.
RUNNING = (
    "default_scope",
    "env_cfg",
    "vis_backends",
    "visualizer",
    "log_processor",
    "log_level",
    "dist_params",
    "opencv_num_threads",
    "mp_start_method",
    "find_unused_parameters",
    "cudnn_benchmark",
    "gpu_ids",
    "device",
    "resume",
    "resume_from",
    "launcher",
    "val_cfg",
    "test_cfg",
)

# Of what is translated, what is left.
REST = (
    "default_hooks",
    "checkpoint_config",
    "evaluation",
    "optimizer",
    "optimizer_config",
    "optim_wrapper",
    "fp16",
    "lr_config",
    "runner",
    "train_cfg",
    "auto_scale_lr",
    "log_config",
    "custom_imports",
    "tta_model",
    "tta_pipeline",
)

# Names at the top of a recipe that MMDetection itself reads, besides these.
KNOWN = {
    *RUNNING,
    *REST,
    "model",
    "train_dataloader",
    "val_dataloader",
    "test_dataloader",
    "val_evaluator",
    "test_evaluator",
    "param_scheduler",
    "custom_hooks",
    "load_from",
    "data",
    "workflow",
    "total_epochs",
    "work_dir",
    "seed",
    "randomness",
}
