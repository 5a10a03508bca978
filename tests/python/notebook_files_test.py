"""The notebooks as files: no outputs, no local paths, text between the cells."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def test_readme_names_five_notebooks() -> None:
    readme = (ROOT / "examples" / "notebooks" / "README.md").read_text()
    assert len(NOTEBOOKS) == 5
    assert all(f"({notebook.name})" in readme for notebook in NOTEBOOKS)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_cells_have_no_output(notebook: Path) -> None:
    text = notebook.read_text()
    cells = json.loads(text)["cells"]
    assert cells[0]["cell_type"] == "markdown" and cells[0]["source"][0].startswith("# ")
    assert not re.search(r'["\' (]/(home|tmp|root|work|Users)/', text)
    for cell in cells:
        source = "".join(cell["source"])
        assert source.strip()
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            compile(source, notebook.name, "exec")
    links = re.findall(r"\]\(([^)#:]+)", "".join("".join(one["source"]) for one in cells))
    assert all((notebook.parent / link).exists() for link in links)
