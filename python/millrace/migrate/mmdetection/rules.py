"""Rules for those MMDetection model keys that need more than renaming. They raise RecipeError,
naming file and line, for values that no model here supports."""

from __future__ import annotations

import math

from millrace.migrate.errors import RecipeError
from millrace.migrate.shared_rules import put_anchor_sizes
from millrace.migrate.translation import Rule, Translation, apply, ignore, weights_file
from millrace.migrate.values import same

HEAD = "model.roi_head"

# Norms in necks and heads.
NORMS = {"GN": "gn", "BN": "bn", "SyncBN": "sync_bn"}

# The files for the names of weights from which MMDetection's recipes start.
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


def has_masks(t: Translation) -> bool:
    return bool(t.look(f"{HEAD}.mask_head")) and t.look("model.type").text() != "FasterRCNN"


def trains_norms(t: Translation) -> bool:
    """Returns whether the model's norms are trained. REQUIRES: the model has been read."""
    grad = t.look("model.backbone.norm_cfg.requires_grad")
    norms = [t.given(f"model.{part}.norm") for part in ("fpn", "head", "box")]
    if has_masks(t):
        norms.append("gn" if t.look(f"{HEAD}.mask_head.norm_cfg") else "none")
    return not grad or grad.flag() or any(norm not in (None, "none") for norm in norms)


def model_type(t: Translation, at: str) -> None:
    kind = t.must(at + "type", "FasterRCNN", "MaskRCNN", "CascadeRCNN", "RetinaNet")
    found, masks = t.look(at + "type"), has_masks(t)
    if kind == "RetinaNet":
        t.put("model.type", "retinanet", found)
    elif kind == "CascadeRCNN":
        t.put("model.type", "cascadercnn", found)
        t.put("model.masks", masks, t.look(f"{HEAD}.mask_head") if masks else found)
    else:
        t.put("model.type", "maskrcnn" if masks else "fasterrcnn", found)


def pixels(order: str) -> Rule:
    """Sets mean, std and channel order from the preprocessor (3.x) or `Normalize` (2.x)."""

    def rule(t: Translation, at: str) -> None:
        above = t.look(at.removesuffix("."))
        if not above:
            return
        t.copy(at + "mean", "model.pixel_mean")
        t.copy(at + "std", "model.pixel_std")
        rgb = t.read(at + order)
        if rgb:
            t.put("model.pixel_order", "rgb" if rgb.flag() else "bgr", rgb)
        else:
            t.put("model.pixel_order", "bgr", above, f"no {order}: order of the files")
        t.copy(at + "pad_size_divisor", "data.divisor")
        ignore("type", "pad_mask", "pad_value")(t, at)
        t.leave_out_rest(
            at + "batch_augments", 'for a fixed size of batches use data.pad_shapes = ["1024x1024"]'
        )

    return rule


def norm(ours: str) -> Rule:
    """Sets the norm of a part; "none" without norm_cfg."""

    def rule(t: Translation, at: str) -> None:
        found = t.read(at + "norm_cfg")
        name = NORMS.get(t.text_or(at + "norm_cfg.type", "")) if found else "none"
        if name is None:
            found.fail("not supported; expected GN, BN or SyncBN")
        t.put(ours, name, t.look(at.removesuffix(".")))

    return rule


def depth(t: Translation, at: str) -> None:
    found = t.read(at + "depth")
    if not found or found.real() not in (18, 34, 50, 101):
        wrong = found or t.look(at.removesuffix("."))
        wrong.fail("not supported; expected a ResNet of depth 18, 34, 50 or 101")
    t.put("model.backbone.type", f"resnet{found.integer()}", found)


def stem(t: Translation, at: str) -> None:
    kind = t.look(at + "type")
    if kind.text() == "ResNetV1d":
        t.put("model.backbone.deep_stem", True, kind)
        t.put("model.backbone.avg_down", True, kind)


def frozen_stages(t: Translation, at: str) -> None:
    found = t.read(at + "frozen_stages")
    if found:
        how = "plus the stem, which counts here"
        t.put("model.backbone.freeze_at", found.integer() + 1, found, how)
    else:
        t.set("model.backbone.freeze_at", 0, "MMDetection's default")


def backbone_norm(t: Translation, at: str) -> None:
    found = t.read(at + "norm_cfg")
    kind = t.text_or(at + "norm_cfg.type", "BN")
    trains = t.flag_or(at + "norm_cfg.requires_grad", True)
    keeps = t.flag_or(at + "norm_eval", True)
    if kind not in NORMS:
        found.fail("not supported; expected BN, SyncBN or GN")
    ours = NORMS[kind]
    if kind != "GN" and keeps:
        ours = "frozen_stats" if trains else "frozen_bn"
    why = f"{kind}, requires_grad={trains}, norm_eval={keeps}"
    if found:
        t.put("model.backbone.norm", ours, found, why)
    else:
        t.set("model.backbone.norm", ours, f"MMDetection's default: {why}")


