"""Translates detectron2's keys: conversions, omitted values and errors."""

from pathlib import Path
from typing import Any

import pytest

from millrace.migrate import Options, RecipeError, import_config
from recipes_imported import Result, result

RECIPES = Path(__file__).parent / "recipes" / "detectron2"


def imported(name: str, *overrides: str, **options: Any) -> Result:
    return result(import_config(RECIPES / name, overrides, Options(**options)))


def mask_rcnn(*overrides: str, **options: Any) -> Result:
    """Imports the published Mask R-CNN recipe with overrides."""
    return imported("mask_rcnn_R50_FPN_1x.yaml", *overrides, **options)


def refused(*overrides: str, **options: Any) -> str:
    with pytest.raises(RecipeError) as raised:
        mask_rcnn(*overrides, **options)
    return str(raised.value)


def test_converts_iterations_to_epochs() -> None:
    config = mask_rcnn(gpus=8)
    assert config["train.epochs"] == 12.2798  # 90000 x 16 / 117266
    assert config["schedule.milestones"] == [8.1865, 10.9154]
    assert config["data.batch_size"] == 2
    assert config["optimizer.lr_batch"] == 16
    assert config["schedule.warmup"] == "1000 steps"
    assert config.origins["train.epochs"].endswith(
        "base_rcnn.yaml:26 SOLVER.MAX_ITER: 90000 x 16 images / 117266"
    )
    every_image = mask_rcnn("DATALOADER.FILTER_EMPTY_ANNOTATIONS", "False")
    assert every_image["train.epochs"] == 12.1738  # with all 118287 images
    assert mask_rcnn(images=1440000)["train.epochs"] == 1


def test_registered_data_set_needs_size() -> None:
    mine = ("DATASETS.TRAIN", "('mine',)")
    message = refused(*mine)
    assert "base_rcnn.yaml:26" in message
    assert "--images N" in message
    config = mask_rcnn(*mine, images=1000)
    assert "data.train" in config.reasons["DATASETS.TRAIN"]


def test_divides_batch_among_processes() -> None:
    message = refused(gpus=3)
    assert "SOLVER.IMS_PER_BATCH = 16" in message
    assert "3 GPUs" in message
    assert mask_rcnn("SOLVER.REFERENCE_WORLD_SIZE", "4")["data.batch_size"] == 4


def test_uses_detectron2_defaults() -> None:
    config = mask_rcnn()
    assert config["model.rpn.batch_size_per_image"] == 256
    assert "detectron2's default" in config.origins["model.rpn.batch_size_per_image"]
    assert imported("base_retinanet.yaml")["model.head.smooth_l1_beta"] == 0
    assert not config.reasons


def test_translates_cascade_stages() -> None:
    config = imported("cascade_mask_rcnn_R50_FPN_1x.yaml")
    assert config["model.type"] == "cascadercnn"
    assert config["model.masks"] is True
    assert config["model.roi.fg_iou_thresh"] == [0.5, 0.6, 0.7]
    weights = [10, 10, 5, 5, 20, 20, 10, 10, 30, 30, 15, 15]
    assert config["model.box.bbox_reg_weights"] == weights


def test_counts_anchors_per_octave() -> None:
    config = imported("retinanet_R50_FPN_1x.yaml")
    assert config["model.anchors.sizes"] == [32, 64, 128, 256, 512]
    assert config["model.anchors.scales_per_octave"] == 3
    sizes = "[[32, 48], [64], [128], [256], [512]]"
    assert "MODEL.ANCHOR_GENERATOR.SIZES" in refused("MODEL.ANCHOR_GENERATOR.SIZES", sizes)


def test_converts_test_augmentation_to_scales() -> None:
    config = mask_rcnn(
        "TEST.AUG.ENABLED", "True",
        "TEST.AUG.MIN_SIZES", "(400, 800)",
        "TEST.AUG.MAX_SIZE", "1400",
    )  # fmt: skip
    assert config["model.test.aug_scales"] == [0.5, 1]
    assert config["model.test.aug_flip"] is True
    assert config["data.test_short_side"] == 800
    assert config["data.resize_style"] == "detectron2"
    assert config["data.test_max_side"] == 1400


