"""Rules for those detectron2 keys that need more than renaming. They raise RecipeError, naming file
and line, for values that no model here supports."""

from __future__ import annotations

from millrace.migrate.shared_rules import put_anchor_sizes, put_repeat_factor, set_crop_size, stage
from millrace.migrate.toml import Setting
from millrace.migrate.translation import Found, Rule, Translation, weights_file
from millrace.migrate.values import plain

NORMS = {
    "": "none",
    "FrozenBN": "frozen_bn",
    "BN": "bn",
    "SyncBN": "sync_bn",
    "nnSyncBN": "sync_bn",
    "GN": "gn",
}


def norm(theirs: str, ours: str) -> Rule:
    def rule(t: Translation, at: str) -> None:
        found = t.read(at + theirs)
        name = NORMS.get(found.text())
        if name is None:
            found.fail("unknown norm; expected FrozenBN, BN, SyncBN, GN or none")
        t.put(ours, name, found)

    return rule


def anchor_matching(ours: str) -> Rule:
    """Sets the IoU thresholds of background and foreground anchors."""

    def rule(t: Translation, at: str) -> None:
        iou = t.read(at + "IOU_THRESHOLDS")
        both = iou.reals()
        if len(both) != 2:
            iou.fail("expected two thresholds: background, foreground")
        t.put(f"{ours}.bg_iou_thresh", both[0], iou)
        t.put(f"{ours}.fg_iou_thresh", both[1], iou)
        t.expect(at + "IOU_LABELS", [0, -1, 1], "labels of anchors are fixed")

    return rule


def box_loss(beta: str, ours: str) -> Rule:
    """Sets the box regression loss: its type, and beta of smooth L1."""

    def rule(t: Translation, at: str) -> None:
        kind = t.read(at + "BBOX_REG_LOSS_TYPE")
        bend = t.read(at + beta)
        if t.must(at + "BBOX_REG_LOSS_TYPE", "smooth_l1", "giou") == "giou":
            t.put(f"{ours}.bbox_reg_loss_type", "giou", kind)
        else:
            t.put(f"{ours}.smooth_l1_beta", bend.real(), bend)

    return rule


def is_on_c4(t: Translation) -> bool:
    """Returns whether the heads use the ResNet's feature map of stride 16, without a pyramid
    (Base-RCNN-C4)."""
    return t.look("MODEL.BACKBONE.NAME").text() == "build_resnet_backbone"


def heads(t: Translation, at: str) -> None:
    """Sets the type of a two-stage detector."""
    t.must(at + "BACKBONE.NAME", "build_resnet_fpn_backbone", "build_resnet_backbone")
    t.must(at + "PROPOSAL_GENERATOR.NAME", "RPN")
    if is_on_c4(t):
        t.put("model.backbone.out", "c4", t.read(at + "BACKBONE.NAME"))
        kind = t.must(at + "ROI_HEADS.NAME", "Res5ROIHeads")
        t.must(at + "RPN.IN_FEATURES", '["res4"]', "['res4']")
        t.read(at + "ROI_BOX_HEAD.NAME")
    else:
        kind = t.must(at + "ROI_HEADS.NAME", "StandardROIHeads", "CascadeROIHeads")
        t.must(at + "ROI_BOX_HEAD.NAME", "FastRCNNConvFCHead")
    masks = t.read(at + "MASK_ON")
    if kind == "CascadeROIHeads":
        t.put("model.type", "cascadercnn", t.read(at + "ROI_HEADS.NAME"))
        t.put("model.masks", masks.flag(), masks)
    else:
        t.put("model.type", "maskrcnn" if masks.flag() else "fasterrcnn", masks)


def anchors(t: Translation, at: str) -> None:
    sizes = t.read(at + "SIZES")
    levels = _lists(sizes)
    if is_on_c4(t):
        if len(levels) != 1:
            sizes.fail("expected one list of sizes, since C4 is one map")
        t.put("model.anchors.sizes", levels[0], sizes)
    else:
        put_anchor_sizes(t, levels * 5 if len(levels) == 1 else levels, sizes)
    ratios = t.read(at + "ASPECT_RATIOS")
    each = _lists(ratios)
    if any(one != each[0] for one in each):
        ratios.fail(
            "ratios differ between levels, which model.anchors.aspect_ratios does not support"
        )
    t.put("model.anchors.aspect_ratios", each[0], ratios)


