"""The notebooks run from the first cell to the last, each in its own folder."""

import shutil
from pathlib import Path

import pytest

nbclient = pytest.importorskip(
    "nbclient", reason="no nbclient: `scripts/setup_python notebooks` installs it"
)
nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the files of a checkout that notebooks need, without generated
    files."""
    root = tmp_path_factory.mktemp("checkout")
    (root / "configs").symlink_to(ROOT / "configs")
    shutil.copytree(
        ROOT / "examples" / "notebooks",
        root / "examples" / "notebooks",
        ignore=shutil.ignore_patterns("data", "runs", "venv", "__pycache__"),
    )
    return root / "examples" / "notebooks"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_runs_every_cell(notebook: Path, checkout: Path) -> None:
    cells = nbformat.read(notebook, as_version=4)
    client = nbclient.NotebookClient(
        cells, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(checkout)}}
    )
    client.execute()
    outputs = [out for cell in cells.cells for out in cell.get("outputs", [])]
    assert not [out for out in outputs if out["output_type"] == "error"]
    assert any("image/png" in out.get("data", {}) for out in outputs)
