"""Variants, and differences between plans."""

import copy
import json
from pathlib import Path

import pytest

from millrace._command import WrongUse
from millrace.study.plan import Plan, Study, Varied, read_study, read_varied

LR = Varied("optimizer.lr", ["0.01", "0.02"])


def plan_with(*vary: Varied, seeds: int = 2) -> Plan:
    configuration = {"optimizer.lr": "0.01", "train.epochs": "12"}
    return Plan("/a/exp.toml", [], list(vary), seeds, 2, configuration)


def test_splits_values_at_outer_commas() -> None:
    varied = read_varied("""data.size=[640, 800],'a,b', {x = 1, y = 2},"c,\"""")
    assert varied == Varied("data.size", ["[640, 800]", "'a,b'", "{x = 1, y = 2}", '"c,"'])


@pytest.mark.parametrize("text", ["optimizer.lr", "=1,2", "optimizer.lr=0.1", "optimizer.lr=0.1,",
                                  "optimizer.lr=0.1,0.2,0.1"])  # fmt: skip
def test_rejects_invalid_values_and_names_them(text: str) -> None:
    with pytest.raises(WrongUse, match=f"^--vary {text}: "):
        read_varied(text)


def test_variants_are_cross_product() -> None:
    variants = plan_with(Varied("a", ["1", "2"]), Varied("b", ["x", "y", "z"])).variants()
    assert len(variants) == 6
    assert [one.name for one in variants[:2]] == ["a=1, b=x", "a=1, b=y"]
    assert variants[5].settings == ["a=2", "b=z"]
    assert [one.name for one in plan_with().variants()] == ["exp"]


def test_reports_keys_that_differ() -> None:
    plan = plan_with(LR)
    assert plan.differences(plan) == []
    other = copy.deepcopy(plan)
    other.configuration["train.epochs"] = "24"
    assert plan.differences(other) == ["train.epochs is 12 there and 24 here"]
    values = plan_with(Varied("optimizer.lr", ["0.01", "0.03"]))
    assert plan.differences(values) == [
        "--vary optimizer.lr is 0.01,0.02 there and 0.01,0.03 here"
    ]
    assert plan.differences(plan_with()) == [
        "--vary optimizer.lr is 0.01,0.02 there and not varied here"
    ]
    other = copy.deepcopy(plan)
    other.config_file = "/a/other.toml"
    assert len(plan.differences(other)) == 1
    other.config_file, other.maths_threads = "/moved/exp.toml", 1
    assert plan.differences(other) == []
    assert plan.differences(plan_with(LR, seeds=1)) == ["--seeds is 2 there and 1 here"]
    order = plan_with(LR, Varied("a", ["1", "2"]))
    assert len(order.differences(plan_with(*reversed(order.vary)))) == 1


def test_resumes_with_more_seeds() -> None:
    plan = plan_with(LR)
    study = Study(Path("unused"), plan)
    assert len(study.runs) == 4
    study.runs[1].state = "done"
    more = plan_with(LR, seeds=3)
    more.maths_threads = 7
    assert plan.differences(more) == []
    longer = study.goes_on(more)
    assert len(longer.runs) == 6
    assert longer.runs[1].state == "done"
    assert longer.runs[5].folder == "optimizer.lr=0.02-seed-3"
    assert longer.plan.maths_threads == 2


def test_folders_have_unique_plain_names() -> None:
    plan = plan_with(Varied("data.classes", ['["a/b"]', '["a:b"]']), seeds=1)
    folders = [run.folder for run in Study(Path("unused"), plan).runs]
    assert folders == ["variant-1-seed-1", "variant-2-seed-1"]
    plan = plan_with(Varied("a", ["1", "2"]), Varied("b", ["''", "-1"]), seeds=1)
    folders = [run.folder for run in Study(Path("unused"), plan).runs]
    assert folders[:2] == ["a=1-b=--seed-1", "a=1-b=-1-seed-1"]
    assert [run.folder for run in Study(Path("unused"), plan_with()).runs] == ["seed-1", "seed-2"]


def test_reads_written_study(tmp_path: Path) -> None:
    assert read_study(tmp_path) is None
    study = Study(tmp_path, plan_with(LR))
    study.runs[0].state, study.runs[0].why = "failed", "signal 9 (Killed)"
    study.write({"images": 4})
    read = read_study(tmp_path)
    assert read
    assert read.runs == study.runs
    assert read.plan == study.plan
    assert json.loads((tmp_path / "study.json").read_text())["result"] == {"images": 4}
    assert [file.name for file in tmp_path.iterdir()] == ["study.json"]


@pytest.mark.parametrize("path, value", [(["format"], 2), (["plan"], {}), (["runs"], []),
                                         (["runs", 0, "state"], "lost"),
                                         (["runs", 0, "seed"], 7)])  # fmt: skip
def test_rejects_damaged_study(tmp_path: Path, path: list[str | int], value: object) -> None:
    Study(tmp_path, plan_with(LR)).write()
    file = tmp_path / "study.json"
    saved = at = json.loads(file.read_text())
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    file.write_text(json.dumps(saved))
    with pytest.raises(WrongUse, match=r"study\.json"):
        read_study(tmp_path)
    file.write_text("{")
    with pytest.raises(WrongUse, match="damaged"):
        read_study(tmp_path)
