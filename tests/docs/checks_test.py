#!/usr/bin/env python3
"""The snippet check reports errors in pages with their locations, and the committed reference
matches the program.

usage: checks_test.py TRAINER
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TRAINER = sys.argv.pop(1)


class Checks(unittest.TestCase):
    def check(self, *pages: str, index: str = "") -> str:
        """Returns the report for docs/0.md, docs/1.md ... and docs/index.md, if `index` is not
        empty."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            subprocess.run(["git", "init", "-q", folder], check=True)
            (root / "docs").mkdir()
            for number, page in enumerate(pages):
                (root / f"docs/{number}.md").write_text(f"# Page\n\n{page}")
            if index:
                (root / "docs/index.md").write_text(index)
            (root / "configs").symlink_to(ROOT / "configs")
            (root / "Makefile").write_text("run:\n")
            check = ROOT / "scripts/docs/check_snippets.py"
            ended = subprocess.run([sys.executable, check, TRAINER, folder], capture_output=True,
                                   text=True)
            self.assertEqual(ended.returncode, int("docs/" in ended.stdout))
            return ended.stdout

    def test_accepts_correct_pages(self) -> None:
        self.assertIn("1 pages", self.check(
            "See `data.flip`, `[callbacks.evaluate]`, `rpn.nms_thresh`, `make run` and\n"
            "`model.safetensors`.\n\n"
            "```toml\n[data]\nflip = 0.25\n```\n\n"
            "    trainer run configs/maskrcnn.toml --set data.flip=0.1 --resume | less --quit\n\n"
            "<!-- check: no: a file of another program -->\n```toml\nunknown = 1\n```\n"))

    def test_reports_error_locations(self) -> None:
        wrong = (
            ("```toml\n[data]\nflop = 0.25\n```\n", 3, "'flop'"),
            ("```toml\nflip = \n```\n", 3, "Invalid value"),
            ("```toml\n[data]\nflip = 2.0\n```\n", 3, "flip"),
            ("<!-- check: stages -->\n```toml\n[[data.stages]]\ntype = \"blurr\"\n```\n", 4,
             "blurr"),
            ("    trainer runn configs/maskrcnn.toml\n", 3, "'runn'"),
            ("```sh\ntrainer run a.toml \\\n  --sett a=1\n```\n", 4,
             "trainer run: unknown option --sett"),
            ("    mpirun -np 2 bin/trainer eval a.toml --set=data.flop=1\n", 3,
             "--set data.flop"),
            ("```python\nfor batch in flow\n```\n", 3, "expected ':'"),
            ("```sh\nfor name in a b; do echo $name\n```\n", 3, "syntax error"),
            ("Try `trainer bench datflow a.toml --jsn`.\n", 3, "--jsn"),
            ("Set `data.flop`.\n", 3, "data.flop"),
            ("Set `rpn.nms_threshold = 0.5`.\n", 3, "rpn.nms_threshold"),
            ("See `[callbacks.evaluat]`.\n", 3, "[callbacks.evaluat]"),
            ("Type `make runs`.\n", 3, "'runs'"),
            ("    trainer run configs/absent.toml\n", 3, "configs/absent.toml"),
        )
        report = self.check(*(text for text, _, _ in wrong)).splitlines()
        for number, (text, line, wanted) in enumerate(wrong):
            with self.subTest(text):
                lines = [one for one in report if one.startswith(f"docs/{number}.md:")]
                self.assertEqual(len(lines), 1, lines)
                self.assertTrue(lines[0].startswith(f"docs/{number}.md:{line}: "), lines[0])
                self.assertIn(wanted, lines[0])

    def test_reports_page_missing_in_index(self) -> None:
        report = self.check("A page.\n", "Another.\n", index="See [a page](0.md).\n")
        self.assertRegex(report, r"\Adocs/1\.md:1: [^\n]*docs/index\.md[^\n]*\n\Z")


class Reference(unittest.TestCase):
    def test_committed_reference_matches_program(self) -> None:
        made = subprocess.run([sys.executable, ROOT / "scripts/docs/reference.py", TRAINER],
                              check=True, capture_output=True, text=True)
        committed = (ROOT / "schema/reference.json").read_text(encoding="utf-8")
        self.assertTrue(committed == made.stdout,
                        "schema/reference.json differs from this program; run `make schema`")


if __name__ == "__main__":
    unittest.main()
