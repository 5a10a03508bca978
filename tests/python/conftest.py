"""What tests of the data flow share."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import millrace.data

TRAINER = os.environ.get("MILLRACE_TRAINER", "")  # of the same build; empty: not built
if not os.path.exists(TRAINER):
    TRAINER = ""
SMALL = {"batch_size": 4, "short_side": 96, "max_side": 160}


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A data set of 26 images to train on and 9 to evaluate with."""
    folder = tmp_path_factory.mktemp("data") / "sample"
    millrace.data.make_sample(folder, train=26, val=9, seed=3)
    return str(folder)


def digests(flow: Any, count: int) -> list[str]:
    return [flow.next().digest() for _ in range(count)]


def run_python(code: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A program of its own, that must end within a minute. Python's warning of forks is known."""
    return subprocess.run(
        [sys.executable, "-W", "ignore:This process", "-c", code, *arguments],
        capture_output=True, text=True, timeout=60, cwd=Path(__file__).parent, **options,
    )  # fmt: skip
