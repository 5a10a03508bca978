"""The model of a recipe of MMDetection. All functions raise RecipeError for what no model here
has; those that return a flag say whether norms of the part are trained."""

from __future__ import annotations

import math

from millrace.migrate.errors import RecipeError
from millrace.migrate.mmdetection import table
from millrace.migrate.mmdetection.layout import Layout
from millrace.migrate.shared_rules import NO_LOSS_WEIGHTS, put_anchor_sizes
from millrace.migrate.translation import Translation, apply, weights_file
from millrace.migrate.values import same

HEAD = "model.roi_head"


def must(t: Translation, path: str, *possible: str) -> str:
    """A string that must be there and be one of these, else the model is none of ours."""
    found = t.read(path)
    if not found:
        raise RecipeError.at(t.look("").place, f"`{path}` is missing")
    return found.one_of(found.text(), possible)


def read_model(t: Translation, layout: Layout) -> bool:
    """The model and its weights. Returns whether norms of it are trained."""
    kind = must(t, "model.type", "FasterRCNN", "MaskRCNN", "CascadeRCNN", "RetinaNet")
    found, mask_head = t.look("model.type"), t.look(f"{HEAD}.mask_head")
    masks = bool(mask_head) and kind != "FasterRCNN"
    if kind == "RetinaNet":
        t.put("model.type", "retinanet", found)
    elif kind == "CascadeRCNN":
        t.put("model.type", "cascadercnn", found)
        t.put("model.masks", masks, mask_head if masks else found)
    else:
        t.put("model.type", "maskrcnn" if masks else "fasterrcnn", found)
    read_pixels(t, "model.data_preprocessor", "bgr_to_rgb")
    trains_norms = _read_backbone(t)
    trains_norms |= _read_neck(t, kind == "RetinaNet")
    if kind == "RetinaNet":
        return _read_retina_head(t, layout) or trains_norms
    t.set(
        "model.roi.level_eps", 2.5e-7,
        "as MMDetection's 1e-6, whose regions of 56 pixels go to P2",
    )  # fmt: skip
    _read_rpn(t, layout)
    return _read_roi_head(t, layout, kind == "CascadeRCNN", masks) or trains_norms


def read_pixels(t: Translation, path: str, order: str) -> None:
    """mean, std and order of channels: of the preprocessor (3.x) or of `Normalize` (2.x).
    `order`: the key of the latter."""
    if not t.look(path):
        return
    t.copy(f"{path}.mean", "model.pixel_mean")
    t.copy(f"{path}.std", "model.pixel_std")
    rgb = t.read(f"{path}.{order}")
    if rgb:
        t.put("model.pixel_order", "rgb" if rgb.flag() else "bgr", rgb)
    else:
        t.put("model.pixel_order", "bgr", t.look(path), f"no {order}: as files are read")
    t.copy(f"{path}.pad_size_divisor", "data.divisor")
    for key in ("type", "pad_mask", "pad_value"):
        t.read(f"{path}.{key}")
    t.leave_out_rest(
        f"{path}.batch_augments", 'a fixed size of batches is data.pad_shapes = ["1024x1024"]'
    )


def _norm_of(t: Translation, part: str) -> str:
    """Our name of the norm of a part, "none" without norm_cfg."""
    found = t.read(f"{part}.norm_cfg")
    if not found:
        return "none"
    name = table.NORMS.get(t.text_or(f"{part}.norm_cfg.type", ""))
    if name is None:
        found.fail("the norms here are GN, BN and SyncBN")
    return name


