"""The class COCO: a data set, or results, with pycocotools' attributes and methods."""

from __future__ import annotations

import itertools
import os
import time
import warnings
from collections import defaultdict
from typing import Any, cast

import numpy as np

from .. import _coco
from . import mask
from ._drawing import show_annotations
from ._json_file import JsonFile
from ._results import Results, rows_as_dicts, rule_of
from ._types import RLE, Bitmaps, Ids, Record

# Attributes of pycocotools. For data read in C++ they are created on first access.
_DICTS = ("dataset", "anns", "imgs", "cats", "imgToAnns", "catToImgs")


def _is_array_like(value: Any) -> bool:
    return hasattr(value, "__iter__") and hasattr(value, "__len__")


def _as_list(value: Any) -> Any:
    return value if _is_array_like(value) else [value]


def _warn_of_zero() -> None:
    warnings.warn(
        "an annotation has id 0, which pycocotools and this class treat as 'no match', so that it "
        "counts as missed; number annotations from 1",
        stacklevel=4,
    )


class COCO:
    """A data set in COCO's format, with pycocotools' attributes and methods.

    dataset: the whole file as dicts. anns, imgs, cats: records by id. imgToAnns: annotations by
    image id. catToImgs: image ids by category id. All may be changed; an evaluation uses what they
    contain then. A file is read in C++, and these dicts are created when one is first accessed.
    """

    dataset: Record
    anns: dict[Any, Record]
    imgs: dict[Any, Record]
    cats: dict[Any, Record]
    imgToAnns: dict[Any, list[Record]]
    catToImgs: dict[Any, list[Any]]

    def __init__(self, annotation_file: str | os.PathLike[str] | Record | None = None) -> None:
        """Reads an annotation file, uses its dict unchanged, or creates an empty data set.

        Raises OSError, json.JSONDecodeError if it is not JSON, and AssertionError if it contains
        no object.
        """
        self._file: JsonFile | None = None
        self._truth: _coco.Truth | None = None
        self._results: Results | None = None
        if annotation_file is None:
            self.dataset, self.anns, self.cats, self.imgs = {}, {}, {}, {}
            self.imgToAnns, self.catToImgs = defaultdict(list), defaultdict(list)
            return
        print("loading annotations into memory...")
        start = time.time()
        if isinstance(annotation_file, dict):
            self.dataset = annotation_file
            print(f"Done (t={time.time() - start:0.2f}s)")
            self.createIndex()
            return
        self._file = JsonFile(annotation_file)
        if self._file.is_regular:
            try:
                self._truth = _coco.read_truth(self._file.path)
            except ValueError:  # no objects, for example captions; dicts are used
                self._truth = None
        if self._truth is None:
            self.dataset = self._read()
        print(f"Done (t={time.time() - start:0.2f}s)")
        if self._truth is None:
            self.createIndex()
        else:
            print("creating index...")
            if self._truth.has_id_zero:
                _warn_of_zero()
            print("index created!")

    def _read(self) -> Record:
        assert self._file is not None
        dataset = self._file.load()
        assert type(dataset) is dict, f"annotation file format {type(dataset)} not supported"
        return dataset

    def __getattr__(self, name: str) -> Any:
        if name not in _DICTS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if "dataset" not in self.__dict__:
            if self._results is not None:
                self.dataset = self._results.dataset()
            elif self._file is not None:
                self.dataset = self._read()
            else:
                raise AttributeError(name)
        if name != "dataset":
            self._index()
        return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in _DICTS}
        native = ("_file", "_truth", "_results")
        state |= {name: value for name, value in self.__dict__.items() if name not in native}
        return state | dict.fromkeys(native)

    @property
    def _is_untouched(self) -> bool:
        """Returns whether none of the dicts has been accessed or set."""
        return not any(name in self.__dict__ for name in _DICTS)

    @property
    def native_truth(self) -> _coco.Truth | None:
        """The data set as read in C++; None once the dicts have been accessed."""
        return self._truth if self._is_untouched else None

    @property
    def native_results(self) -> Results | None:
        """The results as given to loadRes; None once the dicts have been accessed."""
        return self._results if self._is_untouched else None

    def _index(self) -> None:
        """Creates those of the five indices that have not been set."""
        anns, imgs, cats, of_image, of_category = _coco.index(
            self.dataset, defaultdict(list), defaultdict(list)
        )
        made = {
            "anns": anns,
            "imgs": imgs,
            "cats": cats,
            "imgToAnns": of_image,
            "catToImgs": of_category,
        }
        for name, value in made.items():
            self.__dict__.setdefault(name, value)

    def createIndex(self) -> None:
        """Creates anns, imgs, cats, imgToAnns and catToImgs from `dataset`."""
        print("creating index...")
        dataset = self.dataset
        for name in _DICTS:
            if name != "dataset":
                self.__dict__.pop(name, None)
        assert dataset is self.dataset
        self._index()
        if 0 in self.anns:
            _warn_of_zero()
        print("index created!")

    def info(self) -> None:
        """Prints the file's 'info'."""
        for key, value in self.dataset["info"].items():
            print(f"{key}: {value}")

    def getAnnIds(
        self, imgIds: Any = [], catIds: Any = [], areaRng: Any = [], iscrowd: Any = None
    ) -> list[Any]:
        """Returns the ids of the annotations with these images and categories; [] = all.

        areaRng: minimum and maximum area, both exclusive. iscrowd: True or False selects only such
        annotations.
        """
        imgIds, catIds = _as_list(imgIds), _as_list(catIds)
        anns: Any = self.dataset["annotations"] if len(imgIds) == 0 else None
        if anns is None:
            of_image = self.imgToAnns
            anns = itertools.chain.from_iterable(of_image[i] for i in imgIds if i in of_image)
        if len(catIds) > 0:
            wanted = set(catIds)
            anns = (ann for ann in anns if ann["category_id"] in wanted)
        if len(areaRng) > 0:
            anns = (ann for ann in anns if areaRng[0] < ann["area"] < areaRng[1])
        if iscrowd is not None:
            anns = (ann for ann in anns if ann["iscrowd"] == iscrowd)
        return [ann["id"] for ann in anns]

    def getCatIds(self, catNms: Any = [], supNms: Any = [], catIds: Any = []) -> list[Any]:
        """Returns the ids of the categories with these names, supercategories and ids; [] = all."""
        cats = self.dataset["categories"]
        for key, wanted in (("name", catNms), ("supercategory", supNms), ("id", catIds)):
            wanted = _as_list(wanted) if not isinstance(wanted, str) else [wanted]
            if len(wanted) > 0:
                cats = [cat for cat in cats if cat[key] in wanted]
        return [cat["id"] for cat in cats]

    def getImgIds(self, imgIds: Any = [], catIds: Any = []) -> list[Any]:
        """Returns the ids in `imgIds` whose images have objects of all of `catIds`; [] = all."""
        imgIds, catIds = _as_list(imgIds), _as_list(catIds)
        if len(imgIds) == len(catIds) == 0:
            return list(self.imgs.keys())
        ids = set(imgIds)
        for number, category in enumerate(catIds):
            of_category = set(self.catToImgs[category])
            ids = of_category if number == 0 and not ids else ids & of_category
        return list(ids)

    def sorted_ids(self) -> tuple[list[Any], list[Any]]:
        """Returns the ids of all images and of all categories, ascending."""
        truth = self.native_truth
        if truth is not None and type(self) is COCO:
            return truth.image_ids.tolist(), truth.category_ids.tolist()
        return sorted(self.getImgIds()), sorted(self.getCatIds())

    @staticmethod
    def _load(records: dict[Any, Record], ids: Any) -> list[Record]:
        return [records[one] for one in _as_list(ids)]

    def loadAnns(self, ids: Any = []) -> list[Record]:
        """Returns the annotations with these ids. Raises KeyError."""
        return self._load(self.anns, ids)

    def loadCats(self, ids: Any = []) -> list[Record]:
        """Returns the categories with these ids. Raises KeyError."""
        return self._load(self.cats, ids)

    def loadImgs(self, ids: Any = []) -> list[Record]:
        """Returns the images with these ids. Raises KeyError."""
        return self._load(self.imgs, ids)

    def showAnns(self, anns: list[Record], draw_bbox: bool = False) -> Any:
        """Draws annotations on matplotlib's current axes; prints captions."""
        return show_annotations(self, anns, draw_bbox)

    def loadRes(self, resFile: Any) -> COCO:
        """Returns detections for this data set as a COCO.

        resFile: a list of dicts, the path of a file with one, or an array (N, 7) of image,
        x, y, width, height, score, category. The first detection determines the source of all
        areas: its 'bbox', otherwise its 'segmentation', otherwise its 'keypoints'. Dicts of a list
        get 'id', 'area' etc., as in pycocotools, when the dicts of the result are accessed. Raises
        AssertionError for an image that is not in this data set, KeyError for a missing field.
        """
        print("Loading and preparing results...")
        start = time.time()
        results = self._results_of(resFile)
        res = COCO()
        for name in _DICTS:
            del res.__dict__[name]
        res._results = results
        print(f"DONE (t={time.time() - start:0.2f}s)")
        if results.rule in ("caption", "none") and results.dicts:
            res.createIndex()
        else:
            print("creating index...")
            print("index created!")
        return res

    def _results_of(self, given: Any) -> Results:
        unknown = "Results do not correspond to current coco set"
        file = None
        if isinstance(given, (str, os.PathLike)):
            file = JsonFile(given)
            if file.is_regular:
                try:
                    found = _coco.read_found(file.path, self.native_truth)
                except ValueError:  # such as keypoints, or an error that is reported for the dicts
                    pass
                else:
                    assert self._has_images(found.image_ids), unknown
                    rule = found.areas
                    return Results(self, cast(Any, rule), file=file, found=found)
            given = file.load()
        if isinstance(given, np.ndarray):
            self._announce_rows(given)
            rows = np.array(given)
            assert self._has_images(rows[:, 0].astype(np.int64)), unknown
            return Results(self, "bbox", rows=rows)
        assert type(given) is list, "results in not an array of objects"
        rule = rule_of(given) if given else "bbox"
        truth = self.native_truth
        needed = {"bbox": "bbox", "segm": "segmentation", "keypoints": "keypoints"}.get(rule, "")
        known = _coco.are_of_images(given, None if truth else self.imgs, truth, needed)
        assert known, unknown
        return Results(self, cast(Any, rule), dicts=given)

    def _has_images(self, ids: Ids) -> bool:
        truth = self.native_truth
        if truth is not None:
            first_of_each = np.r_[ids[:1], ids[1:][ids[1:] != ids[:-1]]]  # usually grouped by image
            return bool(np.isin(first_of_each, truth.image_ids).all())
        return all(one in self.imgs for one in ids.tolist())

    @staticmethod
    def _announce_rows(data: Any) -> None:
        print("Converting ndarray to lists...")
        assert isinstance(data, np.ndarray), f"expected an array, not {type(data)}"
        print(data.shape)
        assert data.ndim == 2 and data.shape[1] == 7, f"expected shape (N, 7), not {data.shape}"
        for begin in range(0, len(data), 1000000):
            print(f"{begin}/{len(data)}")

    def loadNumpyAnnotations(self, data: Any) -> list[Record]:
        """Returns the rows of an array (N, 7) as dicts; see `loadRes`."""
        self._announce_rows(data)
        return rows_as_dicts(data)

    def download(self, tarDir: str | None = None, imgIds: Any = []) -> int | None:
        """Downloads the images that are missing in a folder, from their 'coco_url'."""
        from urllib.request import urlretrieve  # imported late, since it is slow

        if tarDir is None:
            print("Please specify target directory")
            return -1
        images = list(self.imgs.values()) if len(imgIds) == 0 else self.loadImgs(imgIds)
        os.makedirs(tarDir, exist_ok=True)
        for number, image in enumerate(images):
            start = time.time()
            path = os.path.join(tarDir, image["file_name"])
            if not os.path.exists(path):
                urlretrieve(image["coco_url"], path)
            print(f"downloaded {number}/{len(images)} images (t={time.time() - start:0.1f}s)")
        return None

    def annToRLE(self, ann: Record) -> RLE:
        """Returns an annotation's 'segmentation' as an RLE with compressed counts."""
        image = self.imgs[ann["image_id"]]
        height, width = image["height"], image["width"]
        segmentation = ann["segmentation"]
        if isinstance(segmentation, list):
            return mask.merge(mask.frPyObjects(segmentation, height, width))
        if isinstance(segmentation["counts"], list):
            return mask.frPyObjects(segmentation, height, width)
        return cast(RLE, segmentation)

    def annToMask(self, ann: Record) -> Bitmaps:
        """Returns an annotation's 'segmentation' as a bitmap (H, W) of 0 and 1."""
        return mask.decode(self.annToRLE(ann))