def stride(t: Translation, at: str) -> None:
    """Sets which convolution of a block has the stride; basic blocks have no 1x1 convolution."""
    style = t.read(at + "style")
    caffe = bool(style) and style.text() == "caffe"
    if t.look(at + "depth").integer() < 50:
        return
    if style:
        t.put("model.backbone.stride_in_1x1", caffe, style)
    else:
        t.set("model.backbone.stride_in_1x1", False, "MMDetection's default")


def weights(t: Translation, at: str) -> None:
    ignore("type", "prefix")(t, at + "init_cfg.")
    found = t.read_any(at + "init_cfg.checkpoint", "model.pretrained")
    t.leave_out(
        t.read("load_from"),
        "weights of a whole detector with MMDetection's names are not supported: "
        "docs/migrating.md",
    )
    if found:
        name = found.text()
        address = WEIGHTS.get(name, name if "://" in name else "")
        t.put("model.weights", weights_file(address) if address else name, found, address)
    else:
        why = "MMDetection's default for a network without weights"
        t.set("model.backbone.zero_init_residual", True, why)


def neck(t: Translation, at: str) -> None:
    if not t.look("model.neck"):
        where = t.look("model").where()
        raise RecipeError(f"{where}: no neck; expected a feature pyramid (FPN)")


def extra_levels(t: Translation, at: str) -> None:
    """P6 and P7 of RetinaNet are computed by layers with weights."""
    extra = t.read(at + "add_extra_convs")
    if t.given("model.type") != "retinanet":
        t.leave_out(extra, "P6 of a two-stage detector is pooled from P5")
        return
    made_from = extra.need().data if extra else None
    if made_from == "on_output":
        t.put("model.fpn.p6_from", "p5", extra)
    elif made_from == "on_lateral":
        t.leave_out(extra, "P6 is computed from C5 or P5, see model.fpn.p6_from")
    t.expect(at + "relu_before_extra_convs", True, "P7 is computed from ReLU(P6)")


def channels(theirs: str, reason: str) -> Rule:
    """Requires the number of channels of the pyramid."""

    def rule(t: Translation, at: str) -> None:
        t.expect(at + theirs, t.look("model.neck.out_channels").need(), reason)

    return rule


def anchors(t: Translation, at: str) -> None:
    t.must(at + "type", "AnchorGenerator")
    strides, scales = t.read(at + "strides"), t.read(at + "scales")
    base, octaves = t.read(at + "octave_base_scale"), t.read(at + "scales_per_octave")
    if not strides or not (scales or (base and octaves)):
        head = t.look(at.removesuffix(".anchor_generator."))
        head.fail("strides and scales of anchor_generator not found")
    if scales:
        factors = scales.reals()
    else:
        count = octaves.integer()
        factors = [base.real() * 2 ** (i / count) for i in range(min(count, 16))]
    levels = [[one * step for one in factors] for step in strides.reals()]
    put_anchor_sizes(t, levels, scales or base, "times the strides")
    if len(factors) > 1:
        t.set("model.anchors.order", "ratio", "as in MMDetection's AnchorGenerator")
    t.copy(at + "ratios", "model.anchors.aspect_ratios")
    t.expect(at + "center_offset", 0.0, "anchors are centred on the corners of cells")
    t.expect(at + "scale_major", True, "anchors are ordered by ratio, then by scale")
    t.leave_out(t.read(at + "base_sizes"), "sizes are scales times strides")


def coder(reason: str) -> Rule:
    """Reads the box coder of a head whose deltas are not scaled."""

    def rule(t: Translation, at: str) -> None:
        if _coder_weights(t, at) != [1] * 4:
            t.leave_out(t.look(at + "target_stds"), reason)

    return rule


def _coder_weights(t: Translation, at: str) -> list[float]:
    """Returns the weights of dx dy dw dh: the reciprocals of target_stds."""
    t.expect(at + "type", "DeltaXYWHBBoxCoder", "boxes are encoded as dx dy dw dh")
    t.expect(at + "target_means", [0.0] * 4, "means are 0")
    t.expect(at + "clip_border", True, "boxes are clipped to the image")
    deviations = t.read(at + "target_stds")
    if not deviations:
        return [1.0] * 4
    if min(deviations.reals(), default=1) <= 0:
        deviations.fail("deviations must be above 0")
    return [_whole_if_near(1 / one) for one in deviations.reals()]


def _whole_if_near(value: float) -> float:
    """Rounds a reciprocal that is almost an integer, so that 1 / 0.1 is exactly 10."""
    near = math.floor(min(value, 1e15) + 0.5)
    return float(near) if abs(value - near) < 1e-9 else value


