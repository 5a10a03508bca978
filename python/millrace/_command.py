"""What the commands of `trainer` that are written in Python share: messages, errors, exit codes."""

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
    """Ends a command: what was wrong, where, and what to do."""

    exit_code = FAILED


class WrongUse(Failure):
    """A wrong command line or configuration: nothing has run."""

    exit_code = WRONG_USE


class Arguments(argparse.ArgumentParser):
    """The arguments of `trainer NAME`, with those that every command has."""

    def __init__(self, name: str, doc: str) -> None:
        super().__init__(prog=f"trainer {name}", description=doc, allow_abbrev=False)
        volume = self.add_mutually_exclusive_group()
        volume.add_argument("-v", "--verbose", action="store_true", help="log more details")
        volume.add_argument("-q", "--quiet", action="store_true",
                            help="show only warnings, errors and the result")  # fmt: skip

    def error(self, message: str) -> NoReturn:
        raise WrongUse(message)

    def read(self, words: list[str] | None = None) -> argparse.Namespace:
        """What the command line says. Starts the log."""
        words = sys.argv[1:] if words is None else words
        # Options may stand between the words of a list, too; not behind "--".
        given = self.parse_args(words) if "--" in words else self.parse_intermixed_args(words)
        for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
            logging.addLevelName(level, logging.getLevelName(level).lower())
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
        quiet, verbose = given.quiet, given.verbose
        log.setLevel(logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO)
        return given


def positive(text: str) -> int:
    """A type of arguments."""
    if not re.fullmatch(r"\+?0*[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f"takes whole numbers above 0, not '{text}'")
    return int(text)


def trainer() -> str:
    """The program that started this one, else the one of the search path."""
    found = os.environ.get("MILLRACE_TRAINER") or shutil.which("trainer")
    if not found:
        raise Failure(
            "the program trainer is needed and was not found: add its folder to PATH, or set "
            "MILLRACE_TRAINER to it"
        )
    return found


def counted(count: int, noun: str) -> str:
    """ "1 run", "2 runs" """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def print_json(value: Any) -> None:
    """One object in one line; what is not finite becomes null."""
    print(json.dumps(finite(value), ensure_ascii=False, separators=(",", ":")))


def finite(value: Any) -> Any:
    """A value of JSON: what is not finite becomes null."""
    if isinstance(value, dict):
        return {key: finite(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(member) for member in value]
    is_bad = isinstance(value, float) and (value != value or abs(value) == float("inf"))
    return None if is_bad else value


def print_text(text: str, indent: str = "    ") -> None:
    """Lines, on a terminal broken between words where they are longer than it is wide."""
    for line in text.splitlines():
        if sys.stdout.isatty():
            width = shutil.get_terminal_size().columns - 1
            line = textwrap.fill(line, width, subsequent_indent=indent,
                                 break_long_words=False, break_on_hyphens=False)  # fmt: skip
        print(line)


def suggest_next(text: str) -> None:
    """What to do next, for people: not where output goes into a file, nor where it is quiet."""
    if sys.stdout.isatty() and log.isEnabledFor(logging.INFO):
        sys.stdout.flush()
        print(f"next: {text}", file=sys.stderr)


def run(command: Callable[[], int], *, handles_signals: bool = False) -> NoReturn:
    """Ends the process with the exit code of `command`, or with the message of what it raises.

    Signals end it as they end any program, unless it handles them.
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
    except OSError as problem:  # a file has a name
        where = problem.filename or "cannot write to standard output"
        code = _complain(f"{where}: {problem.strerror}", max(code, FAILED))
    sys.stderr.flush()
    os._exit(code)  # what could not be written is not tried again


def release_signals() -> None:
    """From now on the stop signals end this process, also those that `trainer` has held back."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _complain(text: str, code: int) -> int:
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda c: f"\\x{ord(c[0]):02x}", text)
    with contextlib.suppress(OSError):  # nobody reads it
        print(f"trainer: error: {text}", file=sys.stderr)
    return code
