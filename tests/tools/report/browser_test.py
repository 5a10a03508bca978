"""Pages of `trainer report` and `trainer coco-eval --html` in headless Chromium: the viewer shows
the program's results without errors. Screenshots are saved to the folder MILLRACE_SCREENSHOTS if it
is set."""

import json
import os
import pathlib
import random
import subprocess
from collections.abc import Iterator
from typing import Any

import browser  # tests/support/browser.py, found through PYTHONPATH
import pytest


TRAINER = os.environ.get("MILLRACE_TRAINER", "build/release/bin/trainer")
IMAGES = 14

pytestmark = pytest.mark.skipif(
    browser.program() is None, reason="no browser: install Debian's package chromium")


def make_run(folder: pathlib.Path, data: pathlib.Path, seed: int) -> None:
    """Makes the folder of a finished run, whose detections are the annotations moved at random."""
    draw = random.Random(seed)
    truth = json.loads((data / "annotations/instances_val2017.json").read_text())
    names = [category["id"] for category in truth["categories"]]
    found = []
    for one in truth["annotations"]:
        if draw.random() < .2:
            continue
        x, y, width, height = one["bbox"]
        found.append({"image_id": one["image_id"], "score": draw.random(),
                      "category_id": draw.choice(names) if draw.random() < .2
                      else one["category_id"],
                      "bbox": [x + draw.gauss(0, 4), y + draw.gauss(0, 4), width, height]})
    (folder / "detections").mkdir(parents=True)
    (folder / "detections/step-000060.json").write_text(json.dumps(found))
    (folder / "config.toml").write_text(
        f"[data]\nroot = '{data}'\nval = 'val2017'\n[train]\nseed = {seed}\n")
    (folder / "record.json").write_text(json.dumps({"starts": [
        {"time": "2026-01-01T00:00:00Z", "ranks": [{"device": "cpu"}],
         "ended": {"time": "2026-01-01T00:01:00Z", "step": 60, "reason": "done"}}]}))
    lines = []
    for step in range(2, 61, 2):
        line: dict[str, Any] = {"step": step, "epoch": step / 60, "time": 1767225600 + step,
                                "loss": 3 / step, "loss_classifier": 2 / step, "lr": .01,
                                "time/images_per_s": 14 + draw.random(), "time/step_s": .3,
                                "time/data_wait_s": .01, "box/accuracy": draw.random()}
        if step % 20 == 0:
            line.update({f"bbox/{name}": step / 100 for name in ("AP", "AP50", "AP75", "APs")})
        lines.append(json.dumps(line))
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    folder = tmp_path_factory.mktemp("runs")
    data = folder / "data"
    subprocess.run([TRAINER, "sample", "--out", data, "--train", "1", "--val", str(IMAGES)],
                   check=True, capture_output=True)
    for name, seed in (("one-1", 1), ("two-1", 2)):
        make_run(folder / name, data, seed)
    made = {"one": folder / "one-1/report.html", "both": folder / "both.html"}
    subprocess.run([TRAINER, "report", folder / "one-1"], check=True, capture_output=True)
    subprocess.run([TRAINER, "report", folder / "one-1", folder / "two-1", "--out", made["both"]],
                   check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    with browser.Browser() as one:
        yield one


def keep_screenshot(one: browser.Browser, name: str, whole: bool = True) -> None:
    folder = os.environ.get("MILLRACE_SCREENSHOTS")
    if folder:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        one.screenshot(pathlib.Path(folder) / f"{name}.png", whole)


@pytest.mark.parametrize("page", ["one", "both"])
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_opens_without_errors_and_fits(chromium: browser.Browser, pages: dict[str, pathlib.Path],
                                       page: str, width: int, dark: bool) -> None:
    chromium.open(pages[page], width=width, dark=dark)
    assert chromium.evaluate("document.documentElement.scrollWidth") == width
    assert chromium.problems == []
    outside = [url for url in chromium.requests if not url.startswith(("file:", "data:"))]
    assert outside == []
    ground = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
    keep_screenshot(chromium, f"{page}-{width}-{'dark' if dark else 'light'}")


def count(one: browser.Browser, selector: str) -> Any:
    return one.evaluate(f"document.querySelectorAll('{selector}').length")


def texts(one: browser.Browser, selector: str) -> Any:
    return one.evaluate(f"[...document.querySelectorAll('{selector}')].map(one => one.textContent)")


def test_matches_coco_eval(chromium: browser.Browser,
                           pages: dict[str, pathlib.Path]) -> None:
    run = pages["one"].parent
    truth = run.parent / "data/annotations/instances_val2017.json"
    said = json.loads(subprocess.run(
        [TRAINER, "coco-eval", "--gt", truth, "--dt", run / "detections/step-000060.json",
         "--iou", "bbox", "--analyze", "--json"], check=True, capture_output=True).stdout)
    chromium.open(pages["one"])
    assert texts(chromium, ".tile b")[0] == f"{100 * said['stats'][0]:.1f} AP"
    cells = texts(chromium, "#confusions .heat tbody button")
    expected = [value for row in said["confusion"]["matrix"] for value in row]
    assert [int(cell or 0) for cell in cells] == expected
    names = texts(chromium, "#classes tbody th")
    weakest = sorted((one for one in said["per_class"] if one["objects"]),
                     key=lambda one: one["stats"]["AP"])
    assert names[:len(weakest)] == [one["name"] for one in weakest]


def test_confusion_cells_open_their_images(chromium: browser.Browser,
                                           pages: dict[str, pathlib.Path]) -> None:
    """Each count is the number of pairs in the shown images, which here are all images."""
    chromium.open(pages["one"], height=8000)
    cells = "#confusions .heat tbody button"
    at = 0
    for at, cell in enumerate(texts(chromium, cells)):
        if not cell:
            continue
        chromium.evaluate(f"document.querySelectorAll('{cells}')[{at}].click()")
        assert 0 < count(chromium, ".card") <= min(int(cell), IMAGES)
        chromium.evaluate("document.querySelector('.chip button').click()")
    assert at > 4
    assert chromium.problems == []


def test_shows_evaluation(chromium: browser.Browser, pages: dict[str, pathlib.Path]) -> None:
    run = pages["one"].parent
    page = run / "evaluation.html"
    subprocess.run(
        [TRAINER, "coco-eval", "--gt", run.parent / "data/annotations/instances_val2017.json",
         "--dt", run / "detections/step-000060.json", "--iou", "bbox", "--bootstrap", "100",
         "--versus", run.parent / "two-1/detections/step-000060.json", "--html", page],
        check=True, capture_output=True)
    chromium.open(page)
    assert chromium.problems == []
    sections = chromium.evaluate("[...document.querySelectorAll('section')].map(one => one.id)")
    assert sections == ["versus", "errors", "curves", "classes", "confusions", "notes"]
    keep_screenshot(chromium, "evaluation")


def test_comparison_has_verdict_and_galleries(chromium: browser.Browser,
                                              pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["both"], height=8000)
    assert "two-1, boxes versus one-1." in texts(chromium, "#comparison .verdict b")[0]
    assert count(chromium, "#comparison tbody tr") >= 2
    # A click on a class of a run opens its images, even if they are collapsed.
    chromium.evaluate("document.querySelector('#run-2 button.link').click()")
    assert count(chromium, "#run-2 details[open] .card") > 0
    assert chromium.problems == []
