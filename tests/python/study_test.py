"""Studies: same results after kills, invalid command lines, and failed runs."""

import fcntl
import json
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import TRAINER

pytestmark = pytest.mark.skipif(not TRAINER, reason="trainer is not built")
ROOT = Path(__file__).resolve().parents[2]
TWO_BY_TWO = ["--seeds", "2", "--vary", "optimizer.lr=0.01,0.05"]
Done = subprocess.CompletedProcess[str]


def trainer(*words: str | Path) -> Done:
    command = [TRAINER, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def successful(done: Done) -> Done:
    assert done.returncode == 0, done.stderr
    return done


def result_of(done: Done) -> Any:
    """Returns the result without folders and times."""
    made = json.loads(done.stdout)
    for variant in made["variants"]:
        del variant["seconds"], variant["folders"]
    return made


def wait_until(reached: Callable[[], bool]) -> bool:
    for _ in range(6000):
        if reached():
            return True
        time.sleep(0.01)
    return False


def is_free(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


class Studies:
    """Runs studies with one small configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        successful(trainer("sample", "--out", self.data, "--train", "8", "--val", "4"))
        self.config = folder / "exp.toml"
        self.config.write_text(f"""
base = '{ROOT}/configs/maskrcnn.toml'
[data]
root = '{self.data}'
short_side = 64
max_side = 96
[model]
backbone.width = 16
[train]
max_steps = 5
threads = 1
[schedule]
warmup = '2 steps'
[callbacks.checkpoint]
every = '1 steps'
[callbacks.pictures]
enabled = false
""")

    def words(self, out: str, more: Sequence[str]) -> list[str | Path]:
        return ["study", self.config, "--out", self.folder / out, "--json", *more]

    def run(self, out: str, more: Sequence[str]) -> Done:
        return trainer(*self.words(out, more))

    def stopped(self, number: int, reached: str, out: str, more: Sequence[str]) -> Done:
        """Runs until a run of the study has a checkpoint, then sends one signal."""
        command = [TRAINER, *map(str, self.words(out, more))]
        latest = self.folder / out / reached / "exp-1" / "checkpoints" / "latest"
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            assert wait_until(latest.exists)
            child.send_signal(number)
            texts = child.communicate(timeout=300)
        return Done(command, child.returncode, *texts)

    def done(self, out: str) -> int:
        file = self.folder / out / "study.json"
        runs = json.loads(file.read_text())["runs"] if file.exists() else []
        return sum(run["state"] == "done" for run in runs)


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Studies:
    return Studies(tmp_path_factory.mktemp("studies"))


def test_returns_same_result_after_kills(studies: Studies) -> None:
    whole = successful(studies.run("whole", [*TWO_BY_TWO, "--jobs", "2"]))
    expected = result_of(whole)
    assert (expected["done"], expected["maths_threads"]) == (4, 1)
    assert [one["name"] for one in expected["variants"]] == [
        "optimizer.lr=0.01", "optimizer.lr=0.05",
    ]  # fmt: skip
    assert expected["variants"][1]["seeds"] == [1, 2]
    assert [one["figure"] for one in expected["differences"]] == ["bbox/AP", "segm/AP"]
    assert "4 of 4 done" in whole.stderr
    saved = json.loads((studies.folder / "whole" / "study.json").read_text())
    assert saved["result"] == json.loads(whole.stdout)

    killed = studies.stopped(signal.SIGKILL, "optimizer.lr=0.05-seed-1", "killed", TWO_BY_TWO)
    assert killed.returncode == -signal.SIGKILL
    own = studies.folder / "killed" / "optimizer.lr=0.05-seed-1" / "exp-1"
    assert wait_until(lambda: is_free(own / "lock")), "the run outlives its study"
    assert 1 <= studies.done("killed") < 4

    told = studies.stopped(signal.SIGTERM, "optimizer.lr=0.01-seed-2", "killed", TWO_BY_TWO)
    assert told.returncode == 3, told.stderr
    assert "same command" in told.stderr
    assert told.stdout == ""
    assert 2 <= studies.done("killed") < 4

    assert result_of(successful(studies.run("killed", TWO_BY_TWO))) == expected
    outputs = [studies.folder / "killed" / run / "output.txt"
               for run in ("optimizer.lr=0.05-seed-1", "optimizer.lr=0.01-seed-2")]  # fmt: skip
    assert any("resuming after step " in file.read_text() for file in outputs)
    assert not any((file.parent / "exp-2").exists() for file in outputs)

    # Finished runs are not repeated, and a folder without options is only shown.
    written = (own / "record.json").stat().st_mtime_ns
    assert result_of(successful(studies.run("killed", TWO_BY_TWO))) == expected
    folder = studies.folder / "killed"
    assert result_of(successful(trainer("study", folder, "--json"))) == expected
    assert (own / "record.json").stat().st_mtime_ns == written
    shown = successful(trainer("study", folder)).stdout.splitlines()
    assert shown[0] == "exp: 4 of 4 runs done; 4 images, 1 maths thread"
    assert "optimizer.lr=0.05 against optimizer.lr=0.01" in shown

    # A different plan is rejected, whatever differs.
    for more, key in [
        (["--seeds", "2", "--vary", "optimizer.lr=0.01,0.07"], "--vary optimizer.lr"),
        ([*TWO_BY_TWO, "--set", "train.max_steps=6"], "train.max_steps"),
        (["--seeds", "1", "--vary", "optimizer.lr=0.01,0.05"], "--seeds"),
    ]:
        refused = studies.run("killed", more)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"another study: {key} is " in refused.stderr


def test_one_seed_agrees_with_coco_eval(studies: Studies) -> None:
    more = ["--seeds", "1", "--vary", "optimizer.lr=0.05,0.001"]
    result = json.loads(successful(studies.run("one", more)).stdout)
    dt, other = (Path(variant["folders"][0]) / "detections" / "step-000005.json"
                 for variant in reversed(result["variants"]))  # fmt: skip
    truth = studies.data / "annotations" / "instances_val2017.json"
    assert len(result["differences"]) == 2
    for difference in result["differences"]:
        iou = difference["figure"].removesuffix("/AP")
        command = ("coco-eval", "--gt", truth, "--dt", dt, "--versus", other, "--iou", iou)
        versus = json.loads(successful(trainer(*command, "--json")).stdout)["versus"]
        ap = versus["difference"]["AP"]
        assert difference["difference"] == pytest.approx(ap["value"], abs=1e-15)
        assert difference["low"] == pytest.approx(ap["low"], abs=1e-15)
        assert difference["high"] == pytest.approx(ap["high"], abs=1e-15)
        assert difference["p"] == versus["p"]
        assert difference["real"] is None


def test_uses_only_evaluated_images(studies: Studies) -> None:
    part = ["--set", 'data.classes=["star", "ring"]', "--set", "callbacks.evaluate.images=3"]
    result = json.loads(successful(studies.run("part", ["--seeds", "1", *part])).stdout)
    assert result["images"] == 3
    assert result["left_out"] == []
    run = Path(result["variants"][0]["folders"][0])
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    found = {name: figure["mean"] for name, figure in result["variants"][0]["figures"].items()}
    assert found["bbox/AP"] == pytest.approx(last["bbox/AP"], abs=1e-12)
    assert found["segm/AP"] == pytest.approx(last["segm/AP"], abs=1e-12)


def test_continues_after_failed_run(studies: Studies) -> None:
    more = ["--seeds", "1", "--vary", "model.weights='','none.npz'"]
    failed = studies.run("failing", more)
    assert failed.returncode == 1
    title = "model.weights='none.npz', seed 1"
    assert f"{title}: exit code 2: " in failed.stderr
    assert f"trainer: error: 1 of 2 runs failed: {title} (" in failed.stderr
    assert "output.txt" in failed.stderr
    result = json.loads(failed.stdout)
    assert (result["failed"], result["done"]) == (1, 1)
    assert "none.npz" in result["left_out"][0]
    assert studies.done("failing") == 1


@pytest.mark.parametrize("more, part", [
    ([], "--seeds is required"),
    (["--seeds", "2", "--vary", "optimizer.lr=0.1"], "--vary optimizer.lr=0.1"),
    (["--seeds", "2", "--vary", "optimizer.rl=0.1,0.2"], "optimizer.rl"),
    (["--seeds", "2", "--vary", "optimizer.lr=0.02,0.020"], "optimizer.lr=0.020"),
    (["--seeds", "2", "--vary", "optimizer.lr=1,2", "--vary", "optimizer.lr=3,4"], "varied twice"),
    (["--seeds", "2", "--vary", "train.seed=1,2"], "train.seed"),
    (["--seeds", "2", "--set", "train.seed=1"], "train.seed"),
    (["--seeds", "0"], "--seeds"),
    (["--seeds", "2.5"], "--seeds"),
    (["--seeds", "2", "--jobs", "0"], "--jobs"),
])  # fmt: skip
def test_rejects_invalid_command_line(
    studies: Studies, more: list[str], part: str
) -> None:
    refused = studies.run("none", more)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "trainer: error: " in refused.stderr
    assert part in refused.stderr
    assert not (studies.folder / "none").exists()


def test_rejects_folder_without_study(studies: Studies) -> None:
    for more, part in [((), "study.json"), (("--seeds", "2"), "is a folder")]:
        refused = trainer("study", studies.data, *more)
        assert refused.returncode == 2
        assert part in refused.stderr


def test_rejects_study_in_use(studies: Studies, tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = ["study", studies.config, "--out", tmp_path, "--seeds", "1"]
        refused = trainer(*words)
    assert refused.returncode == 1
    assert str(tmp_path / "lock") in refused.stderr