def box_loss(ours: str) -> Rule:
    """Reads a head's `loss_bbox`. The RPN does not support GIoU."""
    giou = ours != "model.rpn"

    def rule(t: Translation, at: str) -> None:
        kind = t.read(at + "type")
        if not kind:
            return
        t.expect(at + "loss_weight", 1.0, "losses have no weights here")
        beta = t.read(at + "beta")
        name = kind.text()
        if name == "L1Loss":
            t.put(f"{ours}.smooth_l1_beta", 0.0, kind)
        elif name == "SmoothL1Loss" and beta:
            t.put(f"{ours}.smooth_l1_beta", beta.real(), beta)
        elif name == "SmoothL1Loss":
            t.put(f"{ours}.smooth_l1_beta", 1.0, kind, "its default")
        elif name == "GIoULoss" and giou:
            t.put(f"{ours}.bbox_reg_loss_type", "giou", kind)
        elif giou:
            t.leave_out(kind, "the box loss is (smooth) L1 or GIoU")
        else:
            t.leave_out(kind, "the box loss of proposals is (smooth) L1")
        t.leave_out_rest(at.removesuffix("."), "no counterpart in the box losses")

    return rule


def two_thresholds(ours: str) -> Rule:
    """Reads the assigner of anchors."""

    def rule(t: Translation, at: str) -> None:
        t.copy(at + "pos_iou_thr", f"{ours}.fg_iou_thresh")
        t.copy(at + "neg_iou_thr", f"{ours}.bg_iou_thresh")

    return rule


def best_anchor(t: Translation, at: str) -> None:
    t.leave_out(
        t.read(at + "min_pos_iou"),
        "each object's best anchor is foreground at any IoU, as in detectron2",
    )


def one_threshold(t: Translation, at: str) -> None:
    """Reads the assigner of regions."""
    low, high = t.read(at + "neg_iou_thr"), t.read(at + "pos_iou_thr")
    if not high:
        t.look(HEAD).fail(f"{at}pos_iou_thr not found")
    t.put("model.roi.fg_iou_thresh", high.real(), high)
    if low and low.real() != high.real():
        t.leave_out(low, "expected one threshold, between background and foreground")
    poor = t.read(at + "match_low_quality")
    if poor and poor.flag():
        t.leave_out(poor, "a region is matched to the object with the largest IoU")


def same_nms(t: Translation, at: str) -> None:
    """Reads the NMS threshold of proposals in detection, which must equal that in training."""
    found = t.read_any(at + "nms.iou_threshold", at + "nms_thr")
    if found and t.given("model.rpn.nms_thresh") != found.real():
        t.leave_out(found, "training and detection use the same threshold, model.rpn.nms_thresh")


def detections(t: Translation, at: str) -> None:
    """Reads the NMS of detections."""
    t.copy(at + "score_thr", "model.test.score_thresh")
    t.copy(at + "max_per_img", "model.test.detections_per_img")
    kind = t.read(at + "nms.type")
    method = t.text_or(at + "nms.method", "linear")
    sigma = t.read(at + "nms.sigma")
    overlap = (at + "nms.iou_threshold", "model.test.nms_thresh", at + "nms.iou_thr")
    if not kind or kind.text() == "nms":
        t.copy(*overlap)
    elif kind.text() == "soft_nms" and method in ("linear", "gaussian"):
        t.put("model.test.nms_type", method, kind)
        if method == "linear":
            t.copy(*overlap)
        elif sigma:
            t.put("model.test.soft_nms_sigma", sigma.real(), sigma)
        t.read_any(at + "nms.iou_threshold", at + "nms.iou_thr")
        least = t.read(at + "nms.min_score")
        t.leave_out(least, "detections below model.test.score_thresh are removed")
    else:
        t.read_any(at + "nms.iou_threshold", at + "nms.iou_thr")
        t.leave_out(kind, "model.test.nms_type must be hard, linear or gaussian")


def box_heads(rows: list[Rule], first: list[Rule], alike: tuple[str, ...]) -> Rule:
    """Reads the box head, or the box heads of a cascade, which must agree in the keys `alike`."""

    def rule(t: Translation, at: str) -> None:
        paths = _stages(t, at + "bbox_head")
        all_weights: list[float] = []
        for stage, path in enumerate(paths):
            all_weights += _coder_weights(t, f"{path}.bbox_coder.")
            apply(t, rows, f"{path}.")
            for key in alike if stage else ():
                _expect_alike(t, f"{paths[0]}.{key}", f"{path}.{key}", "must have the same head")
            if stage == 0:
                apply(t, first, f"{path}.")
        deviations = t.look(f"{paths[0]}.bbox_coder.target_stds")
        if deviations:
            how = "1 / target_stds of each stage"
            t.put("model.box.bbox_reg_weights", all_weights, deviations, how)
        if is_cascade(t):
            t.read(at + "num_stages")
            reason = "losses of all stages have the same weight, as in detectron2"
            t.expect(at + "stage_loss_weights", [1.0] * len(paths), reason)

    return rule


