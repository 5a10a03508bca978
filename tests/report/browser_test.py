"""The page of a report in headless Chromium: no error, no request, usable by keys alone, readable
on a phone, in light and dark. Screenshots go to the folder MILLRACE_SCREENSHOTS, if it is set."""

import json
import os
import pathlib
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "page"))
import browser  # noqa: E402  (in the folder added above)

TRAINER = os.environ.get("MILLRACE_TRAINER", "build/release/bin/trainer")
IMAGES = 14

pytestmark = pytest.mark.skipif(
    browser.program() is None, reason="no browser: install Debian's package chromium")


def make_run(folder: pathlib.Path, data: pathlib.Path, seed: int) -> None:
    """A run's folder as a training leaves it, its detections the annotations moved by chance."""
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


def shown(one: browser.Browser) -> Any:
    return one.evaluate("document.querySelectorAll('.cards li:not([hidden])').length")


def choose(one: browser.Browser, field: str, text: str) -> None:
    """What a person does with a field of the gallery's tools."""
    one.evaluate(f"""(() => {{
      const field = document.querySelector('.tools [name={field}]');
      field.value = field.options ? [...field.options].find(o => o.text.startsWith('{text}')).value
                                  : '{text}';
      field.dispatchEvent(new Event('input', {{ bubbles: true }}));
    }})()""")
    one.evaluate("1")  # the page draws in the next frame


def test_gallery_by_keys_alone(chromium: browser.Browser, pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["one"])
    title = "document.activeElement.querySelector('b').textContent"
    for _ in range(60):  # the tabulator reaches the gallery, and stops there once
        chromium.press("Tab")
        if chromium.evaluate("document.activeElement.className") == "card":
            break
    first = chromium.evaluate(title)
    chromium.press("ArrowRight")
    second = chromium.evaluate(title)
    assert first != second
    chromium.press("Enter")
    view = "document.querySelector('dialog')"
    assert chromium.evaluate(f"{view}.open")
    heading = f"{view}.querySelector('b').textContent"
    assert chromium.evaluate(heading) == second
    chromium.press("ArrowRight")
    third = chromium.evaluate(heading)
    assert third not in (first, second)
    keep_screenshot(chromium, "view", whole=False)
    chromium.press("Escape")
    assert not chromium.evaluate(f"{view}.open")
    assert chromium.evaluate(title) == third
    chromium.press("End", "Enter")
    place = chromium.evaluate(f"{view}.querySelector('.soft').textContent")
    assert place == f"{IMAGES} of {IMAGES}"
    chromium.press("Escape")
    assert not chromium.evaluate(f"{view}.open")
    chromium.press("Tab")
    assert chromium.evaluate("document.activeElement.className") != "card"
    assert chromium.problems == []


def test_gallery_filters_and_sorts(chromium: browser.Browser,
                                   pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["one"])
    assert shown(chromium) == IMAGES
    found = "document.querySelectorAll('.pane path.found').length"
    at_first = chromium.evaluate(found)
    choose(chromium, "score", "0.95")
    high = chromium.evaluate(found)
    assert high < at_first
    missed = "document.querySelectorAll('.pane path.missed').length"
    assert chromium.evaluate(missed) > 0
    choose(chromium, "score", "0")
    assert chromium.evaluate(found) > high
    few = chromium.evaluate(missed)
    choose(chromium, "score", "1")
    assert chromium.evaluate(missed) > few
    choose(chromium, "tag", "error: missed")
    assert 0 < shown(chromium) <= IMAGES
    choose(chromium, "tag", "all pictures")
    choose(chromium, "category", "star")
    assert 0 < shown(chromium) < IMAGES
    choose(chromium, "category", "all classes")
    choose(chromium, "sort", "objects, highest")
    captions = chromium.evaluate(
        "[...document.querySelectorAll('.card small')].map(one => one.innerText)")
    objects = [int(caption.rsplit("objects ", 1)[1]) for caption in captions]
    assert objects == sorted(objects, reverse=True)
    choose(chromium, "show", "both in one")
    assert chromium.evaluate("document.querySelectorAll('.card img').length") == IMAGES
    choose(chromium, "colour", "right and wrong")
    keep_screenshot(chromium, "verdicts")
    assert chromium.problems == []


def test_charts_tell_their_values_to_keys(chromium: browser.Browser,
                                          pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["one"])
    chromium.evaluate("document.querySelector('#losses svg.plot').focus()")
    output = "document.querySelector('#losses output').textContent"
    chromium.press("End")
    assert chromium.evaluate(output) == "step 60: loss 0.05 · loss_classifier 0.03333"
    chromium.press("ArrowLeft")
    assert chromium.evaluate(output).startswith("step 58: loss 0.05172")
    chromium.press("Home")
    assert chromium.evaluate(output).startswith("step 2: loss 1.5")
    chromium.press("Escape")
    assert chromium.evaluate(output) == ""


def test_without_scripts_pictures_and_boxes_are_there(chromium: browser.Browser,
                                                      pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["one"], scripts=False)
    document = chromium.call("DOM.getDocument")["root"]["nodeId"]

    def count(selector: str) -> int:
        found = chromium.call("DOM.querySelectorAll", nodeId=document, selector=selector)
        return len(found["nodeIds"])

    assert count(".card img") == IMAGES
    assert count(".card path.found") > 0 and count(".card path.annotated") > 0
    assert chromium.problems == []


def test_prints(chromium: browser.Browser, pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["one"], media="print")
    assert chromium.evaluate("getComputedStyle(document.querySelector('.tools')).display") == "none"
