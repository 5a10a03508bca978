"""Flows in Python: the contents of batches, order, states, memory, invalid input."""

import gc
import json
import pickle
import struct
import subprocess
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SMALL, TRAINER, digests

import millrace.data
from millrace import _flow
from millrace.data import DataError, Flow


def test_batch_contains_padded_images_and_objects(sample: str) -> None:
    flow = Flow(root=sample, **SMALL)
    batch = flow.next()
    images = batch.images
    assert images.dtype == np.uint8 and images.shape == (4, *images.shape[1:3], 3)
    assert images.shape[1] % 32 == images.shape[2] % 32 == 0
    annotations = json.loads(
        (Path(sample) / "annotations/instances_train2017.json").read_text()
    )
    by_id = {image["id"]: image for image in annotations["images"]}
    for i in range(len(batch)):
        height, width = batch.sizes[i]
        assert images[i, :height, :width].any()
        assert not images[i, height:].any() and not images[i, :, width:].any()
        image = by_id[batch.image_ids[i]]
        assert list(batch.original_sizes[i]) == [image["height"], image["width"]]
        assert np.allclose(batch.scales[i] * (image["width"], image["height"]), (width, height))
        boxes, labels = batch.boxes[i], batch.labels[i]
        assert boxes.dtype == np.float32 and boxes.shape == (len(labels), 4)
        assert labels.dtype == np.int32 and (labels < len(flow.classes)).all()
        assert batch.crowd[i].dtype == np.bool_ and len(batch.crowd[i]) == len(labels)
        masks = batch.bitmaps(i)
        assert masks.dtype == np.bool_ and masks.shape == (len(labels), height, width)
        for box, mask in zip(boxes, masks):
            ys, xs = np.nonzero(mask)
            assert np.allclose(box, [xs.min(), ys.min(), xs.max() + 1, ys.max() + 1], atol=2)
    assert (batch.number, batch.epoch) == (0, 0)
    assert batch.progress == pytest.approx(4 / 25)
    with pytest.raises(IndexError, match="image index 4 "):
        batch.bitmaps(4)


def test_segmentations_are_polygons_or_rles(sample: str) -> None:
    kinds = set()
    for batch in Flow(root=sample, **SMALL):
        for size, outlines in zip(batch.sizes, batch.segmentations):
            for outline in outlines:
                kinds.add(type(outline))
                if isinstance(outline, dict):
                    assert outline["size"] == tuple(size)
                    assert outline["counts"].dtype == np.uint32
                    assert outline["counts"].sum() == size.prod()
                else:
                    assert all(p.dtype == np.float64 and len(p) % 2 == 0 for p in outline)
    assert kinds == {dict, list}


def test_bytes_are_independent_of_thread_count(sample: str) -> None:
    expected = digests(Flow(root=sample, **SMALL, threads=1), 8)
    assert digests(Flow(root=sample, **SMALL, threads=3), 8) == expected
    assert digests(Flow(root=sample, **SMALL, seed=2), 8) != expected
    whole = Flow(root=sample, **SMALL)
    halves = [
        Flow(root=sample, **{**SMALL, "batch_size": 2}, rank=rank, world_size=2)
        for rank in range(2)
    ]
    for _ in range(8):
        parts = [half.next() for half in halves]
        step = whole.next()
        assert sorted(step.image_ids) == sorted(i for part in parts for i in part.image_ids)


def test_file_matches_options(sample: str, tmp_path: Path) -> None:
    flow = Flow(root=sample, **SMALL, flip=0.25, seed=5, stages=["read", "decode", "flip",
                {"type": "resize_shortest_edge", "max_side": 128}, "group_by_aspect_ratio", "pad"])
    file = tmp_path / "flow.toml"
    file.write_text(flow.config() + "\n[train]\nseed = 5\n\n[model]\ntype = 'anything'\n")
    assert digests(Flow(file), 4) == digests(flow, 4)
    assert Flow(str(file), flip=0.75, seed=6).state_dict()["seed"] == 6


