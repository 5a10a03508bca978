"""millrace.pictures draws objects at their positions."""

from pathlib import Path

import numpy as np
import pytest
from millrace import pictures
from millrace.coco import COCO
from millrace.data import make_sample
from PIL import Image

GREY = np.full((60, 80, 3), 100, np.uint8)


def test_draws_only_object_pixels() -> None:
    mask = np.zeros((1, 60, 80), bool)
    mask[0, 20:30, 30:40] = True
    drawn = np.array(pictures.draw(GREY, [[25, 15, 50, 40]], [3], masks=mask))
    changed = np.argwhere((drawn != GREY).any(axis=2))
    assert changed.min(axis=0).tolist() == [15, 25]
    assert changed.max(axis=0).tolist() == [40, 50]
    assert (drawn[25, 35] == GREY[25, 35] // 2 + np.array(pictures.colour(3)) // 2).all()
    assert (drawn[35, 45] == GREY[35, 45]).all()  # inside the box, outside the mask
    assert (GREY == 100).all()


def test_classes_have_different_colours() -> None:
    assert len({pictures.colour(label) for label in range(100)}) == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [1, 2]}, "labels .*2 .*1 boxes"),
        ({"labels": [1], "texts": ["a", "b"]}, "texts .*2 .*1 boxes"),
        ({"labels": [1], "masks": np.ones((1, 5, 5), bool)}, r"mask .*\(5, 5\)"),
    ],
)
def test_rejects_mismatched_shapes(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pictures.draw(GREY, [[1, 1, 9, 9]], **arguments)  # type: ignore[arg-type]


def test_rejects_image_of_wrong_type() -> None:
    with pytest.raises(ValueError, match="uint8"):
        pictures.draw(GREY.astype(float), [], [])


def test_draws_annotations_and_detections(tmp_path: Path) -> None:
    make_sample(tmp_path / "sample", train=1, val=4)
    folder = tmp_path / "sample" / "val2017"
    truth = COCO(tmp_path / "sample" / "annotations" / "instances_val2017.json")
    image = truth.getImgIds()[0]
    plain = Image.open(folder / truth.loadImgs([image])[0]["file_name"])
    drawn = pictures.annotated(truth, folder, image)
    assert drawn.size == plain.size
    assert (np.array(drawn) != np.array(plain)).any()
    objects = truth.loadAnns(truth.getAnnIds(imgIds=[image]))
    keys = ("image_id", "category_id", "bbox")
    results = truth.loadRes([{key: one[key] for key in keys} | {"score": 0.4} for one in objects])
    assert (np.array(pictures.found(truth, results, folder, image)) == np.array(plain)).all()
    low = np.array(pictures.found(truth, results, folder, image, score=0.3))
    assert (low != np.array(plain)).any()


def test_grid_contains_all_images() -> None:
    sheet = pictures.grid([Image.fromarray(GREY)] * 5, columns=2, width=100, captions=list("abcde"))
    assert sheet.size == (200, 3 * 116)
    with pytest.raises(ValueError, match="no pictures"):
        pictures.grid([])