def regions(t: Translation, at: str) -> None:
    """Sets the IoU threshold of foreground regions and the weights of box deltas, for each stage of
    a cascade."""
    first = t.read(at + "ROI_HEADS.IOU_THRESHOLDS")
    if len(first.reals()) != 1:
        first.fail("expected one threshold, between background and foreground")
    weights = t.read(at + "ROI_BOX_HEAD.BBOX_REG_WEIGHTS")
    if t.given("model.type") != "cascadercnn":
        t.put("model.roi.fg_iou_thresh", first.reals()[0], first)
        t.put("model.box.bbox_reg_weights", weights.reals(), weights)
        return
    iou = t.read(at + "ROI_BOX_CASCADE_HEAD.IOUS")
    if iou.reals()[:1] != first.reals():
        first.fail("differs from the first of MODEL.ROI_BOX_CASCADE_HEAD.IOUS")
    t.put("model.roi.fg_iou_thresh", iou.reals(), iou)
    weights = t.read(at + "ROI_BOX_CASCADE_HEAD.BBOX_REG_WEIGHTS")
    t.put("model.box.bbox_reg_weights", weights.reals(), weights)


def box_layers(t: Translation, at: str) -> None:
    """Sets the layers of a head on a pyramid; with C4, the head is the last stage of the ResNet."""
    if is_on_c4(t):
        for key in ("NUM_CONV", "NUM_FC", "NORM", "CONV_DIM", "FC_DIM"):
            t.read(at + key)
        return
    t.copy(at + "FC_DIM", "model.box.fc_dim")
    convs, layers = t.read(at + "NUM_CONV"), t.read(at + "NUM_FC")
    counts = (convs.integer(), layers.integer())
    if counts not in ((0, 2), (4, 1)):
        layers.fail(
            f'not supported with NUM_CONV = {counts[0]}; box heads are two layers ("2fc"), or four '
            'convolutions and a layer ("4conv1fc")'
        )
    if counts == (0, 2):
        t.put("model.box.type", "2fc", layers)
        t.read(at + "NORM")
        t.read(at + "CONV_DIM")
    else:
        t.put("model.box.type", "4conv1fc", convs)
        norm("NORM", "model.box.norm")(t, at)
        t.expect(
            at + "CONV_DIM",
            t.look("MODEL.FPN.OUT_CHANNELS").need(),
            "convolutions have the same channels as the pyramid",
        )


def pooler_type(t: Translation, at: str) -> None:
    kind = t.read(at + "POOLER_TYPE")
    aligned = t.must(at + "POOLER_TYPE", "ROIAlignV2", "ROIAlign") == "ROIAlignV2"
    t.put("model.roi.aligned", aligned, kind)


def mask_pooler(t: Translation, at: str) -> None:
    """With C4, both heads use the regions of the box head."""
    t.read(at + "ROI_MASK_HEAD.POOLER_RESOLUTION")
    head = "ROI_BOX_HEAD" if is_on_c4(t) else "ROI_MASK_HEAD"
    t.copy(f"{at}{head}.POOLER_RESOLUTION", "model.mask.pooler_resolution")


def follows(theirs: str, leader: str) -> Rule:
    """Requires a key of the mask head to equal another key."""

    def rule(t: Translation, at: str) -> None:
        wanted = t.look(at + leader).need()
        t.expect(at + theirs, wanted, f"the mask head uses {at}{leader}")

    return rule


def resnet(t: Translation, at: str) -> None:
    depth = t.must(at + "DEPTH", "18", "34", "50", "101")
    t.put("model.backbone.type", "resnet" + depth, t.read(at + "DEPTH"))
    has_bottlenecks = depth in ("50", "101")
    if has_bottlenecks:
        t.copy(at + "NUM_GROUPS", "model.backbone.groups")
        t.copy(at + "WIDTH_PER_GROUP", "model.backbone.width_per_group")
    else:
        t.must(at + "NUM_GROUPS", "1")
        t.read(at + "WIDTH_PER_GROUP")  # basic blocks have no groups
    t.must(at + "RES5_DILATION", "1")
    t.must(at + "RES2_OUT_CHANNELS", "256" if has_bottlenecks else "64")


def stride(t: Translation, at: str) -> None:
    """Sets which convolution of a block has the stride; basic blocks have no 1x1 convolution."""
    t.read(at + "STRIDE_IN_1X1")
    if t.given("model.backbone.type") in ("resnet50", "resnet101"):
        t.copy(at + "STRIDE_IN_1X1", "model.backbone.stride_in_1x1")