@pytest.mark.skipif(not TRAINER, reason="MILLRACE_TRAINER names no trainer")
def test_bytes_match_trainer(sample: str) -> None:
    sets = [f"data.{key}={value}" for key, value in {"root": sample, **SMALL}.items()]
    told = subprocess.run(
        [TRAINER, "bench", "dataflow", "configs/maskrcnn.toml", "--batches", "12", "--digest",
         "--json", *(word for s in sets for word in ("--set", s))],
        check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    config = Path(__file__).parents[2] / "configs/maskrcnn.toml"
    expected = json.loads(told.stdout.splitlines()[-1])["digests"]
    assert digests(Flow(config, root=sample, **SMALL), 12) == expected


def test_evaluation_yields_each_image_once(sample: str) -> None:
    flow = Flow(root=sample, training=False, short_side=96, test_batch_size=4)
    passes = [[int(i) for batch in flow for i in batch.image_ids] for _ in range(2)]
    assert passes[0] == sorted(passes[0]) and len(set(passes[0])) == 9 == flow.epoch_size
    assert passes[1] == passes[0]
    assert len(flow.category_ids) == len(flow.classes)
    first = next(iter(flow))
    state = flow.state_dict()
    rest = [batch.digest() for batch in flow.endless()]
    other = Flow(root=sample, training=False, short_side=96, test_batch_size=4)
    other.load_state_dict(state)
    assert [batch.digest() for batch in other] == rest
    assert next(iter(other)).digest() == first.digest()
    assert len([0 for rank in range(2)
                for batch in Flow(root=sample, training=False, rank=rank, world_size=2)
                for _ in batch.image_ids]) == 9  # fmt: skip


def test_loop_ends_with_epoch(sample: str) -> None:
    flow = Flow(root=sample, **SMALL)
    seen = 0
    for epoch in range(3):
        assert flow.epoch == epoch
        for batch in flow:
            seen += len(batch)
        assert flow.epoch_size == 25, "one image has no object"
        assert 0 <= seen - 25 * (epoch + 1) < 4
    for batch in flow:
        break
    assert next(iter(flow)).number == batch.number + 1, "nothing is lost where a loop is left"


def test_resumes_from_any_state(sample: str) -> None:
    flow = Flow(root=sample, **SMALL)
    states = []
    expected = []
    for _ in range(12):
        states.append(json.loads(json.dumps(flow.state_dict())))
        expected.append(flow.next().digest())
    other = Flow(root=sample, **SMALL, threads=1)
    for k in (7, 0, 11, 3):
        other.load_state_dict(states[k])
        batch = other.next()
        assert (batch.number, batch.digest()) == (k, expected[k])
    copied = pickle.loads(pickle.dumps(other))
    assert copied.next().digest() == expected[4] == other.next().digest()


def test_rejects_state_of_different_flow(sample: str, tmp_path: Path) -> None:
    state = Flow(root=sample, **SMALL).state_dict()
    with pytest.raises(ValueError, match="seed is 1 .*2"):
        Flow(root=sample, **SMALL, seed=2).load_state_dict(state)
    with pytest.raises(ValueError, match=r"data.flip is 0.5 .*0.25"):
        Flow(root=sample, **SMALL, flip=0.25).load_state_dict(state)
    with pytest.raises(ValueError, match="training is True .*False"):
        Flow(root=sample, training=False).load_state_dict(state)
    millrace.data.make_sample(tmp_path / "other", train=26, val=1, seed=4)
    with pytest.raises(ValueError, match="samples is 25 "):
        Flow(root=tmp_path / "other", **SMALL).load_state_dict(state)
    flow = Flow(root=sample, **SMALL)
    for bad, why in [({}, "'version'"), ({**state, "version": 7}, "version 7, not 1"),
                     ({**state, "next": "x"}, "'x'")]:  # fmt: skip
        with pytest.raises(ValueError, match=why):
            flow.load_state_dict(bad)
    flow.load_state_dict({**state, "next": 3, "pending": [9, 1]})
    with pytest.raises(ValueError, match="cursor"):
        flow.next()
    flow.load_state_dict(state)
    assert flow.next().number == 0


def test_views_outlive_batch_and_flow(sample: str) -> None:
    flow = Flow(root=sample, **SMALL)
    views = [batch.images for batch, _ in zip(flow.endless(), range(30))]
    boxes = flow.next().boxes[0]
    copies = [view.copy() for view in views], boxes.copy()
    held = {view.ctypes.data for view in views}
    assert len(held) == 30
    assert not held & {batch.images.ctypes.data for batch, _ in zip(flow.endless(), range(30))}
    flow.close()
    del flow
    gc.collect()
    assert all((view == copy).all() for view, copy in zip(views, copies[0]))
    assert (boxes == copies[1]).all()
    most = _flow.pool_bytes()
    del views
    assert _flow.pool_bytes() < most


def test_batch_is_writable(sample: str) -> None:
    expected = digests(Flow(root=sample, **SMALL), 12)
    flow = Flow(root=sample, **SMALL)
    for digest in expected:
        batch = flow.next()
        assert batch.digest() == digest
        batch.images[...] = 7
        for boxes in batch.boxes:
            boxes[...] = -1
        assert batch.digest() != digest


def test_arrays_support_dlpack(sample: str) -> None:
    batch = Flow(root=sample, **SMALL).next()
    images = np.from_dlpack(batch.images)
    assert images.ctypes.data == batch.images.ctypes.data
    assert memoryview(batch.images).nbytes == images.nbytes


def test_python_threads_get_different_batches(sample: str) -> None:
    flow = Flow(root=sample, **SMALL)
    taken: list[tuple[int, str]] = []

    def take() -> None:
        for _ in range(6):
            batch = flow.next()
            taken.append((batch.number, batch.digest()))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [digest for _, digest in sorted(taken)] == digests(Flow(root=sample, **SMALL), 24)
    assert flow.state_dict()["batches"] == 24


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"short_side": "x"}, r"Flow\(short_side=...\): "),
        ({"shortside": 3}, "'shortside'.*'short_side'"),
        ({"flip": 2}, "flip = 2 "),
        ({"flip": None}, r"Flow\(flip=...\): "),
        ({"flip": object()}, "not 'object'"),
        ({"batch_size": 2**70}, "64 bits"),
        ({"classes": {1: "cat"}}, "a key .*: 1"),
        ({"root": "/nowhere"}, "'/nowhere'"),
        ({"classes": ["unicorn"]}, "'unicorn'"),
        ({"seed": -1}, r"Flow\(seed=...\): seed = -1 "),
        ({"rank": 2, "world_size": 2}, "rank 2 of 2"),
        ({"rank": 1}, "world_size"),
        ({"stages": ["read", "decodee"]}, "'decodee'.*'decode'"),
        ({"stages": ["read", "decode"]}, "batch"),
        ({"stages": [3]}, "not 3"),
        ({"stages": [{"type": "python", "function": "f"}]}, "takes a sample"),
    ],
)
def test_reports_invalid_options(
    sample: str, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        Flow(**{"root": sample, **SMALL, **options})


def test_accepts_numpy_options(sample: str) -> None:
    given = {"short_side": np.array([96, 128]), "flip": np.float32(0.5), "batch_size": np.int64(4)}
    flow = Flow(root=Path(sample), **given)
    assert len(flow.next()) == 4
    assert "short_side = [96, 128]" in flow.config()


def png(pixels: Any) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(
            ">I", zlib.crc32(name + data))  # fmt: skip

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))  # fmt: skip


