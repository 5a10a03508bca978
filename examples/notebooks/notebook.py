"""Shared by the notebooks: the sample data set and the program `trainer`."""

import os
import shutil
import subprocess
from pathlib import Path

from millrace.data import make_sample

ROOT = Path(__file__).resolve().parents[2]  # of the checkout


def sample(folder: str = "data/sample", train: int = 256, val: int = 128) -> Path:
    """Returns the folder of the sample data set; generates the data set if it is missing."""
    if not Path(folder).exists():
        make_sample(folder, train=train, val=val)
    return Path(folder)


def trainer(*arguments: object) -> str:
    """Runs `trainer` and returns its standard output. Raises RuntimeError with the end of its log
    if it fails."""
    program = os.environ.get("MILLRACE_TRAINER") or shutil.which("trainer")
    program = program or next(map(str, sorted(ROOT.glob("build/*/bin/trainer"))), None)
    if program is None:
        raise RuntimeError("program `trainer` not found; build it with `make build`")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError("\n".join(done.stderr.splitlines()[-20:]))
    return done.stdout
