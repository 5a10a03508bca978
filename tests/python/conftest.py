"""Fixtures for the tests of the data flow."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import millrace.data

TRAINER = os.environ.get("MILLRACE_TRAINER", "")  # of the same build; empty = not built
if not os.path.exists(TRAINER):
    TRAINER = ""
SMALL = {"batch_size": 4, "short_side": 96, "max_side": 160}


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the folder of a data set of 26 training and 9 validation images."""
    folder = tmp_path_factory.mktemp("data") / "sample"
    millrace.data.make_sample(folder, train=26, val=9, seed=3)
    return str(folder)


def digests(flow: Any, count: int) -> list[str]:
    return [flow.next().digest() for _ in range(count)]


def run_python(code: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a Python program for up to a minute, without Python's warning about forks."""
    return subprocess.run(
        [sys.executable, "-W", "ignore:This process", "-c", code, *arguments],
        capture_output=True, text=True, timeout=60, cwd=Path(__file__).parent, **options,
    )  # fmt: skip
