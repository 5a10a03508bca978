"""How commands of `trainer` that are modules of this package start and end."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import TRAINER

pytestmark = pytest.mark.skipif(not TRAINER, reason="trainer is not built")


def run(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    options = {"stdout": subprocess.PIPE, **options}
    words = [str(word) for word in command]
    return subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=60, **options)


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Returns two run folders."""
    folders = [tmp_path / "a-1", tmp_path / "b-1"]
    for folder in folders:
        folder.mkdir()
        (folder / "config.toml").write_text("[train]\nseed = 1\n")
    return folders


def test_module_prints_same_as_command(runs: list[Path]) -> None:
    command = run(TRAINER, "diff", *runs)
    module = run(sys.executable, "-m", "millrace.diff", *runs)
    assert command.returncode == module.returncode == 0, command.stderr + module.stderr
    assert command.stdout == module.stdout
    assert command.stdout.startswith("a-1 (")


def test_reports_missing_package(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    alone = shutil.copy(TRAINER, tmp_path / "bin" / "trainer")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = run(alone, "diff", *runs, env=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert "trainer: error: " in done.stderr
    assert "pip install ./python" in done.stderr
    done = run(alone, "diff", *runs, env={**environment, "PATH": str(tmp_path)})
    assert done.returncode == 1
    assert "apt install python3" in done.stderr


def test_imports_no_file_from_working_folder(runs: list[Path], tmp_path: Path) -> None:
    for name in ("json.py", "argparse.py", "runpy.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')")
    done = run(TRAINER, "diff", *runs, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_accepts_names_that_begin_with_dashes(runs: list[Path], tmp_path: Path) -> None:
    odd = tmp_path / "--json"
    runs[0].rename(odd)
    done = run(TRAINER, "diff", "--", "--json", "b-1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("--json (")


def test_fails_if_output_is_full(runs: list[Path]) -> None:
    with open("/dev/full", "w") as full:
        done = run(TRAINER, "diff", *runs, "--json", stdout=full)
    assert done.returncode == 1
    assert "standard output" in done.stderr


def test_ends_quietly_on_closed_pipe(runs: list[Path]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = run(TRAINER, "diff", *runs, stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


def test_prints_names_that_are_not_utf8(runs: list[Path], tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/x\xff"
    os.rename(runs[0], odd)
    command = [TRAINER.encode(), b"diff", odd, os.fsencode(runs[1]), b"--json"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    done.stdout.decode()
