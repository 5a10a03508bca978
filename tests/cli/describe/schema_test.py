#!/usr/bin/env python3
"""The configuration schema accepts and rejects the same files as `trainer config`.

usage: schema_test.py TRAINER VERDICTS    VERDICTS: the program built from config_verdicts.cpp
"""

from __future__ import annotations

import collections.abc
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import typing
import unittest

TRAINER = VERDICTS = ""
COMMITTED = pathlib.Path("schema/millrace.schema.json")
Schema = dict[str, typing.Any]


def taplo() -> str | None:
    """Returns taplo beside this Python, where scripts/setup_python installs it, or on PATH."""
    return shutil.which("taplo", path=os.path.dirname(sys.executable)) or shutil.which("taplo")


class Case(typing.NamedTuple):
    name: str  # of the option that is changed
    text: str
    fault: str  # empty = valid; else what the schema must reject


def toml(value: typing.Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def wrong_values(schema: Schema) -> collections.abc.Iterator[tuple[str, str]]:
    """Yields values that the option's type, limits or names forbid, each with what is wrong."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "string" not in kinds:
        yield '"text"', "type"
    else:
        yield "17", "type"
        if "enum" in schema or "then" in schema:
            yield '"no such name"', "name"
        if "pattern" in schema:
            yield '"5 parsecs"', "unit"
            yield '""', "unit"
    if "boolean" not in kinds:
        yield "true", "type"
    if kinds == ["integer"]:
        yield "1.5", "type"
    if "array" in kinds:
        if schema["items"]["type"] != "string":
            yield '["text"]', "type of an element"
        if schema.get("minItems"):
            yield "[]", "number of elements"
        limits = {"minimum": "[%s]", "maximum": "[%s]"}
        of = schema["items"]
    else:
        limits = {"minimum": "%s", "maximum": "%s"}
        of = schema
    for keyword, step in (("minimum", -1), ("maximum", 1)):
        if keyword in of:
            yield limits[keyword] % (of[keyword] + step), keyword


def options(table: Schema, above: str = "") -> collections.abc.Iterator[tuple[str, Schema]]:
    for key, schema in table["properties"].items():
        if schema.get("type") == "object" and schema.get("properties") and "default" not in schema:
            yield from options(schema, above + key + ".")
        elif "type" in schema and key not in ("type", "sources", "stages", "groups"):
            yield above + key, schema


def cases_of(header: str, table: Schema, end: str = "") -> collections.abc.Iterator[Case]:
    """Yields files with one more option than `header`: at its default, and with wrong values."""
    for name, schema in options(table):
        def file(value: str, key: str = name) -> str:
            return f"{header}{key} = {value}\n{end}"
        if "default" in schema:
            yield Case(name, file(toml(schema["default"])), "")
        for value, fault in wrong_values(schema):
            yield Case(name, file(value), fault)
        yield Case(name, file("1", name + "x"), "key")
    yield Case("type", header + "nosuchkey = 1\n" + end, "key")


STAGES = ("read", "decode", "flip", "resize_shortest_edge", "group_by_aspect_ratio", "pad")


def all_cases(schema: Schema) -> collections.abc.Iterator[Case]:
    model = '[model]\ntype = "maskrcnn"\n'
    yield Case("type", model, "")
    yield Case("type", '[model]\ntype = "maskrcmm"\n', "name")
    yield Case("unset", 'unset = ["model"]\n' + model, "no base")
    yield Case("modle", model + "[modle]\n", "key")
    yield Case("callbacks", model + "[callbacks.mine]\n", "no type")
    yield Case("callbacks", model + '[callbacks.mine]\ntype = "csv"\n', "")
    yield Case("callbacks", model + '[callbacks.mine]\ntype = "cvs"\n', "name")
    yield Case("callbacks", model + '[callbacks."a b"]\ntype = "csv"\n', "name")
    yield Case("only_if", model + '[callbacks.progress]\nonly_if = "step > 3"\n', "key")
    for table in ("data", "train", "optimizer", "schedule"):
        yield from cases_of(f"{model}[{table}]\n", schema["properties"][table])
    sample = schema["properties"]["data"]["properties"]["sample"]
    yield from cases_of(f"{model}[data.sample]\n", sample)
    groups = schema["properties"]["optimizer"]["properties"]["groups"]["items"]
    yield from cases_of(f'{model}[[optimizer.groups]]\nmatch = "*"\n',
                        {"properties": {k: v for k, v in groups["properties"].items()
                                        if k != "match"}})
    yield Case("match", model + "[[optimizer.groups]]\nlr_factor = 0.5\n", "no match")
    for name, definition in schema["definitions"].items():
        kind, _, component = name.partition(".")
        if kind == "detector":
            yield from cases_of(f'[model]\ntype = "{component}"\n', definition)
        elif kind == "callback" and component:
            yield from cases_of(f"{model}[callbacks.{component}]\n", definition)
        elif kind == "source":
            yield from cases_of(f'{model}[[data.sources]]\ntype = "{component}"\n', definition)
        elif kind == "stage":
            before = "".join(f'[[data.stages]]\ntype = "{one}"\n' for one in STAGES
                             if one != component)
            yield from cases_of(f'{model}{before}[[data.stages]]\ntype = "{component}"\n',
                                definition)


class ConfigurationSchema(unittest.TestCase):
    def setUp(self) -> None:
        done = subprocess.run([TRAINER, "config", "--schema"], check=True, capture_output=True)
        self.text = done.stdout.decode()

    def test_committed_schema_is_current(self) -> None:
        """The committed schema includes the plug-ins of this repository."""
        done = subprocess.run([TRAINER, "config", "--schema", "--set",
                               'plugins=["rtdetr.so","yolox.so"]'], check=True, capture_output=True)
        self.assertTrue(COMMITTED.read_text(encoding="utf-8") == done.stdout.decode(),
                        f"{COMMITTED} differs from what this program prints: run `make schema`")

    def refused(self, folder: pathlib.Path, files: list[pathlib.Path]) -> set[str]:
        """Returns the files that Taplo rejects. The schema itself must be valid."""
        program = taplo()
        if not program:
            self.skipTest("taplo is not installed: scripts/setup_python")
        (folder / "schema.json").write_text(self.text, encoding="utf-8")
        (folder / ".taplo.toml").write_text(
            '[[rule]]\ninclude = ["**/*.toml"]\n[rule.schema]\npath = "./schema.json"\n',
            encoding="utf-8")
        # Taplo may exit before it writes its last message, so the last file is one that is not
        # checked.
        last = folder / "last.toml"
        last.write_text("nosuchkey = 1\n", encoding="utf-8")
        done = subprocess.run([program, "check", *map(str, [*files, last])], cwd=folder,
                              check=False, capture_output=True, text=True)
        self.assertNotIn("invalid schema", done.stderr)
        return set(re.findall(r'path="([^"]+)"', done.stderr))

    def test_taplo_accepts_all_configurations(self) -> None:
        program = taplo()
        if not program:
            self.skipTest("taplo is not installed: scripts/setup_python")
        done = subprocess.run([program, "check"], check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = re.search(r"found files total=(\d+)", done.stderr)
        count = len(list(pathlib.Path("configs").rglob("*.toml")))
        self.assertEqual(found and int(found[1]), count)

    def test_rejects_what_program_rejects(self) -> None:
        cases = list(all_cases(json.loads(self.text)))
        self.assertGreater(len(cases), 2000)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            files = [folder / f"{i}.toml" for i in range(len(cases))]
            for file, case in zip(files, cases):
                file.write_text(case.text, encoding="utf-8")
            refused = self.refused(folder, files)
            done = subprocess.run([VERDICTS], input="".join(f"{file}\n" for file in files),
                                  check=True, capture_output=True, text=True)
        verdicts = done.stdout.splitlines()
        self.assertEqual(len(verdicts), len(cases))
        wrong = []
        for file, case, verdict in zip(files, cases, verdicts):
            is_refused = str(file) in refused
            if verdict == "ok" and is_refused:
                wrong.append(f"the schema rejects what the program accepts:\n{case.text}")
            elif case.fault and verdict == "ok":
                wrong.append(f"the program accepts a wrong {case.fault}:\n{case.text}")
            elif case.fault and not is_refused:
                wrong.append(f"the schema accepts a wrong {case.fault}: {verdict}\n{case.text}")
            elif not case.fault and is_refused:
                wrong.append(f"the schema rejects a default: {verdict}\n{case.text}")
        self.assertEqual(wrong[:20], [], f"{len(wrong)} of {len(cases)}")


if __name__ == "__main__":
    VERDICTS = os.path.abspath(sys.argv.pop(2))
    TRAINER = os.path.abspath(sys.argv.pop(1))
    unittest.main()
