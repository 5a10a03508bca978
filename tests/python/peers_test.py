"""Runs faster-coco-eval's own tests (fetched by `scripts/setup_python peers`) with our classes
under its names. The source distributions of pycocotools and lvis contain no tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from left_out import LEFT_OUT  # noqa: E402

SOURCES = Path(sys.prefix) / "sources"
TESTS = sorted(SOURCES.glob("faster_coco_eval-*/tests/test_*.py"))
FIXTURES = Path(os.environ.get("MILLRACE_TEST_DATA", "../shared/data")).resolve() / "eval"
NEED_FIXTURES = ["test_cocoapi_fake_data.py", "test_ranges.py"]


@pytest.mark.skipif(not TESTS, reason="no tests of peers: scripts/setup_python peers fetches them")
@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_peer_runs(file: Path, tmp_path: Path) -> None:
    if file.name in LEFT_OUT:
        pytest.skip(LEFT_OUT[file.name])
    if file.name in NEED_FIXTURES:
        if not FIXTURES.exists():
            pytest.skip(f"no {FIXTURES}")
        (tmp_path / "dataset").mkdir()
        (tmp_path / "dataset" / "cocoapi").symlink_to(FIXTURES / "cocoapi100")
    deselected = [
        argument
        for name in LEFT_OUT
        if name.startswith(file.name + "::")
        for argument in ("--deselect", f"tests/{name}")
    ]
    here = Path(__file__).parent / "peers"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "as_faster_coco_eval"]
        + ["-p", "no:cacheprovider", f"--rootdir={file.parents[1]}", str(file), *deselected],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{here}:{os.environ.get('PYTHONPATH', '')}"},
    )
    if done.returncode == 5:  # pytest ran no test: the file is skipped without torch
        pytest.skip(f"{file.name} skips itself")
    assert done.returncode == 0