def _read_backbone(t: Translation) -> bool:
    path = "model.backbone"
    kind = must(t, f"{path}.type", "ResNet", "ResNetV1d")
    depth = t.read(f"{path}.depth")
    if not depth or depth.real() not in (18, 34, 50, 101):
        (depth or t.look(path)).fail("the backbones here are ResNets of depth 18, 34, 50, 101")
    t.put("model.backbone.type", f"resnet{depth.integer()}", depth)
    for key in ("dcn", "plugins", "conv_cfg"):
        found = t.read(f"{path}.{key}")
        if found:
            found.fail("no backbone here has these")
    for key in ("num_stages", "out_indices", "in_channels", "with_cp", "strides"):
        t.read(f"{path}.{key}")
    t.expect(f"{path}.dilations", [1] * 4, "no stage is dilated")
    if kind == "ResNetV1d":
        t.put("model.backbone.deep_stem", True, t.look(f"{path}.type"))
        t.put("model.backbone.avg_down", True, t.look(f"{path}.type"))
    apply(t, table.BACKBONE, f"{path}.")
    frozen = t.read(f"{path}.frozen_stages")
    if frozen:
        stages = frozen.integer() + 1
        t.put(
            "model.backbone.freeze_at", stages, frozen, "stages after the stem, which counts here"
        )
    else:
        t.set("model.backbone.freeze_at", 0, "MMDetection's default")
    trains_norms = _read_backbone_norm(t, path)
    style = t.read(f"{path}.style")
    caffe = bool(style) and style.text() == "caffe"
    if depth.integer() >= 50 and style:
        t.put("model.backbone.stride_in_1x1", caffe, style)
    elif depth.integer() >= 50:
        t.set("model.backbone.stride_in_1x1", False, "MMDetection's default")
    _read_weights(t, path)
    return trains_norms


def _read_backbone_norm(t: Translation, path: str) -> bool:
    norm = t.read(f"{path}.norm_cfg")
    kind = t.text_or(f"{path}.norm_cfg.type", "BN")
    trains = t.flag_or(f"{path}.norm_cfg.requires_grad", True)
    keeps = t.flag_or(f"{path}.norm_eval", True)
    if kind not in table.NORMS:
        norm.fail("the norms here are BN, SyncBN and GN")
    ours = table.NORMS[kind]
    if kind != "GN" and keeps:
        ours = "frozen_stats" if trains else "frozen_bn"
    why = f"{kind}, requires_grad={trains}, norm_eval={keeps}"
    if norm:
        t.put("model.backbone.norm", ours, norm, why)
    else:
        t.set("model.backbone.norm", ours, f"MMDetection's default: {why}")
    return trains


def _read_weights(t: Translation, backbone: str) -> None:
    found = t.read(f"{backbone}.init_cfg.checkpoint")
    t.read(f"{backbone}.init_cfg.type")
    t.read(f"{backbone}.init_cfg.prefix")
    old = t.read("model.pretrained")
    found = found or old
    t.leave_out(
        t.read("load_from"),
        "the weights of a whole detector, by MMDetection's names, which nothing here reads: "
        "docs/migrating/mmdetection.md",
    )
    if not found:
        t.set(
            "model.backbone.zero_init_residual", True,
            "MMDetection's default for a network without weights",
        )  # fmt: skip
        return
    name = found.text()
    address = table.WEIGHTS.get(name, name if "://" in name else "")
    t.put("model.weights", weights_file(address) if address else name, found, address)


def _read_neck(t: Translation, retina: bool) -> bool:
    """`retina`: the pyramid is RetinaNet's, whose P6 and P7 have weights."""
    path = "model.neck"
    if not t.look(path):
        raise RecipeError(
            f"{t.look('model').where()}: no neck: the models here have a feature pyramid (FPN)"
        )
    must(t, f"{path}.type", "FPN")
    t.read(f"{path}.in_channels")
    t.read(f"{path}.start_level")
    t.copy(f"{path}.out_channels", "model.fpn.out_channels")
    t.expect(f"{path}.num_outs", 5, "the pyramid has five levels")
    convs = t.read(f"{path}.conv_cfg")
    if convs:
        convs.fail("plain convolutions only")
    norm = _norm_of(t, path)
    t.put("model.fpn.norm", norm, t.look(path))
    extra = t.read(f"{path}.add_extra_convs")
    if not retina:
        t.leave_out(extra, "P6 of a two-stage detector is pooled from P5")
        return norm != "none"
    made_from = extra.need().data if extra else None
    if made_from == "on_output":
        t.put("model.fpn.p6_from", "p5", extra)
    elif made_from == "on_lateral":
        t.leave_out(extra, "P6 is made from C5 or P5: model.fpn.p6_from")
    t.expect(f"{path}.relu_before_extra_convs", True, "P7 is made from ReLU(P6)")
    return norm != "none"


