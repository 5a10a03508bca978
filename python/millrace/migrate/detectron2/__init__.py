"""Recipes of detectron2 (https://github.com/facebookresearch/detectron2), whose keys have version
2."""

from __future__ import annotations

from millrace.migrate.detectron2 import rules, table
from millrace.migrate.detectron2.defaults import PLACE, default_tree
from millrace.migrate.recipe import Recipe
from millrace.migrate.shared_rules import (
    COCO_TRAIN2017,
    COCO_TRAIN2017_WITH_OBJECTS,
    EpochLength,
)
from millrace.migrate.translation import Imported, Options, Translation, apply
from millrace.migrate.values import Value, merged, plain


def import_detectron2(recipe: Recipe, options: Options) -> Imported:
    """Translates a recipe. Raises RecipeError, with file and line, if it is not supported."""
    t = Translation(merged(default_tree(), recipe.tree).at(recipe.tree.place))
    t.expect("VERSION", 2, "other version of the keys; convert the file with detectron2 first")
    _read_model(t)
    apply(t, table.INPUT, "INPUT.")
    images = _read_data(t)
    epoch = EpochLength(_read_optimizer(t, options.gpus), options.images or images)
    _read_schedule(t, epoch)
    for path, rule in table.RUN_IF_SET:
        if recipe.tree.at_path(path):
            rule(t, "")
    apply(t, table.RUN)
    _note_rest(t, recipe.tree)
    # Defaults without a counterpart are not reported.
    notes = [one for one in t.left_out if one.place != PLACE.source]
    return Imported("detectron2", t.ours, notes)


def _read_model(t: Translation) -> None:
    apply(t, table.MODEL, "MODEL.")
    if t.look("MODEL.META_ARCHITECTURE").text() == "RetinaNet":
        t.must("MODEL.BACKBONE.NAME", "build_retinanet_resnet_fpn_backbone")
        t.put("model.type", "retinanet", t.read("MODEL.META_ARCHITECTURE"))
        t.read("MODEL.MASK_ON")
        apply(t, table.ANCHORS, "MODEL.ANCHOR_GENERATOR.")
        apply(t, table.RETINANET, "MODEL.RETINANET.")
    else:
        rules.heads(t, "MODEL.")
        apply(t, table.ANCHORS, "MODEL.ANCHOR_GENERATOR.")
        apply(t, table.RPN, "MODEL.RPN.")
        apply(t, table.REGIONS, "MODEL.")
        apply(t, table.BOX_HEAD, "MODEL.ROI_BOX_HEAD.")
        if t.look("MODEL.MASK_ON").flag():
            apply(t, table.MASK_HEAD, "MODEL.")
    apply(t, table.RESNET, "MODEL.RESNETS.")
    apply(t, table.NO_FPN if rules.is_on_c4(t) else table.FPN, "MODEL.FPN.")
    t.copy("TEST.DETECTIONS_PER_IMAGE", "model.test.detections_per_img")
    rules.weights(t, "MODEL.")
    rules.test_views(t, "TEST.AUG.")


def _read_data(t: Translation) -> int | None:
    """Reads the data. Returns the number of images in the training split if detectron2 defines
    it."""
    apply(t, table.LOADER, "DATALOADER.")
    for key in table.PROPOSAL_FILES:
        t.leave_out_rest(f"DATASETS.{key}", "proposals are always computed by the model")
    if rules.names(t.look("DATASETS.TRAIN")) != ["coco_2017_train"]:
        return None
    has_objects = t.look("DATALOADER.FILTER_EMPTY_ANNOTATIONS").flag()
    return COCO_TRAIN2017_WITH_OBJECTS if has_objects else COCO_TRAIN2017


def _read_optimizer(t: Translation, given_gpus: int | None) -> int:
    """Reads the optimizer. Returns the number of images per step on all GPUs."""
    batch, world = t.read("SOLVER.IMS_PER_BATCH"), t.read("SOLVER.REFERENCE_WORLD_SIZE")
    images = batch.integer()
    gpus = given_gpus or max(1, world.integer())
    if images < 1 or images % gpus:
        batch.fail(
            f"not a multiple of {gpus} GPU{'s' * (gpus != 1)}; set the number of processes of "
            "the recipe by --gpus"
        )
    how = "" if gpus == 1 else f"{images} / {gpus} processes"
    t.put("data.batch_size", images // gpus, batch, how)
    t.put("optimizer.lr_batch", images, batch)
    apply(t, table.OPTIMIZER, "SOLVER.")
    return images


def _read_schedule(t: Translation, epoch: EpochLength) -> None:
    steps, drops = t.read("SOLVER.MAX_ITER"), t.read("SOLVER.STEPS")
    kind, gamma = t.read("SOLVER.LR_SCHEDULER_NAME"), t.read("SOLVER.GAMMA")
    length = epoch.epochs(steps.real(), steps)
    t.put("train.epochs", length, steps, f"{plain(steps.real())} {epoch.how()}")
    if kind.text() == "WarmupCosineLR":
        t.put("schedule.type", "cosine", kind)
    elif kind.text() == "WarmupMultiStepLR":
        late = [at for at in drops.reals() if at >= steps.real()]
        for at in late:
            t.leave_out(drops, f"milestone {plain(at)} is not below MAX_ITER")
        milestones = [epoch.epochs(at, drops) for at in drops.reals() if at < steps.real()]
        t.put("schedule.milestones", milestones, drops, epoch.how())
        t.put("schedule.gamma", gamma.real(), gamma)
    else:
        t.leave_out(kind, "schedule.type must be step, cosine, poly, exponential or constant")
    apply(t, table.SCHEDULE, "SOLVER.")


def _note_rest(t: Translation, recipe: Value) -> None:
    """Records the keys of the recipe that no rule has read."""
    known = default_tree()
    for path, reason in table.OTHER_MODELS.items():
        if recipe.at_path(path):
            t.leave_out_rest(path, reason)

    def note(tree: Value, above: str) -> None:
        for key, value in tree.members.items():
            path = above + key
            if path in table.OTHER_MODELS:
                continue
            if isinstance(value.data, dict):
                note(value, path + ".")
            elif known.at_path(path):
                t.leave_out_rest(path, "no effect on this model")
            else:
                t.leave_out_rest(path, "not a key of detectron2 0.6; added by code")

    note(recipe, "")