def weights(t: Translation, at: str) -> None:
    found = t.read(at + "WEIGHTS")
    name, how = found.text(), ""
    if not name:
        return
    scheme, sign, rest = name.partition("://")
    if sign:
        how = name
        if scheme == "detectron2":
            how = "https://dl.fbaipublicfiles.com/detectron2/" + rest
        has_kind = "." in name.rpartition("/")[2]
        name = weights_file(name) + ("" if has_kind else ".pkl")
    t.put("model.weights", name, found, how)


def test_views(t: Translation, at: str) -> None:
    """Sets test-time augmentation, whose scales replace the image sizes in evaluation."""
    enabled, sizes = t.read(at + "ENABLED"), t.read(at + "MIN_SIZES")
    most, flip = t.read(at + "MAX_SIZE"), t.read(at + "FLIP")
    if not enabled.flag():
        return
    views = sizes.reals()
    if not views:
        sizes.fail("expected a size")
    largest = max(views)
    if largest <= 0:
        sizes.fail("sizes must be above 0")
    t.put(
        "model.test.aug_scales", [one / largest for one in views], sizes,
        f"relative to {plain(largest)}",
    )  # fmt: skip
    t.put("model.test.aug_flip", flip.flag(), flip)
    t.put(
        "data.test_short_side", largest, sizes, "size of the largest view"
    )
    t.put("data.test_max_side", most.real(), most)


def pixel_order(t: Translation, at: str) -> None:
    order = t.must(at + "FORMAT", "BGR", "RGB")
    t.put("model.pixel_order", order.lower(), t.read(at + "FORMAT"))


def image_sizes(t: Translation, at: str) -> None:
    sizes, sampling = t.read(at + "MIN_SIZE_TRAIN"), t.read(at + "MIN_SIZE_TRAIN_SAMPLING")
    t.put("data.resize_style", "detectron2", sizes)
    if t.must(at + "MIN_SIZE_TRAIN_SAMPLING", "choice", "range") == "range":
        t.put("data.short_side_range", True, sampling)
    size, most = t.read(at + "MIN_SIZE_TEST"), t.read(at + "MAX_SIZE_TEST")
    has_views = t.look("TEST.AUG.ENABLED").flag()
    if size.real() == 0:
        t.leave_out(
            size, "images are always resized for detection; set data.test_short_side"
        )
    elif not has_views and sizes.reals() != [size.real()]:
        t.put("data.test_short_side", size.real(), size)
    if not has_views and most.real() != t.look(at + "MAX_SIZE_TRAIN").real():
        t.put("data.test_max_side", most.real(), most)


def flip_and_crop(t: Translation, at: str) -> None:
    """Writes out the stages if there is a crop or a different kind of flip."""
    flip = t.read(at + "RANDOM_FLIP")
    direction = t.must(at + "RANDOM_FLIP", "horizontal", "vertical", "none")
    crop, kind = t.read(at + "CROP.ENABLED"), t.read(at + "CROP.TYPE")
    size = t.read(at + "CROP.SIZE")
    if direction == "none":
        t.put("data.flip", 0.0, flip)
    if not crop.flag() and direction != "vertical":
        return
    origin = (crop if crop.flag() else flip).origin()
    stages = [stage("read", origin), stage("decode", origin)]
    if crop.flag():
        table = stage("random_crop", origin)
        t.must(at + "CROP.TYPE", "relative", "relative_range", "absolute", "absolute_range")
        table["crop_type"] = Setting(kind.text(), kind.origin())
        sides = size.reals()
        if len(sides) != 2:
            size.fail("expected two sizes")
        set_crop_size(table, kind.text(), sides, size.origin())
        table["keep_object"] = Setting(False, "as detectron2's crops do")
        stages.append(table)
    stages.append(stage("resize_shortest_edge", origin))
    if direction != "none":
        table = stage("flip", flip.origin())
        if direction == "vertical":
            table["direction"] = Setting("vertical", flip.origin())
        stages.append(table)
    stages += [stage("group_by_aspect_ratio", origin), stage("pad", origin)]
    t.put("data.stages", stages, crop if crop.flag() else flip)


def filter_empty(t: Translation, at: str) -> None:
    found = t.read(at + "FILTER_EMPTY_ANNOTATIONS")
    t.put("data.filter_empty", found.flag(), found)


