#!/usr/bin/env python3
"""Checks the layout of the code: includes follow the dependencies below, public headers include
only public headers, and no folder has too many files.

usage: check_rooms.py [ROOT]    the root of a checkout (default: this one)
"""

import pathlib
import re
import sys

MOST_FILES = 40  # in one folder, without its subfolders

# The folders of the rooms and of the Python modules, lowest first, each with its direct
# dependencies. A folder may include these and everything that they may include. Dependencies must
# come earlier in this list, so that there are no cycles.
FOLDERS = {
    "base": [],
    "base/disk": ["base"],
    "base/events": ["base/disk"],
    "base/process": ["base/events"],
    "coco/masks": ["base"],
    "coco/data": ["base/disk", "coco/masks"],
    "coco/picture": ["base"],
    "coco/drawing": ["coco/data", "coco/picture"],
    "coco/evaluation": ["coco/data"],
    "coco/analysis": ["coco/evaluation"],
    "coco/sample": ["base/disk", "coco/masks", "coco/picture"],
    "dataflow/store/remote/http": [],
    "dataflow/store/remote": ["base/disk", "base/process", "dataflow/store/remote/http"],
    "dataflow/engine": ["base/events"],
    "dataflow/image_readers": [],
    "dataflow/image": ["base/process", "coco/masks", "dataflow/image_readers"],
    "dataflow/detection": ["coco/drawing", "coco/sample", "dataflow/engine", "dataflow/image"],
    "dataflow/store": ["dataflow/detection", "dataflow/store/remote"],
    "dataflow/sources": ["dataflow/store"],
    "dataflow/serving": ["dataflow/sources"],
    "dataflow/stages": ["dataflow/store"],
    "dataflow": ["dataflow/serving", "dataflow/stages"],
    "models/weights": ["base/disk"],
    "models/onnx": ["models/weights"],
    "models/detector": ["dataflow/detection", "models/onnx"],
    "models/export": ["models/detector"],
    "models/ops/cpu": [],
    "models/ops": ["models/onnx", "models/ops/cpu"],
    "models/layers": ["models/detector", "models/ops"],
    "models/backbones": ["models/layers"],
    "models": ["models/backbones"],
    "models/maskrcnn": ["models"],
    "models/retinanet": ["models"],
    "models/predict": ["models/detector"],
    "trainer/cluster": ["base/process", "models/detector"],
    "trainer/optimizer": ["models/detector"],
    "trainer/checkpoint": ["trainer/cluster", "trainer/optimizer"],
    "trainer/memory": ["dataflow", "trainer/cluster"],
    "trainer": ["coco/analysis", "trainer/checkpoint", "trainer/memory"],
    "trainer/evaluation": ["trainer"],
    "trainer/status": ["trainer"],
    "trainer/trace": ["trainer"],
    "trainer/run": ["trainer/evaluation", "trainer/status"],
    "tools/report": ["coco/analysis", "dataflow/detection"],
    "tools/data": ["coco/evaluation", "dataflow/stages"],
    "tools/formats/files": ["coco/data", "dataflow/image"],
    "tools/formats": ["tools/formats/files"],
    "tools/formats/writers": ["tools/formats"],
    "tools/video/files": [],
    "tools/video": ["base", "tools/video/files"],
    "callbacks/common": ["trainer/evaluation"],
    "callbacks": ["callbacks/common", "tools/report", "trainer/trace"],
    "plugins": ["base/disk"],
    "plugins/cuda": ["models/ops", "plugins", "trainer/cluster"],
    "plugins/rtdetr": ["models"],
    "plugins/yolox": ["models"],
    "cli": ["models/export", "models/maskrcnn", "models/retinanet", "plugins", "tools/data",
            "tools/formats", "tools/report", "tools/video", "trainer/run"],
    "cli/bench": ["cli", "trainer/trace"],
    "cli/describe": ["cli"],
    "cli/replay": ["cli"],
    "cli/init": ["cli"],
    "cli/inspect": ["cli"],
    "cli/predict": ["cli"],
    "cli/status": ["cli"],
    "cli/commands": ["cli/bench", "cli/describe", "cli/init", "cli/inspect", "cli/predict",
                     "cli/replay", "cli/status"],
    "python/src/coco": ["coco/evaluation"],
    "python/src/flow": ["dataflow"],
}

# Like plug-ins of other projects, these may include only public headers and their own.
PUBLIC_ALONE = ("plugins/rtdetr", "plugins/yolox")

ROOMS = ("base", "coco", "dataflow", "models", "trainer", "tools", "callbacks", "plugins", "cli")

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]((?:millrace|python)/[^">]+/[^">/]+)[">]')


def reachable() -> dict:
    """Returns the folders that each folder may include, including itself."""
    below = {}
    for folder, dependencies in FOLDERS.items():
        late = [one for one in dependencies if one not in below]
        if late:
            raise SystemExit(f"{__file__}: dependencies of '{folder}' must be listed before it: "
                             f"{late}")
        below[folder] = {folder}.union(*(below[one] for one in dependencies))
    return below


def public_headers(root: pathlib.Path) -> set:
    """Returns the headers in cmake/public_headers.cmake, and the one that the build generates."""
    listed = root / "cmake/public_headers.cmake"
    text = listed.read_text() if listed.exists() else ""
    return set(re.findall(r"^  (millrace/\S+\.h)$", text, re.M)) | {"millrace/plugins/build_id.h"}


def problems(root: pathlib.Path):
    below = reachable()
    for top in (*ROOMS, "python", "tests"):
        for folder in sorted({path.parent for path in (root / top).rglob("*") if path.is_file()}):
            count = sum(path.is_file() for path in folder.iterdir())
            if count > MOST_FILES:
                yield f"{folder.relative_to(root)}: {count} files; the limit is {MOST_FILES}"
    public = public_headers(root)
    for file in sorted(file for top in (*ROOMS, "python") for file in (root / top).rglob("*")):
        if file.suffix not in (".h", ".cpp", ".cu", ".cuh"):
            continue
        name = file.relative_to(root)
        folder = name.parent.as_posix()
        if folder not in below:
            yield f"{name}:1: folder not listed in scripts/check_rooms.py"
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            target = found and found[1].removeprefix("millrace/").rpartition("/")[0]
            if target and target not in below[folder]:
                yield f"{name}:{number}: '{folder}' must not include '{target}' (check_rooms.py)"
            if found and folder in PUBLIC_ALONE and found[1] not in public:
                yield f"{name}:{number}: includes '{found[1]}', which is not public"
            if found and f"millrace/{name}" in public and found[1] not in public:
                yield f"{name}:{number}: public header includes '{found[1]}', which is not public"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ +
                                       "/../..").resolve()))
    print("\n".join(found) or f"{len(FOLDERS)} folders; all includes are allowed")
    sys.exit(bool(found))