def _read_retina_head(t: Translation, layout: Layout) -> bool:
    path = "model.bbox_head"
    must(t, f"{path}.type", "RetinaHead")
    t.read(f"{path}.num_classes")
    t.read(f"{path}.in_channels")
    t.expect(
        f"{path}.feat_channels",
        t.look("model.neck.out_channels").need(),
        "its convolutions have as many channels as the pyramid",
    )
    t.copy(f"{path}.stacked_convs", "model.head.num_convs")
    norm = _norm_of(t, path)
    t.put("model.head.norm", norm, t.look(path))
    _read_anchors(t, path)
    if _coder_weights(t, path) != [1] * 4:
        t.leave_out(t.look(f"{path}.bbox_coder.target_stds"), "deltas are not scaled")
    apply(t, table.RETINA_LOSS, f"{path}.loss_cls.")
    _read_box_loss(t, path, "model.head", giou=True)
    background, foreground = "model.head.bg_iou_thresh", "model.head.fg_iou_thresh"
    _read_assigner(t, layout.train_cfg, background, foreground, notes_floor=False)
    apply(t, table.RETINA_TRAINING, f"{layout.train_cfg}.")
    apply(t, table.DEBUG, f"{layout.train_cfg}.")
    apply(t, table.RETINA_DETECTION, f"{layout.test_cfg}.")
    _read_detections(t, layout.test_cfg)
    return norm != "none"


def _read_rpn(t: Translation, layout: Layout) -> None:
    path, training = "model.rpn_head", f"{layout.train_cfg}.rpn"
    must(t, f"{path}.type", "RPNHead")
    t.read(f"{path}.in_channels")
    t.expect(
        f"{path}.feat_channels",
        t.look("model.neck.out_channels").need(),
        "its convolution has as many channels as the pyramid",
    )
    t.expect(f"{path}.num_convs", 1, "one convolution")
    _read_anchors(t, path)
    if _coder_weights(t, path) != [1] * 4:
        t.leave_out(
            t.look(f"{path}.bbox_coder.target_stds"), "deltas of proposals are not scaled"
        )
    apply(t, table.RPN_LOSS, f"{path}.loss_cls.")
    _read_box_loss(t, path, "model.rpn", giou=False)
    t.set("model.rpn.loss_normalizer", "sampled", "as MMDetection divides the RPN's losses")
    background, foreground = "model.rpn.bg_iou_thresh", "model.rpn.fg_iou_thresh"
    _read_assigner(t, training, background, foreground, notes_floor=True)
    _read_sampler(t, training, "model.rpn")
    t.copy(f"{training}.allowed_border", "model.rpn.boundary_thresh")
    apply(t, table.DEBUG, f"{training}.")
    _read_proposals(t, f"{layout.train_cfg}.rpn_proposal", "train")
    _read_proposals(t, f"{layout.test_cfg}.rpn", "test")


def _read_proposals(t: Translation, path: str, when: str) -> None:
    """`when`: "train" or "test"."""
    before = t.read(f"{path}.nms_pre")
    if before:
        t.put(f"model.rpn.pre_nms_top_n_{when}", before.real(), before)
    after = t.read_any(f"{path}.max_per_img", f"{path}.max_num", f"{path}.nms_post")
    if after:
        t.put(f"model.rpn.post_nms_top_n_{when}", after.real(), after)
    overlap = t.read_any(f"{path}.nms.iou_threshold", f"{path}.nms_thr")
    t.expect(f"{path}.nms.type", "nms", "proposals go through hard NMS")
    t.read(f"{path}.nms_across_levels")
    if overlap and when == "train":
        t.put("model.rpn.nms_thresh", overlap.real(), overlap)
    elif overlap and t.given("model.rpn.nms_thresh") != overlap.real():
        t.leave_out(overlap, "one threshold in training and detection: model.rpn.nms_thresh")
    side = t.read(f"{path}.min_bbox_size")
    if side and when == "test":
        t.put("model.rpn.min_size", side.real(), side)


