"""The data of an MMDetection recipe."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.migrate.mmdetection import rules, table
from millrace.migrate.mmdetection.layout import Layout
from millrace.migrate.mmdetection.pipeline import read_pipelines
from millrace.migrate.shared_rules import put_repeat_factor
from millrace.migrate.translation import Found, Translation
from millrace.migrate.values import plain, same


@dataclass
class TrainingData:
    """Properties of the data that later parts need."""

    times: float = 1  # our epochs per MMDetection epoch
    images_per_gpu: float = 2  # per step
    split: str = ""  # "train2017"; empty if the layout is not ours

    def repeated(self) -> str:
        """Returns the text for a comment; empty if the data set is not repeated."""
        return "" if self.times == 1 else f"x {plain(self.times)} by RepeatDataset"


def read_data(t: Translation, layout: Layout) -> TrainingData:
    data = TrainingData()
    inner = _unwrapped(t, layout.train_set, data)
    data.split = _put_split(t, inner, "train")
    _put_split(t, layout.val_set, "val")
    t.copy(
        f"{inner}.filter_cfg.filter_empty_gt", "data.filter_empty", f"{inner}.filter_empty_gt"
    )
    t.leave_out(
        t.read(f"{inner}.filter_cfg.min_size"),
        "use a stage filter with min_side to skip small images (COCO has none)",
    )
    classes = t.read_any(
        f"{inner}.metainfo.classes", f"{inner}.metainfo.CLASSES", f"{inner}.classes"
    )
    if classes:
        if not classes.is_list():
            classes.fail("expected a list of names")
        t.put("data.classes", [one.text() for one in classes.items()], classes)
    pixels = read_pipelines(t, f"{inner}.pipeline", f"{layout.val_set}.pipeline")
    if pixels:
        rules.pixels("to_rgb")(t, f"{pixels}.")
    batch = t.read_any(
        "train_dataloader.batch_size", "data.samples_per_gpu", "data.imgs_per_gpu"
    )
    if batch:
        t.put("data.batch_size", batch.real(), batch)
        data.images_per_gpu = batch.real()
    _read_loaders(t, layout, inner)
    _expect_same_test(t, layout)
    return data


def _unwrapped(t: Translation, path: str, data: TrainingData) -> str:
    """Returns the path of the data set within its wrappers."""
    for _ in range(5):
        if not t.look(f"{path}.dataset"):
            break
        wrapper = t.text_or(f"{path}.type", "")
        if wrapper == "RepeatDataset":
            data.times *= t.real_or(f"{path}.times", 1)
        elif wrapper == "ClassBalancedDataset":
            threshold = t.read(f"{path}.oversample_thr")
            if threshold:
                put_repeat_factor(t, threshold, threshold)
        else:
            t.leave_out(t.look(f"{path}.type"), "no counterpart of this data set wrapper")
            t.leave_out_rest(f"{path}.pipeline", "the pipeline of a wrapper is not supported")
        path += ".dataset"
    return path


def _put_split(t: Translation, path: str, role: str) -> str:
    """Reads a split in our layout, ROOT/annotations/instances_SPLIT.json with ROOT/SPLIT/. Returns
    SPLIT; empty if the layout differs."""
    kind = t.read(f"{path}.type")
    if kind and kind.text() != "CocoDataset":
        t.leave_out(kind, "data must have COCO's layout, see docs/migrating.md")
    root, file = t.read(f"{path}.data_root"), t.read(f"{path}.ann_file")
    images = t.read_any(
        f"{path}.data_prefix.img", f"{path}.data_prefix.img_path", f"{path}.img_prefix"
    )
    if not file:
        return ""
    folder = _under(root, images)
    base, middle, rest = _under(root, file).rpartition("/annotations/instances_")
    split = rest.removesuffix(".json")
    if middle and rest.endswith(".json") and folder == f"{base}/{split}":
        if role == "train":
            t.put("data.root", base, file)
        if t.given("data.root") == base:
            t.put(f"data.{role}", split, file)
            return split
    t.leave_out(
        file,
        "data.root needs annotations/instances_SPLIT.json and SPLIT/; move or link the files there",
    )
    return ""


def _under(root: Found, part: Found) -> str:
    text = part.text() if part else ""
    if root and not text.startswith("/"):
        base = root.text()
        if not text.startswith(base):
            text = base + ("" if base.endswith("/") else "/") + text
    return text.rstrip("/")


def _read_loaders(t: Translation, layout: Layout, inner: str) -> None:
    t.copy("val_dataloader.batch_size", "data.test_batch_size")
    test, other = t.look("val_dataloader.batch_size"), t.read("test_dataloader.batch_size")
    if other and not (test and same(other.need(), test.need())):
        t.leave_out(other, "eval and predict use data.test_batch_size")
    sampler = t.read("train_dataloader.batch_sampler.type")
    if layout.is_new and sampler:
        t.put("data.aspect_grouping", sampler.text() == "AspectRatioBatchSampler", sampler)
    elif layout.is_new:
        t.set("data.aspect_grouping", False, "no AspectRatioBatchSampler")
    order = t.read("train_dataloader.sampler.type")
    if order and order.text() not in ("DefaultSampler", "InfiniteSampler"):
        t.leave_out(order, "images are shuffled; use [[data.sources]] for weights")
    for loader in ("train_dataloader", "val_dataloader", "test_dataloader", "data"):
        for key in table.LOADER:
            t.read(f"{loader}.{key}")
    for key in ("backend_args", "file_client_args", "metainfo", "proposal_file"):
        t.read(f"{inner}.{key}")


def _expect_same_test(t: Translation, layout: Layout) -> None:
    """Evaluation supports only one split and one set of sizes."""
    for key in ("test_mode", "backend_args", "metainfo", "classes"):
        t.read(f"{layout.val_set}.{key}")
    t.leave_out_rest(layout.val_set, "no counterpart in evaluation")
    one, other = t.read(layout.test_set), t.look(layout.val_set)
    if one and other and not same(one.need(), other.need()):
        t.leave_out(
            one,
            "eval and predict use the validation split's sizes; for another split use "
            "--set data.val=...",
        )
    for loader in ("val_dataloader", "test_dataloader", "train_dataloader", "data"):
        t.leave_out_rest(loader, "no counterpart in [data]")
    for evaluator in ("val_evaluator", "test_evaluator"):
        for key in ("type", "ann_file", "metric", "format_only", "backend_args"):
            t.read(f"{evaluator}.{key}")
        t.leave_out_rest(evaluator, "metrics are COCO's, of boxes and of masks if present")
