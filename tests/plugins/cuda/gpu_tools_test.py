#!/usr/bin/env python3
"""Runs scripts/gpu_tools with fake tools that record their arguments: gpu_tools_test.py TRAINER"""

import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TRAINER = os.path.abspath(sys.argv.pop(1))
CHECKS = ("memcheck", "racecheck", "initcheck", "synccheck")

FAKE = """#!/bin/sh
echo "$0 $*" >>"$CALLS"
case "$*" in *"$FAILS"*) exit 9 ;; esac
"""


class GpuTools(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        for name in ("compute-sanitizer", "nsys", "ncu", "trainer"):
            (self.root / name).write_text(FAKE)
            (self.root / name).chmod(0o755)

    def tearDown(self):
        self.folder.cleanup()

    def script(self, *arguments, fails="nothing", trainer=None):
        return subprocess.run(
            [ROOT / "scripts/gpu_tools", *arguments], capture_output=True, text=True,
            env={"PATH": f"{self.root}:/usr/bin:/bin", "CALLS": str(self.root / "calls"),
                 "FAILS": fails, "TRAINER": trainer or str(self.root / "trainer"),
                 "BUILD": str(self.root / "build"), "OUT": str(self.root / "out")})

    def calls(self):
        return (self.root / "calls").read_text().splitlines()

    def test_runs_all_checks_after_an_error(self):
        self.assertEqual(self.script("sanitize").returncode, 0)
        (self.root / "calls").unlink()
        self.assertEqual(self.script("sanitize", fails="racecheck").returncode, 1)
        for check in CHECKS:
            self.assertTrue(any(f"--tool {check} " in call for call in self.calls()), check)

    def test_settings_of_every_command_are_valid(self):
        seen = 0
        for tool in (*CHECKS, "nsys", "waits", "ncu"):
            printed = self.script("--print", tool, trainer=TRAINER)
            self.assertEqual(printed.returncode, 0, printed.stderr)
            for line in printed.stdout.splitlines():
                words = shlex.split(line)
                if "bench" not in words:
                    continue
                begin = words.index("bench") + 2
                command = [TRAINER, "config", words[begin]]
                for i in range(begin, len(words)):
                    if words[i] == "--set":
                        command += words[i:i + 2]
                # Without a GPU, the plug-in cannot be opened.
                ended = subprocess.run([*command, "--set", "plugins=[]"], cwd=ROOT,
                                       capture_output=True, text=True)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertIn('device = "cuda"', ended.stdout)
                seen += 1
        self.assertEqual(seen, 7)
        self.assertFalse((self.root / "calls").exists(), "--print runs nothing")

    def test_reports_missing_program(self):
        (self.root / "nsys").unlink()
        ended = self.script("nsys")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("nsys not found", ended.stderr)
        ended = self.script("ncu", trainer=str(self.root / "nothing"))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("make all", ended.stderr)
        self.assertEqual(self.script("gpu-check").returncode, 2)


if __name__ == "__main__":
    unittest.main()
