"""The command line: `python -m millrace.migrate`, which `trainer import-config` starts."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from millrace._command import DONE, Arguments, Failure, counted, positive, run
from millrace.migrate import LeftOut, Options, RecipeError, import_config
from millrace.migrate.checked import checked
from millrace.migrate.errors import printable
from millrace.migrate.toml import leaves, to_toml


def main() -> int:
    given = _arguments().read()
    if given.out and given.out.exists():
        raise RecipeError(f"{given.out} already exists; choose another file for --out or delete it")
    imported = import_config(given.file, given.overrides, Options(given.gpus, given.images))
    tree = checked(imported.tree)
    text = (
        f"# {printable(given.file.name)}, a recipe of {imported.source}, converted by `trainer "
        "import-config`.\n"
        "# Comments name the source of each value; Millrace's defaults are omitted.\n\n"
        f"{to_toml(tree)}"
    )
    if given.out:
        _write(given.out, text)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()
    _report(imported.left_out, leaves(tree), given.out)
    return DONE


def _arguments() -> Arguments:
    arguments = Arguments(
        "import-config",
        "Convert a recipe of detectron2 (.yaml) or MMDetection (.py) to a configuration",
    )
    arguments.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        help="recipe; files that it inherits from are read too, and no code is run",
    )
    arguments.add_argument(
        "overrides",
        metavar="OVERRIDES",
        nargs="*",
        help="values that override the file: KEY VALUE ... as in detectron2's command lines, "
        "key=value ... as in MMDetection's --cfg-options",
    )
    arguments.add_argument(
        "--out", metavar="FILE", type=Path, help="file to write instead of standard output"
    )
    arguments.add_argument(
        "--gpus",
        metavar="N",
        type=positive,
        help="number of GPUs of the recipe, one process each: SOLVER.IMS_PER_BATCH is divided by "
        "it (default: 1), MMDetection's batch size is multiplied by it (default: from its "
        "auto_scale_lr, else 8)",
    )
    arguments.add_argument(
        "--images",
        metavar="N",
        type=positive,
        help="number of training images with an object, to convert iterations to epochs; known "
        "for COCO 2017",
    )
    return arguments


def _write(out: Path, text: str) -> None:
    """Writes a new file completely or not at all."""
    try:
        with open(out, "x", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
    except FileExistsError:
        raise
    except OSError as problem:
        with contextlib.suppress(OSError):
            out.unlink()
        raise Failure(f"{out}: cannot be written: {problem.strerror}") from None


def _report(left_out: list[LeftOut], count: int, out: Path | None) -> None:
    if left_out:
        print(f"{counted(len(left_out), 'value')} not translated:", file=sys.stderr)
        sys.stderr.write(_by_reason(left_out))
    kept = f" in {out}" if out else "; --out FILE writes them to a file"
    name = out or "FILE"
    print(
        f"{counted(count, 'value')}{kept}. Next: trainer config {name} shows the whole "
        f"configuration, trainer run {name} trains",
        file=sys.stderr,
    )


def _by_reason(left_out: list[LeftOut]) -> str:
    """Returns one paragraph per reason, in order of occurrence."""
    groups: dict[str, str] = {}
    for one in left_out:
        line = printable(f"{one.place}  {one.key} = {one.value}")
        groups[one.reason] = groups.get(one.reason, "") + f"    {line}\n"
    return "".join(f"  {printable(reason)}:\n{lines}" for reason, lines in groups.items())


if __name__ == "__main__":
    run(main)
