"""Reads a run folder; the run may be finished, in progress or crashed."""

from __future__ import annotations

import calendar
import fcntl
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ._command import Failure, counted

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Config = dict[str, Any]  # a TOML table
read_toml = tomllib.loads
RECORDS = ("record.json", "run.json")  # earlier versions wrote the second


class Value(NamedTuple):
    """A metric at a step."""

    step: int
    time: float  # seconds since 1970; 0 = not recorded
    value: float  # NaN if not finite


@dataclass
class Metrics:
    """The contents of metrics.jsonl."""

    by_name: dict[str, list[Value]] = field(default_factory=dict)  # by ascending step
    broken_lines: list[int] = field(default_factory=list)  # line numbers, from 1
    is_cut: bool = False  # the last line is incomplete
    last_step: int = 0
    last_epoch: float = 0
    last_time: float = 0

    def of(self, name: str) -> list[Value]:
        return self.by_name.get(name, [])


@dataclass
class Run:
    folder: Path
    name: str  # of the folder, preceded by parent folders if other runs have the same name
    config: Config = field(default_factory=dict)  # empty if not found
    record: Any = None  # of record.json; None if not found
    metrics: Metrics = field(default_factory=Metrics)
    standing: str = ""  # "done after step 40"
    remarks: list[str] = field(default_factory=list)  # what is missing or cannot be read

    def starts(self) -> list[dict[str, Any]]:
        starts = self.record.get("starts") if isinstance(self.record, dict) else None
        return [one for one in starts or [] if isinstance(one, dict)]

    def last_start(self) -> dict[str, Any]:
        """Returns the record of the last launch; empty if none is recorded."""
        return (self.starts() or [{}])[-1]

    def ended(self) -> dict[str, Any] | None:
        """Returns how the last launch ended; None if the run is in progress or ended
        unexpectedly."""
        ended = self.last_start().get("ended")
        return ended if isinstance(ended, dict) else None

    def newest_detections(self) -> Path | None:
        """Returns the newest detections file: of the trained weights, otherwise of others such as
        averaged weights; None if not found."""
        folder = self.folder / "detections"
        for files in (folder.glob("step-*.json"), sorted(folder.glob("*/step-*.json"))):
            numbered = [file for file in files if file.stem[5:].isdecimal()]
            if numbered:
                return max(numbered, key=lambda file: int(file.stem[5:]))
        return None

    def trained_seconds(self) -> float:
        """Returns the training time up to the last metric, without pauses; 0 if not recorded."""
        starts, last = self.starts(), self.metrics.last_time
        began = [seconds_of(one.get("time")) for one in starts] + [0.0]
        before = seconds = 0.0
        for i, start in enumerate(starts):
            if last <= 0 or began[i] <= 0:
                continue
            if last < began[i] - 1:  # recorded times are whole seconds
                break
            seconds = before + max(0.0, last - began[i])
            ended = seconds_of((start.get("ended") or {}).get("time"))
            if ended <= 0 and began[i + 1] > 0:  # its last metric before the next launch
                times = (one.time for values in self.metrics.by_name.values() for one in values)
                ended = max((one for one in times if one < began[i + 1]), default=0)
            before += max(0.0, ended - began[i])
        return seconds


def at(tree: Any, *path: str) -> Any:
    """Returns the member at a path; None if not found."""
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def number_at(tree: Any, *path: str) -> float:
    """Returns the number at a path; NaN if not found."""
    value = at(tree, *path)
    return float(value) if is_number(value) else math.nan


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def seconds_of(text: Any) -> float:
    """Returns the seconds since 1970 of a time such as 2026-01-31T23:59:59Z; 0 if it is invalid."""
    try:
        return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")))
    except (TypeError, ValueError):
        return 0


def leaves(config: Config, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yields all values with their dotted keys."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{key}.")
        else:
            yield above + key, value


