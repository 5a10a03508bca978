#!/usr/bin/env python3
"""Tests the output of `trainer completion` and `trainer man` in shells and man page formatters.

usage: shells_test.py TRAINER
"""

from __future__ import annotations

import collections.abc
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

TRAINER = ""


def trainer(*words: str) -> str:
    return subprocess.run([TRAINER, *words], check=True, capture_output=True, text=True).stdout


class Shells(unittest.TestCase):
    """All shells must offer the same completions: CASES has command lines, each with the words that
    must and must not be offered."""

    CASES: tuple[tuple[str, set[str], set[str]], ...] = (
        ("trainer ru", {"run"}, {"eval"}),
        ("trainer ", {"run", "bench", "coco-eval", "completion"}, {"dataflow"}),
        ("trainer bench ", {"dataflow", "eval", "model"}, {"run"}),
        ("trainer bench eval --ro", {"--rounds"}, {"--replay"}),
        ("trainer run --re", {"--resume", "--replay"}, {"--rounds"}),
        ("trainer --quiet run --verif", {"--verify-determinism"}, set()),
        ("trainer run configs/ma", {"configs/maskrcnn.toml"}, {"configs/fasterrcnn.toml"}),
        ("trainer completion ", {"bash", "zsh", "fish"}, {"run"}),
        ("trainer coco-eval --iou ", {"bbox", "segm", "keypoints"}, {"--gt"}),
        ("trainer run --set optimizer.ty", {"optimizer.type="}, {"optimizer.lr="}),
        ("trainer run --set optimizer.type=s", {"optimizer.type=sgd"}, {"optimizer.type=adamw"}),
        ("trainer run --set model.rpn.nms", {"model.rpn.nms_thresh="}, set()),
        ("trainer run --set callbacks.evaluate.ev", {"callbacks.evaluate.every="}, set()),
        ("trainer run configs/maskrcnn.toml --out mod", {"models"}, {"Makefile"}),
    )

    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self) -> None:
        self.folder.cleanup()

    def script(self, shell: str) -> str:
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed")
        path = pathlib.Path(self.folder.name) / f"trainer.{shell}"
        path.write_text(trainer("completion", shell), encoding="utf-8")
        return str(path)

    def check(self, offered_for: dict[str, set[str]]) -> None:
        for line, wanted, unwanted in self.CASES:
            with self.subTest(line):
                offered = {word.rstrip("/") for word in offered_for[line]}
                self.assertLessEqual(wanted, offered)
                self.assertFalse(offered & unwanted, offered)

    def test_bash(self) -> None:
        """Calls the completion function as bash does, with and without `=` among its word
        breaks."""
        script = self.script("bash")
        for breaks in (" \t\n\"'><=;|&(:", " \t\n"):
            asked = f"COMP_WORDBREAKS=$'{breaks}'\nsource {script}\n".replace("\"'>", "\"\\'>")
            for line, _, _ in self.CASES:
                asked += (
                    f"COMP_LINE='{line}' COMP_POINT={len(line)} COMPREPLY=()\n_trainer\n"
                    'printf "%s\\n" "${COMPREPLY[@]}" @\n'
                )
            done = subprocess.run(
                ["bash", "--norc", "-c", asked], capture_output=True, text=True, check=True
            )
            self.assertEqual(done.stderr, "")
            answers = done.stdout.split("@\n")
            offered = {}
            for (line, _, _), answer in zip(self.CASES, answers):
                word = line.rpartition(" ")[2]
                kept = word[: word.rfind("=") + 1] if "=" in breaks else ""
                offered[line] = {kept + one for one in answer.split()}
            self.check(offered)

    def test_fish(self) -> None:
        script = self.script("fish")
        offered = {}
        for line, _, _ in self.CASES:
            done = subprocess.run(
                ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
                capture_output=True, text=True, check=True,
                env={**os.environ, "HOME": self.folder.name},
            )
            self.assertEqual(done.stderr, "")
            offered[line] = {one.partition("\t")[0] for one in done.stdout.splitlines()}
        # fish offers whole keys, in one list.
        self.check(offered)

    def test_zsh(self) -> None:
        """Types the line and a Tab into zsh on a pseudo-terminal and reads what it shows."""
        script = self.script("zsh")
        child, terminal = pty.fork()
        if child == 0:
            os.environ.update(HOME=self.folder.name, TERM="dumb")
            os.execvp("zsh", ["zsh", "-f", "-i"])
        offered = {}
        try:
            self.say(
                terminal,
                "unset zle_bracketed_paste; unsetopt prompt_sp; autoload -U compinit; "
                "compinit -u -D; zstyle ':completion:*' verbose no; "
                "stty columns 200; LISTMAX=999; "
                f"source {script}; print DO''NE\n",
            )
            for line, wanted, _ in self.CASES:
                # zsh shows no completions while more input is waiting.
                shown = self.say(terminal, line + "\t", wanted)
                shown += self.say(terminal, "\x15print DO''NE\n")
                offered[line] = self.words(shown)
        finally:
            os.close(terminal)
            os.waitpid(child, 0)
        self.check(offered)

    @staticmethod
    def words(shown: str) -> set[str]:
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x07\x08]", "", shown)
        return {word.rstrip("/") for word in plain.split()}

    def say(
        self, terminal: int, text: str, until: collections.abc.Set[str] = frozenset({"DONE"})
    ) -> str:
        """Types the text and returns the output once it contains these words."""
        os.write(terminal, text.encode())
        heard, end = "", time.monotonic() + 60
        while not until <= self.words(heard):
            self.assertLess(time.monotonic(), end, heard)
            if select.select([terminal], [], [], 1)[0]:
                heard += os.read(terminal, 65536).decode(errors="replace")
        return heard

    def test_scripts_contain_no_local_path(self) -> None:
        for shell in ("bash", "zsh", "fish"):
            self.assertNotIn(str(pathlib.Path(TRAINER).parent), trainer("completion", shell))


class Manual(unittest.TestCase):
    def setUp(self) -> None:
        self.page = trainer("man")

    def formatted(self, *command: str) -> str:
        if not shutil.which(command[0]):
            self.skipTest(f"{command[0]} is not installed")
        done = subprocess.run(
            command, input=self.page, capture_output=True, text=True, check=False,
            env={**os.environ, "MANWIDTH": "80"},
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_groff_formats_page_without_warnings(self) -> None:
        text = self.formatted("groff", "-man", "-ww", "-Tutf8", "-rLL=80n", "-P-cbou")
        for line in text.splitlines():
            self.assertLessEqual(len(line), 160, line)  # examples are not wrapped
        for part in ("trainer run", "--verify-determinism STEPS", "EXIT STATUS", "NO_COLOR",
                     "trainer run configs/maskrcnn.toml --out runs/short --resume"):
            self.assertIn(part, text)

    def test_mandoc_accepts_page_without_warnings(self) -> None:
        self.formatted("mandoc", "-T", "lint", "-W", "warning")

    def test_page_lists_every_option(self) -> None:
        text = self.page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
        for command in ("run", "eval", "export", "bench model"):
            for word in trainer(*command.split(), "--help").split():
                if word.startswith("--") and word.strip("-,.").isidentifier():
                    self.assertIn(word.strip(",."), text)


if __name__ == "__main__":
    TRAINER = os.path.abspath(sys.argv.pop(1))
    unittest.main()
