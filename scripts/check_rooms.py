#!/usr/bin/env python3
"""Checks the house: includes follow the arrows below, public headers include public headers only,
and no folder grows beyond what one can survey.

usage: check_rooms.py [ROOT]    the root of a checkout (default: this one)
"""

import pathlib
import re
import sys

MOST_FILES = 40  # in a folder, those of its folders not counted

# The folders of millrace/ and those of the Python modules, lowest first, each with those it stands
# on. A folder may include these and whatever they may include. What is named stands above, so that
# arrows form no circle.
FOLDERS = {
    "base": [],
    "base/disk": ["base"],
    "base/events": ["base/disk"],
    "base/process": ["base/events"],
    "storage/http": [],
    "storage": ["base/disk", "base/process", "storage/http"],
    "engine": ["base/events"],
    "coco/masks": ["base"],
    "coco/data": ["base/disk", "coco/masks"],
    "coco/picture": ["base"],
    "coco/drawing": ["coco/data", "coco/picture"],
    "coco/evaluation": ["coco/data"],
    "coco/analysis": ["coco/evaluation"],
    "coco/sample": ["base/disk", "coco/masks", "coco/picture"],
    "dataflow/image_readers": [],
    "dataflow/image": ["base/process", "coco/masks", "dataflow/image_readers"],
    "dataflow/detection": ["engine", "coco/drawing", "coco/sample", "dataflow/image"],
    "dataflow/store": ["dataflow/detection", "storage"],
    "dataflow/sources": ["dataflow/store"],
    "dataflow/serving": ["dataflow/sources"],
    "dataflow/stages": ["dataflow/store"],
    "dataflow": ["dataflow/serving", "dataflow/stages"],
    "report": ["coco/analysis", "dataflow/detection"],
    "doctor": ["coco/evaluation", "dataflow/stages"],
    "advice": ["doctor"],
    "formats/files": ["coco/data", "dataflow/image"],
    "formats": ["formats/files"],
    "formats/writers": ["formats"],
    "weights": ["base/disk"],
    "onnx": ["weights"],
    "detector": ["dataflow/detection", "onnx"],
    "export": ["detector"],
    "models/ops": ["onnx"],
    "models/layers": ["detector", "models/ops"],
    "models/backbones": ["models/layers"],
    "models": ["models/backbones"],
    "models/maskrcnn": ["models"],
    "models/retinanet": ["models"],
    "predict": ["detector"],
    "trainer/cluster": ["base/process", "detector"],
    "trainer/optimizer": ["detector"],
    "trainer/checkpoint": ["trainer/cluster", "trainer/optimizer"],
    "trainer": ["coco/analysis", "dataflow", "trainer/checkpoint"],
    "trainer/evaluation": ["trainer"],
    "trainer/status": ["trainer"],
    "trainer/run": ["trainer/evaluation", "trainer/status"],
    "callbacks/common": ["trainer/evaluation"],
    "callbacks": ["callbacks/common", "report"],
    "plugins": ["base/disk"],
    "plugins/cuda": ["models/ops", "plugins", "trainer/cluster"],
    "plugins/rtdetr": ["models"],
    "plugins/yolox": ["models"],
    "video/files": [],
    "video": ["base", "video/files"],
    "cli": ["doctor", "export", "formats", "models/maskrcnn", "models/retinanet",
            "plugins", "report", "trainer/run", "video"],
    "cli/bench": ["cli"],
    "cli/describe": ["cli"],
    "cli/replay": ["cli"],
    "cli/check_gpu": ["cli/bench"],
    "cli/init": ["advice", "cli"],
    "cli/inspect": ["cli"],
    "cli/predict": ["cli"],
    "cli/status": ["cli"],
    "cli/commands": ["cli/check_gpu", "cli/describe", "cli/init", "cli/inspect", "cli/predict",
                     "cli/replay", "cli/status"],
    "python/src/coco": ["coco/evaluation"],
    "python/src/flow": ["dataflow"],
}

# As plug-ins from elsewhere, these include public headers and their own alone.
PUBLIC_ALONE = ("plugins/rtdetr", "plugins/yolox")

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]((?:millrace|python)/[^">]+/[^">/]+)[">]')


def reachable() -> dict:
    """What each folder may include, itself among it."""
    below = {}
    for folder, stands_on in FOLDERS.items():
        late = [one for one in stands_on if one not in below]
        if late:
            raise SystemExit(f"{__file__}: '{folder}' stands on what comes later: {late}")
        below[folder] = {folder}.union(*(below[one] for one in stands_on))
    return below


def public_headers(root: pathlib.Path) -> set:
    """Those of cmake/public_headers.cmake, and the one that the build writes."""
    listed = root / "cmake/public_headers.cmake"
    text = listed.read_text() if listed.exists() else ""
    return set(re.findall(r"^  (millrace/\S+\.h)$", text, re.M)) | {"millrace/plugins/build_id.h"}


def problems(root: pathlib.Path):
    below = reachable()
    for top in ("millrace", "python", "tests"):
        for folder in sorted({path.parent for path in (root / top).rglob("*") if path.is_file()}):
            count = sum(path.is_file() for path in folder.iterdir())
            if count > MOST_FILES:
                yield f"{folder.relative_to(root)}: {count} files; divide it ({MOST_FILES} at most)"
    public = public_headers(root)
    for file in sorted([*(root / "millrace").rglob("*"), *(root / "python").rglob("*")]):
        if file.suffix not in (".h", ".cpp", ".cu", ".cuh"):
            continue
        name = file.relative_to(root)
        folder = name.parent.as_posix().removeprefix("millrace/")
        if folder not in below:
            yield f"{name}:1: its folder is not listed in scripts/check_rooms.py"
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            target = found and found[1].removeprefix("millrace/").rpartition("/")[0]
            if target and target not in below[folder]:
                yield f"{name}:{number}: '{folder}' may not include '{target}' (check_rooms.py)"
            if found and folder in PUBLIC_ALONE and found[1] not in public:
                yield f"{name}:{number}: includes '{found[1]}', which is not public"
            if found and name.as_posix() in public and found[1] not in public:
                yield f"{name}:{number}: a public header includes '{found[1]}', which is not public"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ +
                                       "/../..").resolve()))
    print("\n".join(found) or f"{len(FOLDERS)} folders, all arrows point down")
    sys.exit(bool(found))