def _read_roi_head(t: Translation, layout: Layout, cascade: bool, masks: bool) -> bool:
    must(t, f"{HEAD}.type", "CascadeRoIHead" if cascade else "StandardRoIHead")
    box_head = t.look(f"{HEAD}.bbox_head")
    is_list = bool(box_head) and box_head.is_list()
    count = len(box_head.items()) if is_list else 1
    if cascade != is_list or count == 0:
        t.look(HEAD).fail(
            "a cascade's bbox_head is a list of its stages" if cascade else "bbox_head is one head"
        )
    heads = [f"{HEAD}.bbox_head.{i}" for i in range(count)] if is_list else [f"{HEAD}.bbox_head"]
    trains_norms = False
    weights: list[float] = []
    for stage, path in enumerate(heads):
        weights += _coder_weights(t, path)
        trains_norms |= _read_box_head(t, path, heads[0] if stage else "")
    deviations = t.look(f"{heads[0]}.bbox_coder.target_stds")
    if deviations:
        t.put(
            "model.box.bbox_reg_weights", weights, deviations,
            "1 / target_stds of each stage",
        )  # fmt: skip
    if cascade:
        t.read(f"{HEAD}.num_stages")
        t.expect(
            f"{HEAD}.stage_loss_weights", [1.0] * count,
            "the losses of all stages count the same, as in detectron2",
        )  # fmt: skip
    _read_pooler(t, f"{HEAD}.bbox_roi_extractor", "model.box.pooler_resolution", decides=True)
    if masks:
        extractor = f"{HEAD}.mask_roi_extractor"
        _read_pooler(t, extractor, "model.mask.pooler_resolution", decides=False)
        trains_norms |= _read_mask_head(t, f"{HEAD}.mask_head", cascade)
    _read_region_training(t, layout, cascade, count)
    _read_detections(t, f"{layout.test_cfg}.rcnn")
    t.expect(f"{layout.test_cfg}.rcnn.mask_thr_binary", 0.5, "a mask's border is at 0.5")
    return trains_norms


def _read_box_head(t: Translation, path: str, first: str) -> bool:
    """The only head, or a stage of a cascade after the `first`, which it must be like."""
    kind = must(t, f"{path}.type", "Shared2FCBBoxHead", "Shared4Conv1FCBBoxHead")
    apply(t, table.BOX_HEAD, f"{path}.")
    for key in table.BOX_HEAD_ALIKE if first else ():
        wanted, one = t.look(f"{first}.{key}"), t.read(f"{path}.{key}")
        if bool(wanted) != bool(one) or (one and not same(wanted.need(), one.need())):
            (one or wanted).fail("the stages of a cascade have the same head")
    if first:
        return False
    plain = kind == "Shared2FCBBoxHead"
    t.put("model.box.type", "2fc" if plain else "4conv1fc", t.look(f"{path}.type"))
    t.copy(f"{path}.fc_out_channels", "model.box.fc_dim")
    t.copy(f"{path}.reg_class_agnostic", "model.box.cls_agnostic_bbox_reg")
    norm = "none" if plain else _norm_of(t, path)
    if not plain:
        t.put("model.box.norm", norm, t.look(path))
        t.expect(
            f"{path}.conv_out_channels",
            t.look("model.neck.out_channels").need(),
            "its convolutions have as many channels as the pyramid",
        )
    _read_box_loss(t, path, "model.box", giou=True)
    return norm != "none"


