"""trainer import-config: output, checks, and messages if something is missing."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import TRAINER

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
RECIPES = HERE / "recipes"
CONFIGS = HERE.parents[1] / "configs" / "coco"
RECORDED = json.loads((HERE / "recorded" / "import_config.json").read_text())
FASTER = "detectron2/faster_rcnn_R50_FPN_1x.yaml"
RETINA = "mmdetection2/retinanet.py"

pytestmark = pytest.mark.skipif(not TRAINER, reason="trainer is not built")


def run(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a program with this Python as python3, in the recipes' folder."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    options = {"cwd": RECIPES, "env": {**os.environ, "PATH": path}} | options
    command = [str(word) for word in words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def imported(*words: str | Path) -> subprocess.CompletedProcess[str]:
    done = run(TRAINER, "import-config", *words)
    assert done.returncode == 0, done.stderr
    return done


def error(done: subprocess.CompletedProcess[str], exit_code: int) -> str:
    assert (done.returncode, done.stdout) == (exit_code, ""), done.stderr
    assert done.stderr.startswith("trainer: error: ")
    assert "Traceback" not in done.stderr
    return done.stderr.removeprefix("trainer: error: ").rstrip()


def resolved(file: Path) -> dict[str, Any]:
    """Returns the resolved configuration, by "table.key"."""
    done = run(TRAINER, "config", file)
    assert done.returncode == 0, done.stderr

    def walk(table: dict[str, Any], above: str) -> Iterator[tuple[str, Any]]:
        for key, value in table.items():
            if isinstance(value, dict):
                yield from walk(value, f"{above}{key}.")
            else:
                yield above + key, value

    return dict(walk(tomllib.loads(done.stdout), ""))


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: " ".join(case["arguments"])[:60])
def test_output_matches_recorded(case: dict[str, list[str]]) -> None:
    """The expected output was recorded from version 0.2, which was written in C++."""
    done = imported(*case["arguments"])
    assert done.stdout.splitlines() == case["stdout"]
    assert done.stderr.splitlines() == case["stderr"]


def test_module_prints_same_as_command() -> None:
    command = imported(RETINA, "data.samples_per_gpu=2", "--gpus", "4", "lr_config.step=[6, 8]")
    module = run(sys.executable, "-m", "millrace.migrate", *command.args[2:])
    assert (module.returncode, module.stdout) == (0, command.stdout), module.stderr
    assert module.stderr == command.stderr


@pytest.mark.parametrize(
    "ours", [file for file in sorted(CONFIGS.glob("*.toml"))
             if (RECIPES / "detectron2" / f"{file.stem}.yaml").exists()],
    ids=lambda file: file.stem,
)  # fmt: skip
def test_detectron2_recipes_match_configs(ours: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.toml"
    imported(f"detectron2/{ours.stem}.yaml", "--gpus", "8", "--out", out)
    wanted, given = resolved(ours), resolved(out)
    root = given.pop("data.root")
    assert root.endswith("datasets/coco")  # detectron2 has its own data set folder
    del wanted["data.root"]
    for key in ("train.epochs", "schedule.milestones"):  # our values have two decimals
        assert given.pop(key) == pytest.approx(wanted.pop(key), abs=0.006)
    assert given == wanted


def test_compares_every_recipe_in_configs() -> None:
    theirs = {file.stem for file in (RECIPES / "detectron2").glob("*.yaml")}
    assert len(theirs & {file.stem for file in CONFIGS.glob("*.toml")}) == 13


def test_names_origins_and_omits_defaults() -> None:
    done = imported(FASTER, "--gpus", "8")
    assert done.stdout.startswith("# faster_rcnn_R50_FPN_1x.yaml, a recipe of detectron2")
    assert re.search(r'type = "fasterrcnn" +# \S+1x.yaml:5 MODEL.MASK_ON\n', done.stdout)
    assert "momentum" not in done.stdout
    assert "[model.rpn]" not in done.stdout


def test_applies_overrides(tmp_path: Path) -> None:
    out = tmp_path / "out.toml"
    imported(FASTER, "--out", out, "SOLVER.BASE_LR", "0.005", "SEED", "7", "INPUT.CROP.ENABLED",
             "True", "INPUT.CROP.SIZE", "[0.6, 0.9]", "DATASETS.TRAIN", "('coco_2014_train',)",
             "--images", "82081")  # fmt: skip
    values = resolved(out)
    assert values["optimizer.lr"] == 0.005
    assert values["train.seed"] == 7
    assert values["data.train"] == "train2014"
    assert values["data.stages"][2]["size"] == [0.9, 0.6]


def test_reports_invalid_value_with_origin() -> None:
    message = error(run(TRAINER, "import-config", RETINA, "optimizer.lr=-1"), 2)
    assert message.startswith("command line optimizer.lr: lr = -1 ")


def test_reports_error_with_file_and_line(tmp_path: Path) -> None:
    recipe = tmp_path / "wrong.yaml"
    recipe.write_text("MODEL:\n  META_ARCHITECTURE: GeneralizedRCNN\n  KEYPOINT_ON: True\n")
    message = error(run(TRAINER, "import-config", recipe), 2)
    assert message.startswith(f"{recipe}:3: MODEL.KEYPOINT_ON = True")
    assert "none.yaml" in error(run(TRAINER, "import-config", "none.yaml"), 1)
    assert "README.md" in error(run(TRAINER, "import-config", "README.md"), 2)
    assert "--gpus" in error(run(TRAINER, "import-config", RETINA, "--gpus", "0"), 2)


def test_keeps_existing_file(tmp_path: Path) -> None:
    kept = tmp_path / "kept.toml"
    kept.write_text("mine")
    assert "kept.toml" in error(run(TRAINER, "import-config", RETINA, "--out", kept), 2)
    assert kept.read_text() == "mine"


def test_reports_unwritable_folder(tmp_path: Path) -> None:
    out = tmp_path / "none" / "out.toml"
    assert error(run(TRAINER, "import-config", RETINA, "--out", out), 1).startswith(f"{out}: ")


def test_escapes_recipe_text(tmp_path: Path) -> None:
    """Line breaks and control characters in a recipe stay within their value and comment."""
    recipe = tmp_path / "odd.yaml"
    base = RECIPES / FASTER
    recipe.write_text(
        f"_BASE_: {base}\nMODEL:\n  WEIGHTS: \"https://x/y\\n[train]\\nseed = 3\\n\\e[2J.pkl\"\n"
        'OUTPUT_DIR: "a\\e[2J\\nb"\nMINE: "\\e[2J"\n'
    )
    done = imported(recipe)
    assert "\x1b" not in done.stdout + done.stderr
    values = tomllib.loads(done.stdout)
    assert "seed" not in values.get("train", {})
    assert values["train"]["output"] == "a\x1b[2J\nb"


def test_imports_no_module_beside_recipe(tmp_path: Path) -> None:
    for name in ("yaml", "ast", "runpy", "millrace"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    shutil.copytree(RECIPES / "detectron2", tmp_path / "detectron2")
    done = run(TRAINER, "import-config", FASTER, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_reports_missing_pyyaml(tmp_path: Path) -> None:
    code = "import runpy, sys\nsys.modules['yaml'] = None\n" \
           "runpy.run_module('millrace.migrate', run_name='__main__', alter_sys=True)"  # fmt: skip
    message = error(run(sys.executable, "-c", code, FASTER), 2)
    assert 'pip install "millrace[migrate]"' in message
    done = run(sys.executable, "-c", code, RETINA)
    assert done.returncode == 0, done.stderr


def test_reports_missing_trainer() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "MILLRACE_TRAINER"}
    environment["PATH"] = "/nowhere"
    done = run(sys.executable, "-m", "millrace.migrate", RETINA, env=environment)
    assert "trainer" in error(done, 1)
