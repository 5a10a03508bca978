"""What importing millrace.coco loads, and millrace.coco as a replacement for pycocotools."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import millrace.coco
from millrace import _coco


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout


def test_import_is_light() -> None:
    code = "import millrace.coco; print(open('/proc/self/maps').read())"
    libraries = {line.split("/")[-1] for line in run(code).splitlines() if ".so" in line}
    assert any(name.startswith("_coco") for name in libraries)
    heavy = ("libopencv", "libtorch", "libgdal", "libc10")
    assert not [name for name in libraries if name.startswith(heavy)]
    assert "matplotlib" not in run("import sys, millrace.coco; print(list(sys.modules))")


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="instrumented")
def test_module_is_small() -> None:
    assert Path(_coco.__file__).stat().st_size < 5_000_000


def test_stub_matches_module() -> None:
    stub = ast.parse((Path(millrace.coco.__file__).parents[1] / "_coco.pyi").read_text())
    named = {n.name for n in stub.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    assert named == {name for name in dir(_coco) if not name.startswith("_")}
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            methods = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
            here = vars(getattr(_coco, node.name))
            assert methods <= set(here), node.name
            assert {name for name in here if not name.startswith("_")} <= methods, node.name


def test_replaces_pycocotools() -> None:
    code = """
import millrace.coco
millrace.coco.init_as_pycocotools()
import pycocotools, pycocotools.mask as mask_util
from pycocotools import mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval, Params
import pycocotools._mask
assert COCO is millrace.coco.COCO and COCOeval is millrace.coco.COCOeval
assert Params is millrace.coco.Params and mask is mask_util is millrace.coco.mask
print(pycocotools._mask.frPoly([[0, 0, 3, 3, 2, 2]], 4, 5))
"""
    assert run(code) == "[{'size': [4, 5], 'counts': b'd0'}]\n"


def test_works_after_fork() -> None:
    code = """
import os, numpy as np
from millrace.coco import mask
pixels = np.eye(300, dtype=np.uint8)[:, :, None].repeat(64, axis=2)
first = mask.encode(pixels)
child = os.fork()
if child == 0:
    os._exit(0 if mask.encode(pixels) == first else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run(code) == "0\n"
