#!/usr/bin/env python3
"""Follows a tutorial from an empty folder to its end.

usage: tutorials_test.py BUILD NAME    follows a part of docs/tutorials.md with BUILD installed

Writes and changes the files and runs the commands with bash, in the order of the page. Commands
must print the output that the page shows, except numbers. The loss tutorial continues the detector
tutorial and is followed after it.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts/docs"))
from pages import Snippet, snippets  # noqa: E402

GOES_ON = {"detector": ["detector", "loss"]}
NUMBER = re.compile(r"[+-]?\d+(?:[.,:]\d+)*")


def changed(text: str, snippet: Snippet) -> str:
    """Returns the file's text after applying a diff; each hunk is located by its lines."""
    for part in re.split(r"^@@.*\n", snippet.text, flags=re.MULTILINE):
        lines = part.splitlines(keepends=True)
        old = "".join(line[1:] or "\n" for line in lines if line[0] != "+")
        new = "".join(line[1:] or "\n" for line in lines if line[0] != "-")
        if text.count(old) != 1:
            sys.exit(f"{snippet.place}: {snippet.rest} contains these lines "
                     f"{text.count(old)} times, expected once:\n{old}")
        text = text.replace(old, new)
    return text


def check_output(snippet: Snippet, output: str) -> None:
    """Checks that the output contains the snippet's lines in order; numbers may differ, and `...`
    stands for any text."""
    printed = iter(NUMBER.sub("#", output).splitlines())
    for line in snippet.text.splitlines():
        wanted = ".*".join(map(re.escape, NUMBER.sub("#", line).strip().split("...")))
        if wanted not in ("", ".*") and not any(re.search(wanted, one) for one in printed):
            sys.exit(f"{snippet.place}: line not printed, or not in this order:\n  {line}\n"
                     f"Output:\n{output}")


def follow(name: str, folder: pathlib.Path, environment: dict[str, str]) -> None:
    output = ""
    found = [snippet for snippet in snippets(ROOT, pathlib.Path("docs/tutorials.md"))
             if snippet.part == f"A {name} of your own"]
    if not found:
        sys.exit(f"docs/tutorials.md has no section 'A {name} of your own'")
    for snippet in found:
        file = folder / snippet.rest
        if snippet.how == "file":
            file.write_text(snippet.text)
        elif snippet.how == "diff":
            file.write_text(changed(file.read_text(), snippet))
        elif snippet.how == "output":
            check_output(snippet, output)
        elif snippet.language == "sh" and snippet.how != "no":
            print(snippet.text, end="", flush=True)
            ended = subprocess.run(["bash", "-e", "-c", snippet.text], cwd=folder, env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   timeout=3000)
            output = ended.stdout
            if ended.returncode != (2 if snippet.how == "fails" else 0):
                sys.exit(f"{snippet.place}: exit code {ended.returncode} from\n{snippet.text}"
                         f"{output}")
            print(output, flush=True)


def main() -> None:
    build, name = sys.argv[1:]
    with tempfile.TemporaryDirectory() as home:
        prefix = pathlib.Path(home) / "millrace"
        subprocess.run(["cmake", "--install", build, "--prefix", str(prefix)], check=True,
                       stdout=subprocess.DEVNULL)
        environment = {**os.environ, "HOME": home, "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
        folder = pathlib.Path(home) / "tutorial"
        folder.mkdir()
        for one in GOES_ON.get(name, [name]):
            follow(one, folder, environment)


if __name__ == "__main__":
    main()
