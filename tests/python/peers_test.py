"""faster-coco-eval's own tests (scripts/setup_python peers fetches them), run with our classes
under its names. pycocotools' and lvis' source distributions hold no tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(sys.prefix) / "sources"
TESTS = sorted(SOURCES.glob("faster_coco_eval-*/tests/test_*.py"))

# What cannot pass, and why: whole files, or tests of them.
LEFT_OUT: dict[str, str] = {}


@pytest.mark.skipif(not TESTS, reason="no tests of peers: scripts/setup_python peers fetches them")
@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_peer(file: Path) -> None:
    if file.name in LEFT_OUT:
        pytest.skip(LEFT_OUT[file.name])
    deselected = [
        argument
        for name, why in LEFT_OUT.items()
        if name.startswith(file.name + "::")
        for argument in ("--deselect", f"{file.parent.name}/{name}")
    ]
    here = Path(__file__).parent / "peers"
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "as_faster_coco_eval"]
        + ["-p", "no:cacheprovider", f"{file.parent.name}/{file.name}", *deselected],
        cwd=file.parents[1],
        env={**os.environ, "PYTHONPATH": f"{here}:{os.environ.get('PYTHONPATH', '')}"},
        check=True,
    )