def _read_pooler(t: Translation, path: str, resolution: str, decides: bool) -> None:
    """`decides`: its keys hold for both heads."""
    must(t, f"{path}.type", "SingleRoIExtractor")
    must(t, f"{path}.roi_layer.type", "RoIAlign")
    t.read(f"{path}.out_channels")
    t.read(f"{path}.featmap_strides")
    size = t.read_any(f"{path}.roi_layer.output_size", f"{path}.roi_layer.out_size")
    if size:
        t.put(resolution, size.real(), size)
    samples = t.read_any(f"{path}.roi_layer.sampling_ratio", f"{path}.roi_layer.sample_num")
    aligned = t.read(f"{path}.roi_layer.aligned")
    scale = t.read(f"{path}.finest_scale")
    if not decides:
        layer = f"{HEAD}.bbox_roi_extractor.roi_layer"
        for mine, key in ((samples, "sampling_ratio"), (aligned, "aligned")):
            other = t.look(f"{layer}.{key}")
            if mine and not (other and same(mine.need(), other.need())):
                t.leave_out(mine, "the mask head's regions are pooled as the box head's")
        return
    if samples:
        t.put("model.roi.sampling_ratio", samples.real(), samples)
    if aligned:
        t.put("model.roi.aligned", aligned.flag(), aligned)
    if scale:
        t.put(
            "model.roi.canonical_box_size", 4 * scale.real(), scale, "the side that goes to P4"
        )


def _read_mask_head(t: Translation, path: str, cascade: bool) -> bool:
    must(t, f"{path}.type", "FCNMaskHead")
    apply(t, table.MASK_HEAD, f"{path}.")
    if cascade:
        t.leave_out(
            t.look(f"{path}.type"),
            "MMDetection trains a mask head for each stage; here one learns from the regions of "
            "the first, as in detectron2",
        )
    apply(t, table.MASK_LOSS, f"{path}.loss_mask.")
    norm = _norm_of(t, path)
    if t.given("model.fpn.norm") != norm:
        t.leave_out(t.look(path), f"its norm is '{norm}': here it has the pyramid's")
    t.set("model.mask.init_std", 0.0, "He's, as FCNMaskHead's predictor starts")
    return norm != "none"


def _read_region_training(t: Translation, layout: Layout, cascade: bool, count: int) -> None:
    thresholds: list[float] = []
    training = f"{layout.train_cfg}.rcnn"
    for stage in range(count):
        path = f"{training}.{stage}" if cascade else training
        high = t.look(f"{path}.assigner.pos_iou_thr")
        if not high:
            t.look(HEAD).fail(f"{path}.assigner.pos_iou_thr is missing")
        _read_assigner(t, path, "", "model.roi.fg_iou_thresh", notes_floor=False)
        thresholds.append(high.real())
        if stage == 0:
            _read_sampler(t, path, "model.roi")
        else:
            first, one = t.look(f"{training}.0.sampler"), t.read(f"{path}.sampler")
            if first and one and not same(first.need(), one.need()):
                one.fail("the stages of a cascade sample alike")
        t.expect(f"{path}.mask_size", 28, "masks have twice model.mask.pooler_resolution")
        apply(t, table.DEBUG, f"{path}.")
    if cascade:
        t.put(
            "model.roi.fg_iou_thresh", thresholds, t.look(training),
            "pos_iou_thr of each stage",
        )  # fmt: skip


def _read_anchors(t: Translation, head: str) -> None:
    path = f"{head}.anchor_generator"
    must(t, f"{path}.type", "AnchorGenerator")
    strides, scales = t.read(f"{path}.strides"), t.read(f"{path}.scales")
    base, octaves = t.read(f"{path}.octave_base_scale"), t.read(f"{path}.scales_per_octave")
    if not strides or not (scales or (base and octaves)):
        t.look(head).fail("anchor_generator needs strides and scales")
    if scales:
        factors = scales.reals()
    else:
        count = octaves.integer()
        factors = [base.real() * 2 ** (i / count) for i in range(min(count, 16))]
    levels = [[one * step for one in factors] for step in strides.reals()]
    put_anchor_sizes(t, levels, scales or base, "times the strides")
    if len(factors) > 1:
        t.set("model.anchors.order", "ratio", "as MMDetection's AnchorGenerator counts them")
    apply(t, table.ANCHORS, f"{path}.")
    t.leave_out(t.read(f"{path}.base_sizes"), "sizes are scales times strides")


def _coder_weights(t: Translation, head: str) -> list[float]:
    """Weights of dx dy dw dh: one over the deviations of the `bbox_coder` of a head."""
    path = f"{head}.bbox_coder"
    apply(t, table.BOX_CODER, f"{path}.")
    deviations = t.read(f"{path}.target_stds")
    if not deviations:
        return [1.0] * 4
    if min(deviations.reals(), default=1) <= 0:
        deviations.fail("deviations are above 0")
    return [_whole_if_near(1 / one) for one in deviations.reals()]


