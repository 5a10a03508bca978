"""The class COCO: reading, filters and results."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coco_random import data_set, results

from millrace.coco import COCO


def plain(data: Any) -> Any:
    """Converts counts to str for JSON."""
    for one in data["annotations"] if isinstance(data, dict) else data:
        shape = one.get("segmentation")
        if isinstance(shape, dict) and isinstance(shape["counts"], bytes):
            shape["counts"] = shape["counts"].decode()
    return data


@pytest.fixture
def data() -> Any:
    made = plain(data_set(3))
    made["annotations"][0]["note"] = {"unknown": ["fields", "stay"]}
    made["licenses"] = [{"id": 1}]
    return made


@pytest.fixture
def path(data: Any, tmp_path: Path) -> Path:
    file = tmp_path / "data.json"
    file.write_text(json.dumps(data))
    return file


def test_returns_all_fields_on_access(data: Any, path: Path) -> None:
    coco = COCO(path)
    assert coco.native_truth is not None
    assert coco.dataset == data
    assert coco.native_truth is None
    assert list(coco.imgs) == [image["id"] for image in data["images"]]
    assert coco.anns[data["annotations"][0]["id"]] is coco.dataset["annotations"][0]
    assert coco.imgToAnns[-1] == [] and coco.cats[3]["name"] == "c3"
    one = data["annotations"][0]
    assert one["image_id"] in coco.catToImgs[one["category_id"]]


def test_prints_like_pycocotools(path: Path, capsys: Any) -> None:
    COCO(path).loadRes([])
    words = [line.split(" (t=")[0] for line in capsys.readouterr().out.splitlines()]
    assert words == [
        "loading annotations into memory...",
        "Done",
        "creating index...",
        "index created!",
        "Loading and preparing results...",
        "DONE",
        "creating index...",
        "index created!",
    ]


def test_reads_removed_file_and_reports_rewritten_file(
    data: Any, path: Path
) -> None:
    coco = COCO(path)
    path.unlink()
    assert coco.dataset == data
    path.write_text(json.dumps(data))
    coco = COCO(path)
    path.write_text("something else")
    with pytest.raises(RuntimeError, match="rewritten"):
        coco.getAnnIds()


def test_copies_and_pickles_contain_dicts(data: Any, path: Path) -> None:
    for made in (copy.deepcopy(COCO(path)), pickle.loads(pickle.dumps(COCO(path)))):
        assert made.dataset == data and made.getImgIds() == COCO(path).getImgIds()


def test_reads_pipe_once(data: Any, tmp_path: Path) -> None:
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    thread = threading.Thread(target=pipe.write_text, args=(json.dumps(data),))
    thread.start()
    assert COCO(pipe).dataset == data
    thread.join()


def test_rejects_device() -> None:
    for read in (COCO, COCO().loadRes):
        with pytest.raises(OSError, match="/dev/zero"):
            read("/dev/zero")


def test_rejects_pipe_without_json(tmp_path: Path) -> None:
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write_for_ever() -> None:
        with contextlib.suppress(BrokenPipeError), open(pipe, "wb") as out:
            while True:
                out.write(b"a" * (1 << 16))

    threading.Thread(target=write_for_ever, daemon=True).start()
    with pytest.raises(ValueError, match="Expecting value"):
        COCO(pipe)


def test_filters_ids(data: Any, path: Path) -> None:
    coco, all_anns = COCO(path), data["annotations"]
    images = [data["images"][0]["id"], data["images"][3]["id"]]

    def ids(wanted: Any) -> list[int]:
        return [ann["id"] for ann in all_anns if wanted(ann)]

    assert coco.getAnnIds() == ids(lambda a: True)
    in_images = coco.getAnnIds(imgIds=images)
    assert sorted(in_images) == ids(lambda a: a["image_id"] in images)
    assert coco.getAnnIds(catIds=3) == ids(lambda a: a["category_id"] == 3)
    assert coco.getAnnIds(catIds=np.array([3, 1])) == ids(lambda a: a["category_id"] in (3, 1))
    assert coco.getAnnIds(areaRng=[50, 500]) == ids(lambda a: 50 < a["area"] < 500)
    assert coco.getAnnIds(iscrowd=True) == ids(lambda a: a["iscrowd"])
    assert coco.getCatIds() == [3, 1, 18, 7]
    assert coco.getCatIds(catNms="c18") == [18] and coco.getCatIds(catIds=[7, 3]) == [3, 7]
    assert coco.getCatIds(supNms=["s"], catNms=["c1"]) == [1]
    assert coco.getImgIds() == [image["id"] for image in data["images"]]
    both = set(coco.catToImgs[3]) & set(coco.catToImgs[1])
    assert set(coco.getImgIds(catIds=[3, 1])) == both
    assert set(coco.getImgIds(imgIds=images, catIds=3)) == set(images) & set(coco.catToImgs[3])
    assert [one["id"] for one in coco.loadImgs(images)] == images
    assert coco.loadCats(3) == [coco.cats[3]] and coco.loadAnns([]) == []
    with pytest.raises(KeyError):
        coco.loadAnns([10**9])


def test_converts_annotations_to_masks(data: Any, path: Path) -> None:
    coco = COCO(path)
    for ann in coco.dataset["annotations"]:
        pixels = coco.annToMask(ann)
        assert pixels.shape == (120, 120) and set(np.unique(pixels)) <= {0, 1}
    counts = {"size": [120, 120], "counts": [100, 50, 120 * 120 - 150]}
    ann = {"image_id": data["images"][0]["id"], "segmentation": counts}
    assert coco.annToMask(ann).sum() == 50


@pytest.mark.parametrize("kind", ["bbox", "segm", "both", "keypoints"])
def test_results_have_fields_of_loadres(data: Any, kind: str) -> None:
    coco = COCO()
    coco.dataset = data
    coco.createIndex()
    given = results(data, 5, kind)
    before = copy.deepcopy(given)
    res = coco.loadRes(given)
    assert given == before  # until accessed
    anns = res.dataset["annotations"]
    assert anns is given and [one["id"] for one in anns] == list(range(1, len(given) + 1))
    assert res.dataset["images"] == data["images"]
    assert res.dataset["categories"] == data["categories"]
    for one, old in zip(anns, before):
        assert {key: one[key] for key in old} == old
        if kind in ("bbox", "both"):
            assert one["area"] == one["bbox"][2] * one["bbox"][3] and one["iscrowd"] == 0
        if kind == "bbox":
            x, y, w, h = one["bbox"]
            assert one["segmentation"] == [[x, y, x, y + h, x + w, y + h, x + w, y]]
        if kind == "segm":
            assert one["area"] == coco.annToMask(one).sum()
        assert len(one["bbox"]) == 4


def test_reads_results_from_rows() -> None:
    coco = COCO()
    coco.dataset = data_set(3)
    coco.createIndex()
    image = coco.getImgIds()[0]
    rows = np.array([[image, 1, 2, 3, 4, 0.5, 3], [image, 5, 6, 7, 8, 0.25, 1]])
    anns = coco.loadRes(rows).dataset["annotations"]
    assert [one["area"] for one in anns] == [12, 56]
    assert anns[1]["bbox"] == [5, 6, 7, 8] and anns[1]["category_id"] == 1
    assert coco.loadNumpyAnnotations(rows)[0]["score"] == 0.5


def test_shows_captions(capsys: Any) -> None:
    coco = COCO()
    coco.dataset = {"images": [{"id": 1}, {"id": 2}], "annotations": []}
    coco.createIndex()
    res = coco.loadRes([{"image_id": 2, "caption": "a dog"}])
    assert [one["id"] for one in res.dataset["images"]] == [2]
    res.showAnns(res.dataset["annotations"])
    assert capsys.readouterr().out.endswith("a dog\n")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", json.JSONDecodeError),
        ('{"images": [', json.JSONDecodeError),
        ("[]", AssertionError),
        ('{"annotations": [{"id": 1}], "images": []}', KeyError),
    ],
)
def test_rejects_broken_files(tmp_path: Path, text: str, error: type[Exception]) -> None:
    (tmp_path / "data.json").write_text(text)
    with pytest.raises(error):
        COCO(tmp_path / "data.json")


def test_reports_invalid_results(path: Path, data: Any) -> None:
    coco, image = COCO(path), data["images"][0]["id"]
    good = {"image_id": image, "category_id": 3, "bbox": [1, 2, 3, 4], "score": 0.5}
    with pytest.raises(FileNotFoundError):
        COCO("/no/such/file.json")
    with pytest.raises(FileNotFoundError):
        coco.loadRes("/no/such/file.json")
    with pytest.raises(AssertionError, match="correspond"):
        coco.loadRes([good, good | {"image_id": -1}])
    with pytest.raises(KeyError, match=r"detections\[1\]: 'bbox' is missing"):
        coco.loadRes([good, {k: v for k, v in good.items() if k != "bbox"}])
    with pytest.raises(KeyError, match=r"detections\[0\]: 'image_id' is missing"):
        coco.loadRes([{"bbox": [1, 2, 3, 4]}])
    with pytest.raises(TypeError, match=r"detections\[0\]"):
        coco.loadRes([3])
    with pytest.raises(AssertionError, match="array of objects"):
        coco.loadRes({})
    with pytest.raises(AssertionError, match=r"\(N, 7\)"):
        coco.loadRes(np.zeros((2, 6)))


def test_messages_contain_no_control_characters(tmp_path: Path) -> None:
    file = tmp_path / "a\x1b[2J.json"
    file.write_text("no JSON")
    with pytest.raises(ValueError, match=r"a\\x1b\[2J\.json") as raised:
        COCO(file)
    assert "\x1b" not in str(raised.value)