def is_cascade(t: Translation) -> bool:
    return t.given("model.type") == "cascadercnn"


def _stages(t: Translation, path: str) -> list[str]:
    """Returns the paths of a cascade's heads, or of the single head."""
    found = t.look(path)
    is_list = bool(found) and found.is_list()
    count = len(found.items()) if is_list else 1
    if is_cascade(t) and (not is_list or count == 0):
        t.look(HEAD).fail("bbox_head of a cascade must be a list of its stages")
    if is_list and not is_cascade(t):
        t.look(HEAD).fail("bbox_head must be a single head")
    return [f"{path}.{stage}" for stage in range(count)] if is_list else [path]


def _expect_alike(t: Translation, first: str, other: str, how: str) -> None:
    wanted, one = t.look(first), t.read(other)
    if bool(wanted) != bool(one) or (one and not same(wanted.need(), one.need())):
        (one or wanted).fail(f"the stages of a cascade {how}")


def roi_head(t: Translation, at: str) -> None:
    t.must(at + "type", "CascadeRoIHead" if is_cascade(t) else "StandardRoIHead")


def box_layers(t: Translation, at: str) -> None:
    kind = t.must(at + "type", "Shared2FCBBoxHead", "Shared4Conv1FCBBoxHead")
    plain = kind == "Shared2FCBBoxHead"
    t.put("model.box.type", "2fc" if plain else "4conv1fc", t.look(at + "type"))
    t.copy(at + "fc_out_channels", "model.box.fc_dim")
    t.copy(at + "reg_class_agnostic", "model.box.cls_agnostic_bbox_reg")
    if not plain:
        norm("model.box.norm")(t, at)
        reason = "convolutions have the same channels as the pyramid"
        channels("conv_out_channels", reason)(t, at)


def mask_pooler(t: Translation, at: str) -> None:
    """Requires the mask head's pooler to equal that of the box head."""
    samples = t.read_any(at + "sampling_ratio", at + "sample_num")
    for mine, key in ((samples, "sampling_ratio"), (t.read(at + "aligned"), "aligned")):
        other = t.look(f"{HEAD}.bbox_roi_extractor.roi_layer.{key}")
        if mine and not (other and same(mine.need(), other.need())):
            t.leave_out(mine, "the mask head uses the box head's pooler")


def canonical_size(t: Translation, at: str) -> None:
    scale = t.read(at + "finest_scale")
    if scale:
        how = "side of boxes assigned to P4"
        t.put("model.roi.canonical_box_size", 4 * scale.real(), scale, how)


def mask_heads(t: Translation, at: str) -> None:
    if is_cascade(t):
        t.leave_out(
            t.look(at + "type"),
            "MMDetection trains a mask head per stage; here a single one trains on the regions of "
            "the first stage, as in detectron2",
        )


def mask_norm(t: Translation, at: str) -> None:
    """Requires the mask head's norm to equal the pyramid's."""
    found = t.read(at + "norm_cfg")
    name = NORMS.get(t.text_or(at + "norm_cfg.type", "")) if found else "none"
    if name is None:
        found.fail("not supported; expected GN, BN or SyncBN")
    if t.given("model.fpn.norm") != name:
        reason = f"norm '{name}' differs from that of the pyramid"
        t.leave_out(t.look(at.removesuffix(".")), reason)


def region_training(rows: list[Rule], sampler: list[Rule]) -> Rule:
    """Reads the sampling of the single stage, or of all stages of a cascade, which must be
    equal."""

    def rule(t: Translation, at: str) -> None:
        count = len(_stages(t, f"{HEAD}.bbox_head"))
        paths = [f"{at}{stage}." for stage in range(count)] if is_cascade(t) else [at]
        for stage, path in enumerate(paths):
            one_threshold(t, f"{path}assigner.")
            if stage == 0:
                apply(t, sampler, f"{path}sampler.")
            elif t.look(f"{path}sampler") and t.look(f"{at}0.sampler"):
                _expect_alike(t, f"{at}0.sampler", f"{path}sampler", "must have the same sampler")
            else:
                t.read(f"{path}sampler")
            apply(t, rows, path)
        if is_cascade(t):
            thresholds = [t.look(f"{path}assigner.pos_iou_thr").real() for path in paths]
            above = t.look(at.removesuffix("."))
            t.put("model.roi.fg_iou_thresh", thresholds, above, "pos_iou_thr of each stage")

    return rule