def data_sets(t: Translation, at: str) -> None:
    for role, key in (("train", "TRAIN"), ("val", "TEST")):
        _put_split(t, t.read(at + key), role)


def names(found: Found) -> list[str]:
    """Returns the names of data sets."""
    if not found:
        return []
    if not found.is_list():
        found.fail('expected a tuple of names, such as ("coco_2017_train",)')
    return [one.text() for one in found.items()]


def _put_split(t: Translation, found: Found, role: str) -> None:
    """Sets folder and split of a data set that detectron2 registers itself; other data sets are
    registered by the user's code."""
    all_names = names(found)
    if not all_names:
        return
    name = all_names[0]
    split = name[10:]
    if len(all_names) > 1:
        t.leave_out(
            found,
            'several data sets need [[data.sources]], a table each and one with type = "concat"; '
            "data.val supports one",
        )
    elif not (name.startswith("coco_20") and name[9:10] == "_" and split in ("train", "val")):
        t.leave_out(
            found,
            f"name registered by code; set data.root and data.{role} for "
            "ROOT/annotations/instances_SPLIT.json and ROOT/SPLIT/",
        )
    else:
        if role == "train":
            where = "below $DETECTRON2_DATASETS, default ./datasets"
            t.put("data.root", "datasets/coco", found, where)
        t.put(f"data.{role}", split + name[5:9], found)


def sampler(t: Translation, at: str) -> None:
    found, threshold = t.read(at + "SAMPLER_TRAIN"), t.read(at + "REPEAT_THRESHOLD")
    t.expect(at + "REPEAT_SQRT", True, "repeat factors are square roots")
    if found.text() == "RepeatFactorTrainingSampler":
        put_repeat_factor(t, threshold, found)
    elif found.text() != "TrainingSampler":
        t.leave_out(found, "images are shuffled, each once per epoch")


def clipping(t: Translation, at: str) -> None:
    enabled, kind = t.read(at + "ENABLED"), t.read(at + "CLIP_TYPE")
    value = t.read(at + "CLIP_VALUE")
    t.read(at + "NORM_TYPE")
    if not enabled.flag():
        return
    if kind.text() == "value":
        t.put("optimizer.clip_value", value.real(), value)
    elif kind.text() == "full_model":
        t.put("optimizer.clip_norm", value.real(), value)
    else:
        t.leave_out(
            kind,
            "clips the norm of each parameter's gradient; optimizer.clip_norm limits the norm "
            "of all gradients together, optimizer.clip_value each element",
        )


def half_precision(t: Translation, at: str) -> None:
    half = t.read(at + "AMP.ENABLED")
    if half.flag():
        t.put("train.precision", "fp16", half)


def warmup(t: Translation, at: str) -> None:
    found = t.read(at + "WARMUP_ITERS")
    t.put("schedule.warmup", f"{found.integer()} steps", found)


def every(theirs: str, callback: str) -> Rule:
    def rule(t: Translation, at: str) -> None:
        found = t.read(at + theirs)
        t.put(f"{callback}.every", f"{found.integer()} steps", found)

    return rule


def evaluation(t: Translation, at: str) -> None:
    if t.look(at + "EVAL_PERIOD").integer() > 0:
        every("EVAL_PERIOD", "callbacks.evaluate")(t, at)
    else:
        t.leave_out(
            t.read(at + "EVAL_PERIOD"),
            "evaluation runs each epoch; set callbacks.evaluate.every",
        )


def output(t: Translation, at: str) -> None:
    folder = t.read(at + "OUTPUT_DIR")
    t.put("train.output", folder.text(), folder)


def seed(t: Translation, at: str) -> None:
    found = t.read(at + "SEED")
    if found.integer() >= 0:
        t.put("train.seed", found.real(), found)
    else:
        t.leave_out(found, "a run always has a seed, train.seed")


def device(t: Translation, at: str) -> None:
    found = t.read(at + "DEVICE")
    if found.text() == "cpu":
        t.put("train.device", "cpu", found)
    else:
        t.leave_out(found, 'train.device = "cuda", which needs a plug-in (docs/gpu.md)')


def _lists(found: Found) -> list[list[float]]:
    if not found.is_list() or not found.items():
        found.fail("expected a list")
    if not found.items()[0].is_list():
        return [found.reals()]
    return [one.reals() for one in found.items()]
