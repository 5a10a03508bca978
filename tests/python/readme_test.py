"""Runs the lines of python/README.md unchanged, in their own process."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_lines_of_readme_run(tmp_path: Path) -> None:
    text = (ROOT / "python" / "README.md").read_text()
    lines = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    done = subprocess.run(
        [sys.executable, "-c", lines], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert "Average Precision" in done.stdout
    assert "(4, 320, " in done.stdout
