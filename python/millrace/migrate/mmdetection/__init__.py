"""Recipes of MMDetection (https://github.com/open-mmlab/mmdetection), 2.x and 3.x."""

from __future__ import annotations

from millrace.migrate.errors import RecipeError
from millrace.migrate.mmdetection import rules, table
from millrace.migrate.mmdetection.data import read_data
from millrace.migrate.mmdetection.layout import Layout
from millrace.migrate.mmdetection.training import read_optimizer, read_run, read_schedule
from millrace.migrate.recipe import Recipe
from millrace.migrate.shared_rules import COCO_TRAIN2017_WITH_OBJECTS, EpochLength
from millrace.migrate.translation import Found, Imported, Options, Translation, apply
from millrace.migrate.values import Value


def import_mmdetection(recipe: Recipe, options: Options) -> Imported:
    """Translates a recipe. Raises RecipeError, with file and line, if it is not supported."""
    t = Translation(recipe.tree)
    if not t.look("model"):
        raise RecipeError.at(recipe.tree.place, "not a recipe: `model = dict(...)` not found")
    layout = Layout.of(t)
    _read_model(t, layout)
    data = read_data(t, layout)
    images_per_step = read_optimizer(
        t, data.images_per_gpu, rules.trains_norms(t), options.gpus
    )
    known = COCO_TRAIN2017_WITH_OBJECTS if data.split == "train2017" else None
    by_steps = read_schedule(
        t, layout, data, EpochLength(images_per_step, options.images or known)
    )
    read_run(t, data, by_steps)
    _note_rest(t, layout, recipe)
    return Imported("MMDetection", t.ours, t.left_out)


def _read_model(t: Translation, layout: Layout) -> None:
    training, detection = f"{layout.train_cfg}.", f"{layout.test_cfg}."
    apply(t, table.MODEL, "model.")
    apply(t, table.BACKBONE, "model.backbone.")
    apply(t, table.NECK, "model.neck.")
    if t.given("model.type") == "retinanet":
        apply(t, table.RETINA_HEAD, "model.bbox_head.")
        apply(t, table.RETINA_TRAINING, training)
        apply(t, table.RETINA_DETECTION, detection)
        return
    apply(t, table.RPN_HEAD, "model.rpn_head.")
    apply(t, table.RCNN_TRAINING, training)
    apply(t, table.PROPOSALS, detection)
    apply(t, table.BOX_HEAD, f"{rules.HEAD}.")
    if rules.has_masks(t):
        apply(t, table.MASK_HEAD, f"{rules.HEAD}.")
    apply(t, table.REGION_TRAINING, training)
    apply(t, table.RCNN_DETECTION, detection)


def _note_rest(t: Translation, layout: Layout, recipe: Recipe) -> None:
    """Records the keys that no rule has read."""
    unknown = "no counterpart"
    for path in (layout.train_cfg, layout.test_cfg, "model"):
        t.leave_out_rest(path, unknown)
    for path in table.RUNNING:
        t.leave_out_rest(path, "runtime setting of MMDetection, no effect on the training")
    hooks = t.read("custom_hooks")
    if hooks and not _is_class_check(hooks.need()):
        t.leave_out(hooks, "hooks are callbacks here, see docs/callbacks.md")
    workflow = t.read("workflow")
    if workflow and len(workflow.items()) > 1:
        t.leave_out(
            workflow, "use [callbacks.validation_loss] for losses over the validation split"
        )
    for path in table.REST:
        t.leave_out_rest(path, unknown)
    for name, value in recipe.unused:
        if name not in (*table.KNOWN, *table.RUNNING, *table.REST):
            t.leave_out(Found(name, value, value.place), "not used elsewhere in the recipe")


def _is_class_check(hooks: Value) -> bool:
    """Returns whether the only hook is NumClassCheckHook, which every 2.x recipe has; classes come
    from the data set."""
    kind = hooks.at_path("0.type")
    return len(hooks.items) == 1 and kind is not None and kind.data == "NumClassCheckHook"
