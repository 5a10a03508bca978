#!/usr/bin/env python3
"""The HTML pages are made without warnings, searchable when opened from disk, and complete without
a network.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / ".deps/python/bin/python"
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def has_sphinx() -> bool:
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", "import sphinx, myst_parser, furo"],
                                              capture_output=True).returncode == 0


class Html(unittest.TestCase):
    folder: tempfile.TemporaryDirectory[str]
    html: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        out = pathlib.Path(cls.folder.name)
        made = subprocess.run([PYTHON, ROOT / "scripts/docs/make_html.py", out],
                              capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr
        cls.html = out / "html"

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def browse(self, page: str) -> tuple[str, str]:
        """Returns the page after its scripts have run, and the console messages."""
        if not BROWSER:
            self.skipTest("Chromium not found")
        ended = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu",
                                "--enable-logging=stderr", "--virtual-time-budget=10000",
                                "--dump-dom", f"file://{self.html}/{page}"],
                               capture_output=True, text=True, timeout=120)
        console = [line for line in ended.stderr.splitlines() if ":CONSOLE" in line]
        return ended.stdout, "\n".join(console)

    def test_search_finds_page(self) -> None:
        shown, console = self.browse("search.html?q=watchdog")
        self.assertIn('href="docs/callbacks.html', shown)
        self.assertEqual(console, "")

    def test_pages_log_no_error(self) -> None:
        for page in ("index.html", "docs/index.html", "docs/reference/detector-maskrcnn.html"):
            self.assertEqual(self.browse(page)[1], "", page)

    def test_reference_contains_stages_and_options(self) -> None:
        stages = (self.html / "docs/reference/stages.html").read_text()
        for word in ("copy_paste", "min_visible"):
            self.assertIn(word, stages)

    def test_pages_fetch_nothing(self) -> None:
        fetched = re.compile(r'(?:<script[^>]* src|<link[^>]* href|<img[^>]* src)="(https?:|//)')
        for page in self.html.rglob("*.html"):
            self.assertIsNone(fetched.search(page.read_text(encoding="utf-8")), page)


if __name__ == "__main__":
    if not has_sphinx():
        print("Sphinx is not installed; run scripts/setup_python docs")
        sys.exit(5)
    unittest.main()
