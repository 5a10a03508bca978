"""Translates MMDetection's keys in both spellings: what needs arithmetic, what is left out."""

from pathlib import Path
from typing import Any

import pytest

from millrace.migrate import Options, RecipeError, import_config
from recipes_imported import Result, result

RECIPES = Path(__file__).parent / "recipes"


def recipe(*overrides: str, **options: Any) -> Result:
    """Imports the 3.x recipe."""
    file = RECIPES / "mmdetection3" / "mask_rcnn.py"
    return result(import_config(file, overrides, Options(**options)))


def old(*overrides: str, **options: Any) -> Result:
    """Imports the 2.x recipe."""
    file = RECIPES / "mmdetection2" / "retinanet.py"
    return result(import_config(file, overrides, Options(**options)))


def refused(*overrides: str) -> str:
    with pytest.raises(RecipeError) as raised:
        recipe(*overrides)
    return str(raised.value)


def test_keeps_channel_order() -> None:
    assert recipe()["model.pixel_order"] == "rgb"
    assert recipe()["model.pixel_mean"] == [123.675, 116.28, 103.53]
    assert old()["model.pixel_order"] == "bgr"
    assert old()["model.pixel_mean"] == [103.53, 116.28, 123.675]
    assert old()["data.divisor"] == 64


def test_scales_epochs_for_repeated_data_set() -> None:
    config = recipe()
    assert config["train.epochs"] == 36
    assert config["schedule.milestones"] == [30, 33]  # _base_.param_scheduler[1]
    assert config["callbacks.evaluate.every"] == "3 epochs"
    assert config["callbacks.checkpoint.every"] == "3 epochs"
    assert "mask_rcnn.py:7 " in config.origins["schedule.milestones"]


def test_converts_iterations_to_epochs() -> None:
    assert old()["optimizer.lr_batch"] == 32  # 8 x 4
    assert old()["train.epochs"] == 24.5595  # 90000 x 32 / 117266
    assert old(gpus=4)["train.epochs"] == 12.2798
    assert old(gpus=4)["optimizer.lr_batch"] == 16
    assert old(images=2880000)["train.epochs"] == 1
    assert old()["callbacks.evaluate.every"] == "10000 steps"


def test_multiplies_anchor_scales_by_strides() -> None:
    assert recipe()["model.anchors.sizes"] == [32, 64, 128, 256, 512]
    assert old()["model.anchors.sizes"] == [32, 64, 128, 256, 512]
    assert old()["model.anchors.scales_per_octave"] == 3
    assert old()["model.anchors.order"] == "ratio"
    assert old()["model.fpn.p6_from"] == "p5"


def test_inverts_deviations_to_weights() -> None:
    assert recipe()["model.box.bbox_reg_weights"] == [10, 10, 5, 5]


@pytest.mark.parametrize(
    "kind, grad, keeps, ours",
    [
        ("BN", True, True, "frozen_stats"),
        ("BN", False, True, "frozen_bn"),
        ("BN", True, False, "bn"),
        ("SyncBN", True, False, "sync_bn"),
        ("GN", True, False, "gn"),
    ],
)
def test_translates_frozen_norms(kind: str, grad: bool, keeps: bool, ours: str) -> None:
    config = recipe(
        f"model.backbone.norm_cfg.type='{kind}'",
        f"model.backbone.norm_cfg.requires_grad={grad}",
        f"model.backbone.norm_eval={keeps}",
    )
    assert config["model.backbone.norm"] == ours


def test_frozen_stages_include_stem() -> None:
    assert recipe()["model.backbone.freeze_at"] == 2
    assert recipe("model.backbone.frozen_stages=-1")["model.backbone.freeze_at"] == 0


