#!/usr/bin/env python3
"""The checks in scripts/ report errors with their locations."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"


class Checks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        (self.root / "tests").mkdir()
        self.write("base/files.h", "#include <string>\n")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name: str, text: str):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def check(self, script: str):
        ended = subprocess.run([sys.executable, SCRIPTS / script, self.root], capture_output=True,
                               text=True)
        return ended.returncode, ended.stdout

    def test_accepts_allowed_include(self):
        self.write("trainer/run/run.cpp", '#include "millrace/base/files.h"\n')
        self.assertEqual(self.check("check_rooms.py")[0], 0)

    def test_reports_forbidden_include(self):
        self.write("cmake/public_headers.cmake",
                   "set(public_headers\n  millrace/dataflow/engine/plan.h\n)\n")
        for name, text, wanted in (
            ("base/files.h", '#include <string>\n#include "millrace/dataflow/engine/plan.h"\n',
             "base/files.h:2: 'base' must not include 'dataflow/engine'"),
            ("coco/masks/rle.cpp", "#include <millrace/coco/data/json.h>\n",
             "rle.cpp:1: 'coco/masks' must not include 'coco/data'"),
            ("dataflow/engine/plan.h", '#include "millrace/base/files.h"\n',
             "dataflow/engine/plan.h:1: public header includes 'millrace/base/files.h'"),
            ("base/attic/old.cpp", "\n",
             "base/attic/old.cpp:1: folder not listed"),
        ):
            with self.subTest(name):
                self.write(name, text)
                code, report = self.check("check_rooms.py")
                self.assertEqual(code, 1)
                self.assertIn(wanted, report)

    def test_reports_viewer_errors_and_html_in_cpp(self):
        self.write("tools/report/viewer/modules.txt", "dom\n")
        self.write("tools/report/viewer/dom.js", "export function h() {}\nexport const s = 1;\n")
        self.write("tools/report/viewer.js", 'import {h, t} from "./viewer/dom.js";\nh(t);\n')
        self.write("base/files.h", 'const char* a = "<td>";\n')
        code, report = self.check("check_viewer.py")
        self.assertEqual(code, 1)
        for wanted in ("viewer.js: imports 't'", "dom.js: exports 's'", "base/files.h:1: HTML"):
            self.assertIn(wanted, report)

    def test_reports_folder_with_too_many_files(self):
        for i in range(41):
            self.write(f"tests/coco/{i}_test.cpp", "\n")
        code, report = self.check("check_rooms.py")
        self.assertEqual((code, report.split(";")[0]), (1, "tests/coco: 41 files"))

    def test_reports_long_line(self):
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.write("tests/a.cpp", 'const auto* json = R"(\n' + "x" * 200 + '\n)";\n')
        self.write("cmake/a.cmake", "x" * 100 + "\n" + "# " + "é" * 99 + "\n")
        code, report = self.check("check_columns.py")
        self.assertEqual((code, report.split(";")[0]), (1, "cmake/a.cmake:2: 101 columns"))

    def test_sources_get_command_of_including_file(self):
        joined = self.root / "Unity/unity_0_cxx.cxx"
        self.write("Unity/unity_0_cxx.cxx", '#include "/a/one.cpp"\n\n#include "/a/two.cpp"\n')
        spec = importlib.util.spec_from_file_location("it", SCRIPTS / "compile_commands.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        listed = [{"directory": "/b", "file": str(joined), "command": f"g++ -O2 -c {joined}"},
                  {"directory": "/b", "file": "/a/alone.cpp", "command": "g++ -c /a/alone.cpp"}]
        self.assertEqual(
            [(entry["file"], entry["command"]) for entry in module.entries(listed)],
            [("/a/alone.cpp", "g++ -c /a/alone.cpp"), ("/a/one.cpp", "g++ -O2 -c /a/one.cpp"),
             ("/a/two.cpp", "g++ -O2 -c /a/two.cpp")])


if __name__ == "__main__":
    unittest.main()