def test_crop_precedes_resize_with_width_first() -> None:
    config = mask_rcnn("INPUT.CROP.ENABLED", "True", "INPUT.CROP.SIZE", "[0.6, 0.9]")
    assert config["data.stages"][2:5] == [
        {
            "type": "random_crop",
            "crop_type": "relative_range",
            "size": [0.9, 0.6],
            "keep_object": False,
        },
        {"type": "resize_shortest_edge"},
        {"type": "flip"},
    ]


def test_lists_values_without_counterpart() -> None:
    config = mask_rcnn(
        "MODEL.RPN.LOSS_WEIGHT", "2.0",
        "SOLVER.CLIP_GRADIENTS.ENABLED", "True",
        "SOLVER.CLIP_GRADIENTS.CLIP_TYPE", "norm",
        "MODEL.MINE.DEPTH", "3",
        "MODEL.ROI_KEYPOINT_HEAD.NUM_KEYPOINTS", "4",
        "MODEL.RETINANET.NUM_CONVS", "2",
        "SOLVER.STEPS", "(60000, 95000)",
    )  # fmt: skip
    words = {
        "MODEL.RPN.LOSS_WEIGHT": "no weights",
        "SOLVER.CLIP_GRADIENTS.CLIP_TYPE": "each parameter",
        "MODEL.MINE.DEPTH": "not a key",
        "MODEL.ROI_KEYPOINT_HEAD.NUM_KEYPOINTS": "keypoints",
        "MODEL.RETINANET.NUM_CONVS": "no effect",
        "SOLVER.STEPS": "95000",
    }
    assert config.reasons.keys() == words.keys()
    assert all(words[key] in reason for key, reason in config.reasons.items())
    assert config["schedule.milestones"] == [8.1865]


@pytest.mark.parametrize(
    "key, value",
    [
        ("MODEL.META_ARCHITECTURE", "PanopticFPN"),
        ("MODEL.BACKBONE.NAME", "build_mnv2_backbone"),
        ("MODEL.RESNETS.DEPTH", "152"),
        ("MODEL.RESNETS.RES5_DILATION", "2"),
        ("MODEL.KEYPOINT_ON", "True"),
        ("MODEL.ROI_HEADS.NAME", "PointRendROIHeads"),
        ("MODEL.ROI_BOX_HEAD.NUM_FC", "3"),
        ("SOLVER.BASE_LR", "much"),
    ],
)
def test_rejects_unsupported_model_and_names_key(key: str, value: str) -> None:
    assert key in refused(key, value)
    assert "command line: " in refused(key, value) or key.endswith("NUM_FC")


def test_rejects_override_without_value() -> None:
    assert "SOLVER.BASE_LR" in refused("SOLVER.BASE_LR")


def test_translates_c4_heads() -> None:
    config = imported("mask_rcnn_R50_C4_1x.yaml")
    assert config["model.backbone.out"] == "c4"
    assert config["model.anchors.sizes"] == [32, 64, 128, 256, 512]
    assert config["model.rpn.pre_nms_top_n_test"] == 6000
    assert config["model.box.pooler_resolution"] == 14
    assert config["model.mask.num_convs"] == 0
    assert "model.fpn.out_channels" not in config.origins
    assert not config.reasons
    message = refused("MODEL.BACKBONE.NAME", "build_resnet_backbone")
    assert "MODEL.ROI_HEADS.NAME" in message  # heads for a pyramid


def test_translates_resnext() -> None:
    config = mask_rcnn("MODEL.RESNETS.NUM_GROUPS", "32", "MODEL.RESNETS.WIDTH_PER_GROUP", "8")
    assert config["model.backbone.groups"] == 32
    assert config["model.backbone.width_per_group"] == 8


def test_rejects_unsupported_files() -> None:
    with pytest.raises(RecipeError, match="docs/migrating.md"):
        import_config(Path("CMakeLists.txt"))
