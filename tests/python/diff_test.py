"""`trainer diff` on generated runs."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from millrace._command import Failure
from millrace._runs import Run, read_metrics, read_run, read_runs, read_toml
from millrace._toml import value_text
from millrace.diff import (
    DecidingKeys, Difference, Facts, RunsDiff, facts_diff, metrics_diff, weights_diff,
)  # fmt: skip

OPTIONS = DecidingKeys({
    "tables": [
        {"name": "train", "options": [{"name": "output", "decides_results": False},
                                      {"name": "seed", "decides_results": True}]},
        {"name": "callbacks.NAME", "options": [{"name": "type", "decides_results": True},
                                               {"name": "enabled", "decides_results": True}]},
    ],
    "callbacks": [
        {"name": "csv", "decides_results": False,
         "options": [{"name": "every", "decides_results": False}]},
        {"name": "evaluate", "decides_results": True,
         "options": [{"name": "every", "decides_results": True},
                     {"name": "targets", "decides_results": True},
                     {"name": "results", "decides_results": False}]},
    ],
})  # fmt: skip


def log_of(*lines: dict[str, Any]) -> Any:
    return read_metrics("".join(json.dumps(line) + "\n" for line in lines))


def test_compares_metrics_of_same_steps() -> None:
    each = log_of({"step": 1, "loss": 4}, {"step": 2, "loss": 2})
    pairs = log_of({"step": 2, "loss": 3}, {"step": 4, "loss": 1})
    diff = metrics_diff(each, pairs)  # 3 is the mean of 4 and 2
    assert (diff.compared, diff.first) == (0, None)
    longer = log_of({"step": 2, "loss": 3}, {"step": 4, "loss": 1}, {"step": 6, "loss": 7})
    diff = metrics_diff(pairs, longer)
    assert (diff.compared, diff.same_to, diff.first) == (2, 4, None)


def test_reports_total_loss_first() -> None:
    a = log_of({"step": 1, "a": 1, "loss": 4, "loss_box": 1, "time/step_s": 1},
               {"step": 2, "a": 1, "loss": 4, "loss_box": 1}, {"step": 3, "a": 1})  # fmt: skip
    b = log_of({"step": 1, "a": 1, "loss": 4, "loss_box": 1, "time/step_s": 2},
               {"step": 2, "a": 2, "loss": 4.5, "loss_box": 2}, {"step": 3, "a": 1})  # fmt: skip
    diff = metrics_diff(a, b)
    assert diff.same_to == 1
    assert diff.first == (2, "loss", 4, 4.5)


def test_non_finite_values_are_equal() -> None:
    bad, good = log_of({"step": 1, "loss": None}), log_of({"step": 1, "loss": 1})
    assert metrics_diff(bad, bad).first is None
    assert metrics_diff(bad, good).first


def test_counts_invalid_metrics_lines() -> None:
    text = '{"step":1,"loss":4,"name":"x"}\nnot\n[]\n{"step":true}\n{"step":2,"loss":NaN}\n{"st'
    metrics = read_metrics(text)
    assert metrics.broken_lines == [2, 3, 4, 5]
    assert metrics.is_cut
    assert list(metrics.by_name) == ["loss"]


def run_of(ranks: int = 1, toml: str = "[train]\nmicro_batch = 0\n") -> Run:
    """Returns a run that was launched once."""
    made = [{"rank": rank, "host": f"h{ranks}", "device": "cpu", "processor": "p",
             "instructions": "AVX2", "maths_threads": 1} for rank in range(ranks)]  # fmt: skip
    record = {"config_file": "/a.toml", "starts": [{"program": "trainer 0", "ranks": made}]}
    return Run(Path("unused"), "made", read_toml(toml), record)


def diff_of(a: Run, b: Run) -> Facts:
    return facts_diff(a, b, OPTIONS)


def names(differences: list[Difference]) -> list[str]:
    return [one["what"] for one in differences]


def test_rank_count_affects_results_without_micro_batches() -> None:
    assert names(diff_of(run_of(1), run_of(2)).deciding) == ["ranks"]
    cut = "[train]\nmicro_batch = 2\n"
    alike = diff_of(run_of(1, cut), run_of(2, cut))
    assert alike.deciding == []
    assert names(alike.others) == ["ranks", "hosts"]


def test_compares_all_launches() -> None:
    a, b = run_of(), run_of()
    b.record["starts"].append({**b.record["starts"][0], "program": "trainer 1"})
    assert diff_of(a, b).deciding == [
        {"what": "program", "a": "trainer 0", "b": "trainer 0, trainer 1"}
    ]


def test_data_paths_count_only_without_digests() -> None:
    a, b = run_of(1, "[data]\nroot = 'a'\n"), run_of(1, "[data]\nroot = 'b'\n")
    assert names(diff_of(a, b).deciding) == ["data.root"]
    for run in (a, b):
        run.record["starts"][0]["data"] = {"train": {"samples": 3, "digest": "12"}}
    assert diff_of(a, b).deciding == []
    b.record["starts"][0]["data"]["train"]["digest"] = "13"
    assert names(diff_of(a, b).deciding) == ["data of training"]


def test_some_versions_and_variables_affect_results() -> None:
    a, b = run_of(), run_of()
    a.record["starts"][0] |= {"environment": {"MKL_X": "1", "HOME": "/a"}, "versions": {"mpi": "4"}}
    b.record["starts"][0] |= {"versions": {"mpi": "5", "mkl": "2"}}
    diff = diff_of(a, b)
    assert names(diff.deciding) == ["mkl", "MKL_X"]
    assert names(diff.others) == ["mpi", "HOME"]
    assert diff.deciding[1] == {"what": "MKL_X", "a": "1", "b": "nothing"}


@pytest.mark.parametrize("key, decides", [
    ("train.seed", True), ("train.output", False), ("plugin.option", True),
    ("callbacks.evaluate.every", True), ("callbacks.evaluate.results", False),
    ("callbacks.evaluate.targets.bbox/AP", True), ("callbacks.evaluate.enabled", True),
    ("callbacks.csv.enabled", False), ("callbacks.mine.every", False),
    ("callbacks.mine.type", False), ("callbacks.unknown.every", True), ("callbacks.csv", True),
])  # fmt: skip
def test_recognizes_keys_that_affect_results(key: str, decides: bool) -> None:
    assert OPTIONS(key, {"callbacks": {"mine": {"type": "csv"}}}) is decides


def write_run(folder: Path, loss: float = 1.5, toml: str = "") -> Path:
    folder.mkdir(parents=True)
    toml = toml or "[train]\ndeterministic = true\nseed = 1\n"
    (folder / "config.toml").write_text(toml)
    (folder / "metrics.jsonl").write_text(f'{{"step":1,"epoch":0.5,"time":9,"loss":{loss}}}\n')
    return folder


def diff_of_folders(*folders: Path) -> RunsDiff:
    a, b = read_runs(folders)
    return RunsDiff(a, b, OPTIONS)


def test_different_results_are_bug_unless_excused(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b", 2.5)
    assert diff_of_folders(a, b).is_bug()
    assert not diff_of_folders(a, a).is_bug()
    loose = "[train]\ndeterministic = false\nseed = 1\n"
    c, d = write_run(tmp_path / "c", toml=loose), write_run(tmp_path / "d", 2.5, loose)
    assert not diff_of_folders(c, d).is_bug()
    other = write_run(tmp_path / "e", 2.5, "[train]\ndeterministic = true\nseed = 2\n")
    diff = diff_of_folders(a, other).to_json()
    assert names(diff["deciding"]) == ["train.seed"]
    assert not diff["is_bug"]
    assert diff["metrics"]["first"] == {"step": 1, "name": "loss", "a": 1.5, "b": 2.5}


def test_compares_weights_at_newest_common_step(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b")
    for run, step, weights in [(a, 1, b"x"), (a, 2, b"y"), (b, 1, b"x"), (b, 2, b"z"), (b, 3, b"")]:
        folder = run / "checkpoints" / f"step-{step:06}"
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(weights)
    found = weights_diff(read_run(a), read_run(b))
    assert found
    assert found["step"] == 2
    assert found["a"] != found["b"]
    assert len(found["a"]) == 64
    assert weights_diff(read_run(a), run_of()) is None


def test_distinguishes_runs_by_paths(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / one / "runs" / "exp-1") for one in ("x", "y")]
    assert [run.name for run in read_runs(folders)] == ["x/runs/exp-1", "y/runs/exp-1"]


def test_rejects_folder_without_run(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(Failure, match=str(folder)):
            read_run(folder)


def test_damaged_files_become_remarks(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a")
    (run / "config.toml").write_text("[")
    (run / "record.json").write_text("{")
    read = read_run(run)
    assert len(read.remarks) == 2
    assert (read.config, read.record) == ({}, None)
    assert read.metrics.last_step == 1


@pytest.mark.parametrize("text", ["true", "-3", "1e-05", "1e+16", "0.1", "1.0", "inf", '"a\\"\\n"',
                                  "[1, 2.5]", '{ a = 1, "b c" = "x" }', "{}", "[]"])  # fmt: skip
def test_formats_values_like_program(text: str) -> None:
    assert value_text(read_toml(f"x = {text}")["x"]) == text


def test_excludes_time_between_launches(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a")
    times = ("1970-01-01T00:00:10Z", "1970-01-01T00:10:00Z")
    starts: list[dict[str, Any]] = [{"time": time} for time in times]
    (run / "record.json").write_text(json.dumps({"starts": starts}))
    lines = [{"step": 1, "time": 40, "loss": 1}, {"step": 2, "time": 605, "loss": 1}]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_run(run).trained_seconds() == 35
    starts[0]["ended"] = {"time": "1970-01-01T00:01:00Z"}
    (run / "record.json").write_text(json.dumps({"starts": starts}))
    assert read_run(run).trained_seconds() == 55
    assert math.isclose(read_run(write_run(tmp_path / "b")).trained_seconds(), 0)
