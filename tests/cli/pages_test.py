"""The pages of `trainer inspect` and `trainer predict` in headless Chromium: they load no other
files, log nothing, fit a phone's screen, and their galleries work by keyboard."""

import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator

import browser  # tests/support/browser.py, found through PYTHONPATH
import pytest

TRAINER = os.environ.get("MILLRACE_TRAINER", "build/release/bin/trainer")
SMALL = ["--set", "data.short_side=96", "--set", "data.max_side=160",
         "--set", "model.backbone.width=16"]

if browser.program() is None:
    pytest.skip("no Chromium on this machine", allow_module_level=True)


def trainer(*arguments: str | pathlib.Path) -> str:
    command = [TRAINER, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory() as name:
        yield pathlib.Path(name)


@pytest.fixture(scope="module")
def data(folder: pathlib.Path) -> pathlib.Path:
    trainer("sample", "--out", folder / "data", "--train", "8", "--val", "4")
    return folder / "data"


@pytest.fixture(scope="module")
def inspected(folder: pathlib.Path, data: pathlib.Path) -> pathlib.Path:
    trainer("inspect", "configs/maskrcnn.toml", "--set", f"data.root='{data}'", *SMALL,
            "--out", folder / "seen", "--count", "2")
    return folder / "seen" / "index.html"


@pytest.fixture(scope="module")
def predicted(folder: pathlib.Path, data: pathlib.Path) -> pathlib.Path:
    trainer("run", "configs/maskrcnn.toml", "--set", f"data.root='{data}'", *SMALL,
            "--set", "train.max_steps=1", "--set", "callbacks.evaluate.enabled=false",
            "--set", "callbacks.pictures.enabled=false", "--out", folder / "runs")
    trainer("predict", folder / "runs" / "maskrcnn-1", data / "val2017", "--out",
            folder / "found", "--score", "0", "--set", "model.test.score_thresh=0")
    return folder / "found" / "index.html"


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    with browser.Browser() as one:
        yield one


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("which", ["inspected", "predicted"])
def test_loads_nothing_logs_nothing_and_fits(which: str, dark: bool, width: int,
                                             chromium: browser.Browser,
                                             request: pytest.FixtureRequest) -> None:
    page: pathlib.Path = request.getfixturevalue(which)
    chromium.open(page, width=width, dark=dark)
    assert chromium.evaluate("document.documentElement.scrollWidth") <= width
    broken = "[...document.images].filter(image => !image.naturalWidth).length"
    assert chromium.evaluate(broken) == 0
    assert chromium.problems == []
    assert [one for one in chromium.requests if not one.startswith(("file:", "data:"))] == []


def test_inspect_shows_each_image_of_batches(inspected: pathlib.Path,
                                             chromium: browser.Browser) -> None:
    chromium.open(inspected, height=4000)
    cards = "document.querySelectorAll('#batches-gallery .cards > li').length"
    assert chromium.evaluate(cards) == 8
    assert chromium.evaluate("document.querySelectorAll('#batches-gallery svg path').length") > 0
    sections = chromium.evaluate("[...document.querySelectorAll('section')].map(one => one.id)")
    assert sections == ["batches", "figures", "anchors", "classes", "photos", "validation"]


def test_predict_counts_detections(predicted: pathlib.Path,
                                   chromium: browser.Browser) -> None:
    chromium.open(predicted)
    found = json.loads((predicted.parent / "detections.json").read_text())
    tiles = chromium.evaluate("[...document.querySelectorAll('.tile b')].map(one => "
                              "one.textContent)")
    assert tiles[:3] == [str(len(found)), "4", "0"]
    rows = chromium.evaluate("[...document.querySelectorAll('#classes tbody tr')].map(row => "
                             "Number(row.children[1].textContent))")
    assert sum(rows) == len(found)


def test_photo_opens_and_closes_by_keyboard(predicted: pathlib.Path,
                                            chromium: browser.Browser) -> None:
    chromium.open(predicted)
    chromium.evaluate("document.querySelector('#found .card').focus()")
    chromium.press("Enter")
    assert chromium.evaluate("document.querySelector('dialog[open]') !== null")
    chromium.press("ArrowRight", "Escape")
    assert chromium.evaluate("document.querySelector('dialog[open]') === null")