def test_translates_optimizers_and_rules() -> None:
    config = recipe()
    assert config["optimizer.type"] == "adamw"
    assert config["optimizer.momentum"] == 0.9
    assert config["optimizer.beta2"] == 0.98
    assert config["optimizer.weight_decay_norm"] == 0
    assert config["optimizer.clip_norm"] == 35
    assert config["optimizer.groups"] == [{"match": "backbone.*", "lr_factor": 0.1}]
    assert config["train.precision"] == "fp16"
    # In torch, weight decay applies to trained norms as to all other parameters.
    without_rules = recipe("optim_wrapper.paramwise_cfg=None")
    assert without_rules["optimizer.weight_decay_norm"] == 0.05
    assert "optimizer.weight_decay_norm" not in old().values
    assert old()["optimizer.lr"] == 0.02
    assert old()["train.loss_scale"] == 512


def test_lists_rules_for_other_parameters() -> None:
    keys = "optim_wrapper.paramwise_cfg.custom_keys={'neck': 1, 'backbone.layer1': dict(lr_mult=2)}"
    left_out = recipe(keys).reasons
    above = "optim_wrapper.paramwise_cfg.custom_keys"
    assert {f"{above}.neck", f"{above}.backbone.layer1"} <= left_out.keys()


def test_converts_pipelines_to_sizes_and_flips() -> None:
    assert recipe()["data.short_side"] == [640, 800]
    assert recipe()["data.short_side_range"] is True
    assert old()["data.short_side"] == [640, 672, 800]
    assert "data.short_side_range" not in old().values
    assert old()["data.flip"] == 0.25
    assert old()["model.test.aug_flip"] is True
    assert old()["data.test_short_side"] == 800
    assert old()["data.root"] == "data/coco"
    assert recipe()["data.val"] == "val2017"
    assert recipe()["data.classes"] == ["person", "bicycle"]


def test_converts_jitter_to_stage() -> None:
    step = "dict(type='RandomResize', scale=(640, 512), ratio_range=(0.1, 2.0))"
    config = recipe(f"train_dataloader.dataset.dataset.pipeline.2={step}")
    assert config["data.stages"][2] == {
        "type": "large_scale_jitter",
        "min_scale": 0.1,
        "max_scale": 2,
        "width": 640,
        "height": 512,
    }


def test_translates_nms_types() -> None:
    assert recipe()["model.test.nms_type"] == "linear"
    assert recipe()["model.test.nms_thresh"] == 0.6
    config = recipe(
        "model.test_cfg.rcnn.nms.method='gaussian'", "model.test_cfg.rcnn.nms.sigma=0.4"
    )
    assert config["model.test.soft_nms_sigma"] == 0.4


def test_lists_values_without_counterpart() -> None:
    reasons = recipe(
        "model.roi_head.bbox_head.loss_bbox.loss_weight=2.0",
        "model.mine=dict(a=1)",
        "custom_hooks=[dict(type='EMAHook')]",
        "load_from='http://x/y.pth'",
    ).reasons
    words = {
        "model.train_cfg.rpn.assigner.min_pos_iou": "best anchor",
        "model.roi_head.bbox_head.loss_bbox.loss_weight": "no weights",
        "model.mine.a": "no counterpart",
        "custom_hooks": "callbacks",
        "unused_pipeline": "not used",
        "log_level": "runtime",
        "load_from": "docs/migrating.md",
    }
    assert all(word in reasons[key] for key, word in words.items())
    assert "no weights" in old().reasons["model.bbox_head.loss_bbox.loss_weight"]


@pytest.mark.parametrize(
    "override, words",
    [
        ("model.backbone.type='ResNeXt'", "model.backbone.type = 'ResNeXt'"),
        ("model.backbone.depth=152", "model.backbone.depth = 152"),
        ("model.neck=None", "no neck"),
        ("model.type='DETR'", "model.type = 'DETR'"),
        ("model.backbone.dcn=dict(type='DCN')", "model.backbone.dcn"),
        ("model.backbone.depth.x=1", "'model.backbone.depth.x'"),
        ("nothing", "key=value"),
        ("=1", "key=value"),
    ],
)
def test_rejects_unsupported_model_and_names_key(override: str, words: str) -> None:
    assert words in refused(override)
