"""Messages, errors and exit codes of the commands of `trainer` that are written in Python."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import re
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable
from typing import Any, NoReturn

DONE, FAILED, WRONG_USE, STOPPED_EARLY = range(4)  # exit codes of `trainer`
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)

log = logging.getLogger("millrace")


class Failure(Exception):
    """Ends a command; the message states what is wrong, where, and what to do."""

    exit_code = FAILED


class WrongUse(Failure):
    """An invalid command line or configuration; nothing was run."""

    exit_code = WRONG_USE


class Arguments(argparse.ArgumentParser):
    """The arguments of `trainer NAME`, including those that every command has."""

    def __init__(self, name: str, doc: str) -> None:
        super().__init__(prog=f"trainer {name}", description=doc, allow_abbrev=False)
        volume = self.add_mutually_exclusive_group()
        volume.add_argument("-v", "--verbose", action="store_true", help="log more detail")
        volume.add_argument("-q", "--quiet", action="store_true",
                            help="show only warnings, errors and the result")  # fmt: skip

    def error(self, message: str) -> NoReturn:
        raise WrongUse(message)

    def read(self, words: list[str] | None = None) -> argparse.Namespace:
        """Parses the command line and starts the log."""
        words = sys.argv[1:] if words is None else words
        # Options may also occur between positional arguments, but not after "--".
        given = self.parse_args(words) if "--" in words else self.parse_intermixed_args(words)
        for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
            logging.addLevelName(level, logging.getLevelName(level).lower())
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
        quiet, verbose = given.quiet, given.verbose
        log.setLevel(logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO)
        return given


def positive(text: str) -> int:
    """An argument type: an integer above 0."""
    if not re.fullmatch(r"\+?0*[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f"invalid value '{text}'; expected an integer above 0")
    return int(text)


def trainer() -> str:
    """Returns the path of the program that started this one; otherwise of `trainer` on PATH."""
    found = os.environ.get("MILLRACE_TRAINER") or shutil.which("trainer")
    if not found:
        raise Failure(
            "program trainer not found; add its folder to PATH, or set "
            "MILLRACE_TRAINER to its path"
        )
    return found


def counted(count: int, noun: str) -> str:
    """Returns "1 run", "2 runs" etc."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def print_json(value: Any) -> None:
    """Prints an object on one line; non-finite numbers become null."""
    print(json.dumps(finite(value), ensure_ascii=False, separators=(",", ":")))


def finite(value: Any) -> Any:
    """Returns a JSON value with non-finite numbers replaced by None."""
    if isinstance(value, dict):
        return {key: finite(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(member) for member in value]
    is_bad = isinstance(value, float) and (value != value or abs(value) == float("inf"))
    return None if is_bad else value


def print_text(text: str, indent: str = "    ") -> None:
    """Prints lines; on a terminal, wraps lines that are wider than the terminal."""
    for line in text.splitlines():
        if sys.stdout.isatty():
            width = shutil.get_terminal_size().columns - 1
            line = textwrap.fill(line, width, subsequent_indent=indent,
                                 break_long_words=False, break_on_hyphens=False)  # fmt: skip
        print(line)


def suggest_next(text: str) -> None:
    """Prints what to do next, unless output is not a terminal or --quiet is set."""
    if sys.stdout.isatty() and log.isEnabledFor(logging.INFO):
        sys.stdout.flush()
        print(f"next: {text}", file=sys.stderr)


def run(command: Callable[[], int], *, handles_signals: bool = False) -> NoReturn:
    """Runs `command` and ends the process with its exit code, or reports its exception.

    Signals end the process as by default, unless the command handles them.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if not handles_signals:
        release_signals()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(encoding="utf-8", errors="replace")
    code = FAILED
    try:
        try:
            code = command()
        except Failure as problem:
            code = _complain(str(problem), problem.exit_code)
        sys.stdout.flush()
    except OSError as problem:  # about a file if it has a name
        where = problem.filename or "cannot write to standard output"
        code = _complain(f"{where}: {problem.strerror}", max(code, FAILED))
    sys.stderr.flush()
    os._exit(code)  # does not flush again what could not be written


def release_signals() -> None:
    """Lets the stop signals end this process, including those that `trainer` blocked."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _complain(text: str, code: int) -> int:
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda c: f"\\x{ord(c[0]):02x}", text)
    with contextlib.suppress(OSError):  # stderr may be closed
        print(f"trainer: error: {text}", file=sys.stderr)
    return code