def _whole_if_near(value: float) -> float:
    """1 / 0.1 is 10."""
    near = math.floor(min(value, 1e15) + 0.5)
    return float(near) if abs(value - near) < 1e-9 else value


def _read_box_loss(t: Translation, head: str, ours: str, giou: bool) -> None:
    """The `loss_bbox` of a head. `giou`: whether it may be that."""
    path = f"{head}.loss_bbox"
    kind = t.read(f"{path}.type")
    if not kind:
        return
    t.expect(f"{path}.loss_weight", 1.0, NO_LOSS_WEIGHTS)
    beta = t.read(f"{path}.beta")
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
        t.leave_out(kind, "boxes are learned with (smooth) L1 or GIoU")
    else:
        t.leave_out(kind, "proposals are learned with (smooth) L1")
    t.leave_out_rest(path, "without a counterpart in the losses of boxes")


def _read_assigner(
    t: Translation, above: str, background: str, foreground: str, notes_floor: bool
) -> None:
    """The `assigner` of a training's configuration: its upper threshold is our `foreground`, the
    lower one `background`; empty: there is one threshold. `notes_floor`: an IoU that an object's
    best anchor must have is noted."""
    path = f"{above}.assigner"
    t.expect(f"{path}.type", "MaxIoUAssigner", "boxes are matched by IoU")
    low, high = t.read(f"{path}.neg_iou_thr"), t.read(f"{path}.pos_iou_thr")
    if high:
        t.put(foreground, high.real(), high)
    if low and background:
        t.put(background, low.real(), low)
    if low and high and not background and low.real() != high.real():
        t.leave_out(low, "regions are foreground or background: one threshold")
    floor = t.read(f"{path}.min_pos_iou")
    if notes_floor:
        t.leave_out(
            floor,
            "each object's best anchor is foreground, however small its IoU, as in detectron2",
        )
    poor = t.read(f"{path}.match_low_quality")
    if poor and not background and poor.flag():
        t.leave_out(poor, "a region belongs to the object that it overlaps most")
    t.expect(f"{path}.ignore_iof_thr", -1, "crowds are not trained on")
    t.read(f"{path}.gpu_assign_thr")
    t.read(f"{path}.iou_calculator")


def _read_sampler(t: Translation, above: str, ours: str) -> None:
    path = f"{above}.sampler"
    t.expect(f"{path}.type", "RandomSampler", "samples are drawn at random")
    t.copy(f"{path}.num", f"{ours}.batch_size_per_image")
    t.copy(f"{path}.pos_fraction", f"{ours}.positive_fraction")
    t.expect(f"{path}.neg_pos_ub", -1, "background fills what is left")
    t.expect(
        f"{path}.add_gt_as_proposals",
        ours == "model.roi",
        "ground truth is among the regions, not among the anchors",
    )


def _read_detections(t: Translation, path: str) -> None:
    """Which detections of an image are kept: score_thr, nms, max_per_img."""
    apply(t, table.DETECTIONS, f"{path}.")
    kind = t.read(f"{path}.nms.type")
    overlap = t.read_any(f"{path}.nms.iou_threshold", f"{path}.nms.iou_thr")
    method = t.text_or(f"{path}.nms.method", "linear")
    sigma = t.read(f"{path}.nms.sigma")
    if not kind or kind.text() == "nms":
        if overlap:
            t.put("model.test.nms_thresh", overlap.real(), overlap)
    elif kind.text() == "soft_nms" and method in ("linear", "gaussian"):
        t.put("model.test.nms_type", method, kind)
        if method == "linear" and overlap:
            t.put("model.test.nms_thresh", overlap.real(), overlap)
        if method == "gaussian" and sigma:
            t.put("model.test.soft_nms_sigma", sigma.real(), sigma)
        t.leave_out(
            t.read(f"{path}.nms.min_score"),
            "what loses its score below model.test.score_thresh goes",
        )
    else:
        t.leave_out(kind, "model.test.nms_type is hard, linear or gaussian")
