"""The viewer with handmade JSON in headless Chromium: no errors, no requests, usable by keyboard
alone, readable on a phone in light and dark mode, and fast with ten thousand images."""

import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import browser  # of tests/support, which PYTHONPATH names
import made_views as views
import pytest

pytestmark = pytest.mark.skipif(
    browser.program() is None, reason="no browser: install Debian's package chromium")

PAGES: dict[str, Callable[[], views.Json]] = {
    "run": lambda: views.runs(views.run("one-1", 1)),
    "both": lambda: views.runs(views.run("one-1", 1), views.run("two-1", 2, versus=True)),
    "analysis": views.evaluation,
    "inspection": views.inspection,
    "predictions": views.predictions,
    "study": views.study,
    "many": lambda: views.predictions(10_000, jpeg=None),
}
SECTIONS = {
    "run": ["scores", "losses", "speed", "heads", "errors", "curves", "classes", "confusions",
            "images", "configuration", "environment", "notes"],
    "both": ["comparison", "scores", "losses", "speed", "heads", "run-1", "run-2",
             "configuration", "environment", "notes"],
    "analysis": ["versus", "errors", "curves", "classes", "confusions", "notes"],
    "inspection": ["batches", "figures", "anchors", "classes", "photos"],
    "predictions": ["classes", "photos", "videos"],
    "study": ["seeds", "figures", "differences", "runs"],
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {name: views.write_page(folder / f"{name}.html", make())
            for name, make in PAGES.items()}


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    with browser.Browser() as one:
        yield one


def count(one: browser.Browser, selector: str) -> Any:
    return one.evaluate(f"document.querySelectorAll('{selector}').length")


def text(one: browser.Browser, selector: str) -> Any:
    return one.evaluate(f"document.querySelector('{selector}').textContent")


def choose(one: browser.Browser, field: str, value: str) -> None:
    """Sets a field of the tools as a user does."""
    one.evaluate(f"""(() => {{
      const field = document.querySelector('.tools [name={field}]');
      field.value = field.options ? [...field.options].find(o => o.text.startsWith('{value}')).value
                                  : '{value}';
      field.dispatchEvent(new Event('input', {{ bubbles: true }}));
    }})()""")
    one.evaluate("1")  # the page draws in the next frame


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_opens_without_errors_and_fits(chromium: browser.Browser, pages: dict[str, pathlib.Path],
                                       page: str, width: int, dark: bool) -> None:
    chromium.open(pages[page], width=width, dark=dark)
    assert chromium.evaluate("document.documentElement.scrollWidth") == width
    assert chromium.problems == []
    assert [url for url in chromium.requests if not url.startswith(("file:", "data:"))] == []
    ground = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
    strange = "document.body.innerText.match(/NaN|undefined|Infinity|.object H/)"
    assert chromium.evaluate(strange) is None


@pytest.mark.parametrize("page", SECTIONS)
def test_has_sections(chromium: browser.Browser, pages: dict[str, pathlib.Path],
                      page: str) -> None:
    chromium.open(pages[page])
    found = chromium.evaluate("[...document.querySelectorAll('section')].map(one => one.id)")
    assert found == SECTIONS[page]
    links = chromium.evaluate("[...document.querySelectorAll('nav a')].map(one => one.hash)")
    assert links == [f"#{one}" for one in found]


def test_escapes_text(chromium: browser.Browser, pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["run"])
    assert "</script><b>knife" in text(chromium, "#classes table")
    assert count(chromium, "#classes table b") == 0


def test_gallery_works_by_keyboard(chromium: browser.Browser,
                                   pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["run"])
    title = "document.activeElement.querySelector('b').textContent"
    for _ in range(120):  # Tab reaches the gallery, which is one tab stop
        chromium.press("Tab")
        if chromium.evaluate("document.activeElement.className") == "card":
            break
    assert chromium.evaluate(title) == "000000.jpg"
    chromium.press("ArrowRight")
    assert chromium.evaluate(title) == "000001.jpg"
    chromium.press("Enter")
    view = "document.querySelector('dialog')"
    assert chromium.evaluate(f"{view}.open")
    assert text(chromium, "dialog b") == "000001.jpg"
    chromium.press("ArrowRight")
    assert text(chromium, "dialog b") == "000002.jpg"
    chromium.press("Escape")
    assert not chromium.evaluate(f"{view}.open")
    assert chromium.evaluate(title) == "000002.jpg"
    chromium.press("End", "Enter")
    assert text(chromium, "dialog .soft") == "30 of 30"
    chromium.press("Escape", "Tab")
    assert chromium.evaluate("document.activeElement.className") != "card"
    assert chromium.problems == []


def test_gallery_filters_sorts_and_matches(chromium: browser.Browser,
                                           pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["run"], height=6000)
    shapes = ".photo path.found"
    at_first, missed = count(chromium, shapes), count(chromium, ".photo path.missed")
    choose(chromium, "score", "0.95")
    assert count(chromium, shapes) < at_first
    assert count(chromium, ".photo path.missed") > missed
    assert "missed (recall" in text(chromium, ".count")
    choose(chromium, "score", "0.3")
    choose(chromium, "tag", "error: background")
    assert text(chromium, ".count").startswith("20 of 30")
    choose(chromium, "tag", "all images")
    choose(chromium, "class", "cup")
    assert 0 < count(chromium, ".card") < 30
    choose(chromium, "class", "all classes")
    choose(chromium, "sort", "objects, highest")
    captions = chromium.evaluate(
        "[...document.querySelectorAll('.card small')].map(one => one.textContent)")
    objects = [int(one.rsplit("objects ", 1)[1]) for one in captions]
    assert objects == sorted(objects, reverse=True)
    choose(chromium, "text", "000007")
    assert count(chromium, ".card") == 1
    choose(chromium, "text", "")
    choose(chromium, "show", "both in one")
    assert count(chromium, ".card img") == 30
    assert chromium.problems == []


def test_shapes_are_clipped_to_their_photo(chromium: browser.Browser,
                                           pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["run"], height=6000)
    assert chromium.evaluate("[...document.querySelectorAll('.photo')].every(one => "
                             "getComputedStyle(one).overflow === 'hidden')")
    # A photo keeps its own aspect ratio, whatever its container's.
    ratio = chromium.evaluate("(() => { const box = document.querySelector('.photo')"
                              ".getBoundingClientRect(); return box.width / box.height; })()")
    assert abs(ratio - 640 / 480) < .02


def test_confusion_cell_opens_its_images(chromium: browser.Browser,
                                         pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["run"], height=6000)
    # Background detected as a cup: the generated images have such detections.
    chromium.evaluate("document.querySelectorAll('#confusions .heat tbody tr')[4]"
                      ".querySelectorAll('button')[0].click()")
    shown = count(chromium, ".card")
    assert 0 < shown < 30
    assert "background confused with cup" in text(chromium, ".chip")
    assert chromium.evaluate("document.activeElement.className") == "card"
    chromium.evaluate("document.querySelector('.chip button').click()")
    assert count(chromium, ".card") == 30
    # By keyboard: an arrow key moves to the next cell, Enter opens it.
    chromium.evaluate("document.querySelector('#confusions .heat button').focus()")
    chromium.press("ArrowRight", "ArrowDown")
    assert chromium.evaluate("document.activeElement.title").startswith("bowl as bowl")


def test_charts_work_by_keyboard(chromium: browser.Browser, pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["run"])
    chromium.evaluate("document.querySelector('#losses svg.plot').focus()")
    output = "#losses output"
    chromium.press("End")
    assert text(chromium, output).startswith("step 1000: loss ")
    assert "loss_mask 0.01" in text(chromium, output)
    chromium.press("ArrowLeft")
    assert text(chromium, output).startswith("step 990: ")
    chromium.press("+")
    ticks = ("[...document.querySelectorAll('#losses svg.plot .tick.middle')]"
             ".map(one => one.textContent)")
    assert "800" in chromium.evaluate(ticks) and "200" not in chromium.evaluate(ticks)
    chromium.press("Escape", "Escape")
    assert text(chromium, output) == ""
    assert "200" in chromium.evaluate(ticks)


def test_drag_zooms_and_slider_smooths(chromium: browser.Browser,
                                       pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["run"], height=3000)
    box = chromium.evaluate("(() => { const { x, y, width, height } = document.querySelector("
                            "'#losses svg.plot').getBoundingClientRect();"
                            "return { x, y, width, height }; })()")
    for kind, at, buttons in (("mousePressed", .4, 1), ("mouseMoved", .5, 1),
                              ("mouseReleased", .6, 0)):
        chromium.call("Input.dispatchMouseEvent", type=kind, x=box["x"] + at * box["width"],
                      y=box["y"] + 50, button="left", buttons=buttons, clickCount=1)
    whole = "document.querySelector('#losses figcaption button').hidden"
    assert not chromium.evaluate(whole)
    chromium.evaluate("document.querySelector('#losses figcaption button').click()")
    assert chromium.evaluate(whole)
    path = "document.querySelector('#losses .curve').getAttribute('d')"
    curves = count(chromium, "#losses .curve")
    rough = chromium.evaluate(path)
    choose(chromium, "smoothing", "0.9")
    assert count(chromium, "#losses .curve") == 2 * curves  # the unsmoothed curves stay, but faint
    assert chromium.evaluate(path) == rough
    chromium.evaluate("document.querySelector('#losses [name=logarithmic]').click()")
    ticks = "[...document.querySelectorAll('#losses .tick')].map(one => one.textContent)"
    assert "0.1" in chromium.evaluate(ticks)
    assert chromium.problems == []


def test_tables_sort_by_column(chromium: browser.Browser, pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["run"])
    column = ("[...document.querySelectorAll('#classes tbody tr')].map(row => "
              "Number(row.children[3].textContent))")
    weakest_first = chromium.evaluate(column)
    assert weakest_first == sorted(weakest_first)
    chromium.evaluate("document.querySelectorAll('#classes th button')[3].focus()")
    chromium.press("Enter")
    assert chromium.evaluate(column) == weakest_first[::-1]
    assert chromium.evaluate("document.querySelectorAll('#classes th')[3].ariaSort") == "descending"
    chromium.evaluate("document.querySelectorAll('#classes th button')[7].click()")  # no values
    assert chromium.problems == []


def test_handles_ten_thousand_images(chromium: browser.Browser,
                                     pages: dict[str, pathlib.Path]) -> None:
    began = time.monotonic()
    chromium.open(pages["many"])
    assert text(chromium, ".count").startswith("10000 of 10000")
    assert count(chromium, ".card") < 100
    began = time.monotonic() - began
    chromium.evaluate("document.querySelector('.card').focus()")
    moments = []
    for action in (lambda: choose(chromium, "score", "0.7"),
                   lambda: choose(chromium, "class", "bowl"),
                   lambda: choose(chromium, "sort", "F1, lowest"), lambda: chromium.press("End"),
                   lambda: chromium.evaluate("scrollTo(0, 1e6)")):
        at = time.monotonic()
        action()
        moments.append(time.monotonic() - at)
    assert count(chromium, ".card") < 100
    assert began < 10 and max(moments) < 2, (began, moments)
    assert chromium.problems == []


def test_reports_missing_data(chromium: browser.Browser,
                              tmp_path: pathlib.Path) -> None:
    run = views.run("new-1", 1) | {
        "standing": "training", "metrics": {}, "evaluations": [], "class_scores": {},
        "time_parts": [], "config": [], "facts": [], "scores": None, "log_end": "",
        "no_scores": "no detections yet", "remarks": ["There is no metrics.jsonl yet"]}
    chromium.open(views.write_page(tmp_path / "new.html", views.runs(run)))
    assert chromium.problems == []
    words = text(chromium, "main")
    for sentence in ("no detections yet", "no metrics.jsonl yet", "No evaluation yet",
                     "No losses", "No rates", "No configuration"):
        assert sentence in words


def test_prints(chromium: browser.Browser, pages: dict[str, pathlib.Path]) -> None:
    chromium.open(pages["run"], media="print")
    assert chromium.evaluate("getComputedStyle(document.querySelector('.tools')).display") == "none"