def make_pngs(root: Path, count: int) -> Any:
    pixels = np.random.default_rng(1).integers(0, 256, (count, 40, 64, 3), dtype=np.uint8)
    (root / "val2017").mkdir(parents=True)
    (root / "annotations").mkdir()
    for k in range(count):
        (root / "val2017" / f"{k}.png").write_bytes(png(pixels[k]))
    (root / "annotations/instances_val2017.json").write_text(json.dumps({
        "images": [{"id": k, "file_name": f"{k}.png", "width": 64, "height": 40}
                   for k in range(count)],
        "annotations": [], "categories": [{"id": 1, "name": "a"}]}))  # fmt: skip
    return pixels


def test_reads_images_other_than_jpeg(tmp_path: Path) -> None:
    pixels = make_pngs(tmp_path, 2)
    options = {"root": tmp_path, "training": False, "short_side": 40, "test_batch_size": 2}
    (batch,) = Flow(**options)
    assert (batch.images[:, :40, :64] == pixels).all()
    (tmp_path / "val2017/1.png").write_bytes(b"no picture")
    (batch,) = Flow(**options, max_skipped=1)
    assert list(batch.image_ids) == [0]
    flow = Flow(**options, on_error="fail")
    for _ in range(2):
        with pytest.raises(DataError, match=r"'decode'.*1\.png"):
            list(flow.endless())
    flow = Flow(**options, max_skipped=0)
    with pytest.raises(RuntimeError, match="max_skipped"):
        list(flow)
    (tmp_path / "annotations/instances_val2017.json").write_text("{")
    with pytest.raises(RuntimeError, match="instances_val2017.json"):
        Flow(**options)


def test_closed_flow_raises_and_reports(sample: str) -> None:
    with Flow(root=sample, **SMALL) as flow:
        batch = flow.next()
        report = flow.report()
    assert [stage["name"] for stage in report["stages"]][:2] == ["read", "decode"]
    assert report["skipped"] == 0 and report["wait_s"] > 0
    with pytest.raises(RuntimeError, match="closed"):
        flow.next()
    assert batch.images.any()


def test_describes_every_option() -> None:
    text = millrace.data.describe()
    for word in ("batch_size", "on_error", "stage flip", "stage pad", "source coco"):
        assert word in text


def test_creates_sample_once(sample: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="already exists"):
        millrace.data.make_sample(sample)
    with pytest.raises(ValueError, match="train = 0 "):
        millrace.data.make_sample(tmp_path / "none", train=0)