def parse_json(text: str) -> Any:
    """Parses strict JSON, without NaN. Raises ValueError."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def read_metrics(text: str) -> Metrics:
    """Reads one object per line; records the numbers of invalid lines."""
    metrics = Metrics()
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip(" \r") and not _add_line(line, metrics):
            if number < len(lines):
                metrics.broken_lines.append(number)
            else:
                metrics.is_cut = True
    for values in metrics.by_name.values():  # background evaluations log late
        values.sort(key=lambda one: one.step)
    return metrics


def _add_line(text: str, metrics: Metrics) -> bool:
    try:
        line = parse_json(text)
    except ValueError:
        return False
    step = line.pop("step", None) if isinstance(line, dict) else None
    if not is_number(step) or not isinstance(step, int):
        return False
    epoch, moment = (value if is_number(value) else 0
                     for value in (line.pop("epoch", 0), line.pop("time", 0)))  # fmt: skip
    for name, value in line.items():
        if value is None or is_number(value):
            number = math.nan if value is None else float(value)
            metrics.by_name.setdefault(name, []).append(Value(step, moment, number))
    metrics.last_step = max(metrics.last_step, step)
    metrics.last_epoch = max(metrics.last_epoch, epoch)
    metrics.last_time = max(metrics.last_time, moment)
    return True


def read_run(folder: str | Path) -> Run:
    """Reads a run. Raises Failure if the folder is not a run; other problems become remarks."""
    folder = Path(folder)
    run = Run(folder, os.path.basename(os.path.abspath(folder)))
    advice = "expected the folder of a run, such as runs/maskrcnn-1"
    if not folder.is_dir():
        raise Failure(f"{folder} is not a folder; {advice}")
    record = next((folder / name for name in RECORDS if (folder / name).exists()), None)
    config, metrics = folder / "config.toml", folder / "metrics.jsonl"
    if not record and not config.exists() and not metrics.exists():
        raise Failure(
            f"{folder} is not a run: config.toml, record.json and metrics.jsonl not found; "
            f"{advice}"
        )

    def read(file: Path, parse: Callable[[str], Any], lost: str, otherwise: Any) -> Any:
        try:
            return parse(file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as problem:
            run.remarks.append(f"{lost} ({file}: {problem})")
            return otherwise

    if config.exists():
        run.config = read(config, read_toml, "configuration omitted", {})
    else:
        run.remarks.append("config.toml not found: configuration omitted")
    if record:
        run.record = read(record, parse_json, "environment omitted", None)
    if metrics.exists():
        run.metrics = read(metrics, read_metrics, "metrics omitted", Metrics())
    else:
        run.remarks.append(
            "metrics.jsonl not found; [callbacks.log] writes it with its first line"
        )
    if run.metrics.is_cut:
        run.remarks.append("the last line of metrics.jsonl is incomplete; omitted")
    if broken := run.metrics.broken_lines:
        run.remarks.append(
            f"{counted(len(broken), 'line')} of metrics.jsonl invalid and omitted, first "
            f"line {broken[0]}"
        )
    run.standing = _standing(run)
    return run


def read_runs(folders: Sequence[str | Path]) -> list[Run]:
    """Reads runs. If folders have the same name, parent folders are added to the runs' names."""
    runs = [read_run(folder) for folder in folders]
    above = [Path(os.path.abspath(folder)).parent for folder in folders]
    for _ in range(8):
        names = [run.name for run in runs]
        for i, run in enumerate(runs):
            if names.count(names[i]) > 1 and above[i].name:
                run.name = f"{above[i].name}/{run.name}"
                above[i] = above[i].parent
    return runs


def _standing(run: Run) -> str:
    reached = f"step {run.metrics.last_step}, {run.metrics.last_epoch:.2f} epochs"
    if ended := run.ended():
        step, reason = ended.get("step", run.metrics.last_step), ended.get("reason", "")
        how = "done" if reason == "done" else f"stopped by {reason}"
        return f"{how} after step {step}"
    if is_locked(run.folder / "lock"):
        return f"training; {reached} so far"
    if run.record is None:
        return f"ended or training (record.json not found); {reached}"
    return f"ended unexpectedly after {reached}"


def is_locked(file: Path) -> bool:
    """Returns whether a process holds the lock of a run's folder."""
    try:
        with file.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False
