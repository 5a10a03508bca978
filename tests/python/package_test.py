"""The package as a whole."""

import subprocess
import sys
from pathlib import Path

import millrace

ROOT = Path(__file__).resolve().parents[2]


def test_types_are_valid() -> None:
    package = Path(millrace.__file__).parent
    config = ROOT / "python" / "pyproject.toml"
    options = [f"--config-file={config}", "--cache-dir=/dev/null"]
    subprocess.run([sys.executable, "-m", "mypy", *options, str(package)], check=True)
