"""Converts recipes of other code bases to Millrace configurations: detectron2's YAML and
MMDetection's Python files, 2.x and 3.x.

    python -m millrace.migrate RECIPE [OVERRIDES] --out mine.toml     # or trainer import-config

The code of a recipe is not run. YAML needs PyYAML: `pip install "millrace[migrate]"`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from millrace.migrate.detectron2 import import_detectron2
from millrace.migrate.errors import RecipeError
from millrace.migrate.mmdetection import import_mmdetection
from millrace.migrate.recipe import read_python_recipe, read_yaml_recipe
from millrace.migrate.translation import Imported, LeftOut, Options

__all__ = ["Imported", "LeftOut", "Options", "RecipeError", "import_config"]


def import_config(
    file: Path, overrides: Sequence[str] = (), options: Options | None = None
) -> Imported:
    """Reads and translates a recipe. `overrides`: KEY VALUE ... as at the end of detectron2's
    command lines, key=value ... as in MMDetection's --cfg-options. The result includes values equal
    to our defaults. Raises RecipeError, naming file and line, for invalid text and for models that
    Millrace does not support; Failure for a file that cannot be read."""
    options = options or Options()
    if file.suffix in (".yaml", ".yml"):
        return import_detectron2(read_yaml_recipe(file, overrides), options)
    if file.suffix == ".py":
        return import_mmdetection(read_python_recipe(file, overrides), options)
    raise RecipeError(
        f"{file} is not a recipe of detectron2 (.yaml) or MMDetection (.py); for other code bases "
        "see the tables of keys in docs/migrating.md"
    )
