"""Recipe files: Python and YAML values, inheritance, and errors."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from millrace.migrate.errors import Place, RecipeError, TooLargeError
from millrace.migrate.literals import read_assignments, read_expression
from millrace.migrate.recipe import LARGEST_FILE, Recipe, read_python_recipe, read_yaml_recipe
from millrace.migrate.values import MOST_ELEMENTS, Budget, Value

RECIPES = Path(__file__).parent / "recipes"


def plain(value: Value) -> Any:
    """Returns the value without locations; tuples become lists."""
    if isinstance(value.data, dict):
        return {key: plain(one) for key, one in value.data.items()}
    return [plain(one) for one in value.data] if isinstance(value.data, tuple) else value.data


def expression(text: str) -> Any:
    return plain(read_expression(text, Place("a.py", 1), Budget()))


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, **texts: str) -> None:
        """Writes files; the keyword `base_py` stands for base.py."""
        for name, text in texts.items():
            (self.path / name.replace("_", ".")).write_text(text)

    def read(self, name: str) -> Recipe:
        file = self.path / name
        return (read_python_recipe if name.endswith(".py") else read_yaml_recipe)(file, [])

    def values(self, name: str) -> Any:
        return plain(self.read(name).tree)

    def error(self, name: str, kind: type[RecipeError] = RecipeError) -> str:
        """Returns the error message, with file names relative to the folder."""
        with pytest.raises(kind) as raised:
            self.read(name)
        return str(raised.value).replace(f"{self.path}/", "")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


# Values


@pytest.mark.parametrize(
    "text, value",
    [
        (
            """[1, -2.5, 1e-3, .5, 1_000, None, True, 'a' "b", (), (1,), {'k': 1}]""",
            [1, -2.5, 0.001, 0.5, 1000, None, True, "ab", [], [1], {"k": 1}],
        ),
        ("dict(a=1, b=dict(c=[2]), **{'d': 3})", {"a": 1, "b": {"c": [2]}, "d": 3}),
        ("1.0 / 9.0", 0.1111111111111111),
        (
            "[0.1] * 2 + [2 ** -1, -2 ** 2, 7 // 2, 7 % 4, 2 * 3, 1 / 2]",
            [0.1, 0.1, 0.5, -4, 3, 3, 6, 0.5],
        ),
        ("'data/' + 'coco'", "data/coco"),
        (
            "[[x, x * 2 ** (1.0 / 2)] for x in [1, 4]]",
            [[1, 1.4142135623730951], [4, 5.656854249492381]],
        ),
        (r"r'a\d' 'b\n'", "a\\db\n"),
        ("1" + " + 1" * 500, 501),
    ],
)
def test_evaluates_values_like_python(text: str, value: Any) -> None:
    assert expression(text) == value


@pytest.mark.parametrize(
    "text, line, word",
    [
        ("a = 1\nimport os\n", 2, "'import'"),
        ("a = dict(\n  b=open('x'))\n", 2, "open()"),
        ("a = [].append\n", 1, "append"),
        ("a = 'x'.join([])\n", 1, "call"),
        ("a = 1 if True else 2\n", 1, "'if'"),
        ("a = f'{1}'\n", 1, "plain text"),
        ("a = b\n", 1, "'b'"),
        ("for x in y:\n  pass\n", 1, "'for'"),
        ("a += 1\n", 1, "'a'"),
        ("a = lambda: 1\n", 1, "'lambda'"),
        ("a = __import__('os').system('x')\n", 1, "call"),
        ("a = (b := 1)\n", 1, "'b'"),
        ("a = [x for x in [1] if x]\n", 1, "'['"),
        ("a = b'x'\n", 1, "'b'"),
    ],
)
def test_rejects_code_and_names_line(
    folder: Folder, text: str, line: int, word: str
) -> None:
    folder.write(a_py=text)
    message = folder.error("a.py")
    assert message.startswith(f"a.py:{line}: ")
    assert word in message


@pytest.mark.parametrize(
    "text",
    [
        "[1,\n 2",
        "'abc",
        "[1 2]",
        "1 / 0",
        "9.0 ** 9999",
        "1e999",
        "(-8) ** 0.5",
        "'a' + 1",
        "True + 1",
        "[x for x in 3]",
        "",
        "\0",
        "[0] * 10 ** 12",
        "[" * 1000,
        "-" * 1000 + "1",
    ],
)
def test_rejects_damaged_text_and_names_line(text: str) -> None:
    with pytest.raises(RecipeError, match=r"^a.py:[12]: "):
        expression(text)


def test_reads_or_rejects_truncated_recipe() -> None:
    text = (RECIPES / "mmdetection2" / "retinanet.py").read_text()
    for size in range(0, len(text), 7):
        own: dict[str, Value] = {}
        try:
            for one in read_assignments(text[:size], "a.py", own.get, Budget()):
                own[one.target[0]] = one.value
        except RecipeError as problem:
            assert str(problem).startswith("a.py:")


# Inheritance


def test_merges_dicts_and_replaces_others(folder: Folder) -> None:
    folder.write(
        base_py="a = dict(x=1, y=[1, 2], z=dict(u=1))\nb = 2\n",
        one_py="_base_ = 'base.py'\na = dict(y=[3], z=dict(v=2))\n",
    )
    assert folder.values("one.py") == {"a": {"x": 1, "y": [3], "z": {"u": 1, "v": 2}}, "b": 2}


def test_delete_replaces_dict(folder: Folder) -> None:
    folder.write(
        base_py="a = dict(type='SGD', lr=1)\n",
        one_py="_base_ = ['base.py']\na = dict(_delete_=True, type='AdamW')\n",
    )
    assert folder.values("one.py") == {"a": {"type": "AdamW"}}


def test_reads_values_from_base(folder: Folder) -> None:
    folder.write(
        base_py="args = None\nlist = [dict(step=1), dict(step=2)]\n",
        one_py="_base_ = 'base.py'\na = dict(one={{_base_.args}}, two=_base_.list[1].step)\n"
        "_base_.list[0].step = 7\n_base_.new.key = 'x'\n",
    )
    assert folder.values("one.py") == {
        "args": None,
        "list": [{"step": 7}, {"step": 2}],
        "new": {"key": "x"},
        "a": {"one": None, "two": 2},
    }


def test_keeps_location_of_value(folder: Folder) -> None:
    folder.write(
        base_py="# a comment\na = dict(\n    x=1,\n    y=2)\n",
        one_py="_base_ = 'base.py'\n\na = dict(y=3)\n",
    )
    tree = folder.read("one.py").tree
    for path, place in (("a.x", "base.py:3"), ("a.y", "one.py:3")):
        found = tree.at_path(path)
        assert found and found.place.text() == f"{folder.path}/{place}"


def test_changing_one_name_keeps_other(folder: Folder) -> None:
    folder.write(a_py="a = dict(x=1)\nb = a\na.x = 2\n")
    assert folder.values("a.py") == {"a": {"x": 2}, "b": {"x": 1}}


def test_reports_unreadable_base_with_line(folder: Folder) -> None:
    folder.write(a_py="x = 1\n_base_ = 'b.py'\n")
    assert folder.error("a.py").startswith("a.py:2: the base b.py")
    folder.write(b_py="_base_ = 'a.py'\n")
    assert folder.error("a.py") == "b.py:1: the base a.py inherits from itself"
    folder.write(b_py="_base_ = 'mmdet::x.py'\n")
    assert "'mmdet::x.py'" in folder.error("a.py")
    folder.write(b_py="_base_ = 3\n")
    assert folder.error("a.py").startswith("b.py:1: ")


def test_reads_yaml_strings_as_literals(folder: Folder) -> None:
    folder.write(
        one_yaml="A: (60000, 80000)\nB: \"('x',)\"\nC: 1e-3\nD: yes\nE:\nF: a-b\nG: \"True\"\n"
        'H: !!python/object/apply:eval ["[x * 2 for x in [1, 2]]"]\nI: "yes"\n'
    )
    assert folder.values("one.yaml") == {
        "A": [60000, 80000],
        "B": ["x"],
        "C": 0.001,
        "D": True,
        "E": None,
        "F": "a-b",
        "G": True,
        "H": [2, 4],
        "I": "yes",
    }


def test_yaml_inherits_along_chain(folder: Folder) -> None:
    folder.write(
        base_yaml="A: {x: 1, y: 2}\nB: 1\n",
        middle_yaml="_BASE_: base.yaml\nA: {y: 3}\n",
        one_yaml="_BASE_: middle.yaml\nB: [2]\n",
        empty_yaml="",
    )
    assert folder.values("one.yaml") == {"A": {"x": 1, "y": 3}, "B": [2]}
    assert folder.values("empty.yaml") == {}


@pytest.mark.parametrize(
    "text, line",
    [
        ("A: 1\nB: [1\n", 3),
        ("- 1\n", 1),
        ("A: 1\nB: 2\nA: 3\n", 3),
        ('A: 1\nB: !!python/object/apply:os.system ["x"]\n', 2),
        ("A: !!python/object/apply:eval [\"open('x')\"]\n", 1),
        ("A: 1\na.b: 1\n", 2),
        ("? [a]\n: 1\n", 1),
        ("a: \x07\n", 1),
    ],
)
def test_rejects_invalid_yaml_and_names_line(folder: Folder, text: str, line: int) -> None:
    folder.write(one_yaml=text)
    assert folder.error("one.yaml").startswith(f"one.yaml:{line}: ")


# Bombs: small files that would use up all memory or time

BOMBS_PY = {
    "lists": "a = [0]\n" + "a = a * 1000\n" * 100,
    "lists in lists": "a = [0]\n" + "a = [a] * 1000\n" * 90,
    "one list": "a = [[[[[0] * 99999] * 99999] * 99999] * 99999] * 99999\n",
    "dicts": "a = dict(x=1)\n" + "a = dict(x=a, y=a)\n" * 90,
    "dicts with **": "a = dict(x=1)\n" + "".join(f"a = dict(**a, x{i}=a)\n" for i in range(80)),
    "strings": "a = 'xxxxxxxxxx'\n" + "a = a + a\n" * 90,
    "strings in lists": f"a = '{'x' * 1000}'\nb = [a] * 50000\n",
    "loops": "a = [0] * 1000\n" + "a = [a for x in a]\n" * 90,
    "members": "a = [[0] * 1000]\n" + "b = [a[0] for x in a[0]]\na = b\n" * 60,
    "assignments": "a = dict(x=0)\n" + "a.x = [a, a]\n" * 90,
}


@pytest.mark.parametrize("name", BOMBS_PY)
def test_rejects_python_bomb(folder: Folder, name: str) -> None:
    folder.write(a_py=BOMBS_PY[name])
    assert (folder.path / "a.py").stat().st_size < 3000
    message = folder.error("a.py", TooLargeError)
    assert message.startswith("a.py:")
    assert message.partition(":")[2].split(":")[0].isdigit()


ALIASES = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]\n"
    for below, name in zip("abcdefgh", "bcdefghi")
)
BOMBS_YAML = {
    "aliases": ALIASES,
    "aliases of texts": f"a: &a {'x' * 1000}\nb: &b [{'*a, ' * 300}]\nc: [{'*b, ' * 99}]\n",
    "itself": "a: &a [*a]\n",
    "literals": 'A: "[0] * 10 ** 12"\n',
    "literals in literals": 'A: "[[[0] * 99999] * 99999] * 99999"\n',
}


@pytest.mark.parametrize("name", BOMBS_YAML)
def test_rejects_yaml_bomb(folder: Folder, name: str) -> None:
    folder.write(one_yaml=BOMBS_YAML[name])
    assert folder.error("one.yaml", TooLargeError).startswith("one.yaml:")


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.py", "a = " + "[" * 150 + "]" * 150),
        ("a.py", "x = 1\na = " + "[" * 5000),
        ("a.py", "x = 1\na = " + "-" * 60000 + "1"),
        ("a.py", "x = 1\na = x" + ".b" * 5000),
        ("a.py", "x = 1\na = x" + "[0]" * 5000),
        ("a.py", "x = 1\na = " + "1+" * 60000 + "1"),
        ("a.py", "a = []\n" + "a = [a]\n" * 2000),
        ("a.py", "a" + ".b" * 2000 + " = 1"),
        ("one.yaml", "A: " + "[" * 5000),
        ("one.yaml", "A: " + "[" * 300 + "]" * 300),
        ("one.yaml", "A: '" + "[" * 5000 + "'"),
        ("one.yaml", "".join(" " * i + "a:\n" for i in range(400))),
    ],
)
def test_rejects_deep_nesting(folder: Folder, name: str, text: str) -> None:
    (folder.path / name).write_text(text)
    assert folder.error(name, TooLargeError).startswith(f"{name}:")


def test_limits_overrides(folder: Folder) -> None:
    folder.write(a_py="a = 1\n", one_yaml="A: 1\n")
    with pytest.raises(TooLargeError, match="command line"):
        read_python_recipe(folder.path / "a.py", ["b=[0] * 10 ** 9"])
    with pytest.raises(TooLargeError, match="command line"):
        read_yaml_recipe(folder.path / "one.yaml", ["B" + ".C" * 2000, "1"])


def test_limits_depth_and_number_of_bases(folder: Folder) -> None:
    for number in range(30):
        (folder.path / f"{number}.py").write_text(f"_base_ = '{number + 1}.py'\n")
    assert folder.error("0.py", TooLargeError).startswith("19.py:1: the base 20.py")
    for number in range(10):  # 10^10 reads if each file were read for every reference to it
        bases = [f"f{number + 1}.py"] * 10
        (folder.path / f"f{number}.py").write_text(f"_base_ = {bases}\n")
    (folder.path / "f10.py").write_text("x = 1\n")
    assert folder.error("f0.py", TooLargeError).startswith("f9.py:1: the base f10.py")


def test_limits_cycles_through_links(folder: Folder) -> None:
    (folder.path / "here").symlink_to(folder.path)
    folder.write(a_yaml="_BASE_: here/a.yaml\n")
    assert "more than 20 " in folder.error("a.yaml", TooLargeError)


def test_reads_only_regular_files(folder: Folder) -> None:
    os.mkfifo(folder.path / "a.py")
    os.mkfifo(folder.path / "a.yaml")
    (folder.path / "b.py").symlink_to("/dev/zero")
    (folder.path / "c.py").mkdir()
    for name in ("a.py", "a.yaml", "b.py", "c.py"):
        assert folder.error(name) == f"{name}: not a regular file"
    folder.write(d_py="_base_ = 'b.py'\n")
    assert folder.error("d.py") == "b.py: not a regular file"


def test_rejects_large_file(folder: Folder) -> None:
    folder.write(a_py="# " + "x" * LARGEST_FILE, a_yaml="# " + "x" * LARGEST_FILE)
    for name in ("a.py", "a.yaml"):
        assert folder.error(name, TooLargeError).startswith(f"{name}:1: ")


def test_rejects_bombs_with_little_memory_and_time(folder: Folder) -> None:
    """A process limited to 600 MB of memory rejects each bomb."""
    (folder.path / "bombs").mkdir()
    for number, text in enumerate([*BOMBS_PY.values(), *BOMBS_YAML.values()]):
        kind = "py" if number < len(BOMBS_PY) else "yaml"
        (folder.path / "bombs" / f"{number}.{kind}").write_text(text)
    code = (
        "import sys\nfrom pathlib import Path\nfrom millrace.migrate import *\n"
        "for file in Path(sys.argv[1]).iterdir():\n"
        "    try: import_config(file)\n"
        "    except RecipeError: pass\n"
    )
    limit = 600 << 20
    start = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", code, str(folder.path / "bombs")],
        check=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert time.monotonic() - start < 60


def test_usual_recipe_is_below_budget() -> None:
    tree = read_python_recipe(RECIPES / "mmdetection3" / "mask_rcnn.py", []).tree
    assert tree.elements * 20 < MOST_ELEMENTS
