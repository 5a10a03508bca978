"""The plan and state of a study: study.json in its folder.

{"format": 1, "plan": {...},
 "runs": [{"variant": "optimizer.lr=0.01", "seed": 1, "folder": "optimizer.lr=0.01-seed-1",
           "state": "done", "why": ""}, ...],
 "result": {...}}    output of `trainer study --json` after all runs
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from .._command import Failure, WrongUse

STUDY_FILE = "study.json"
FORMAT = 1


@dataclass(frozen=True)
class Varied:
    """A configuration key and the values to compare, as TOML."""

    key: str
    values: list[str]


def read_varied(text: str) -> Varied:
    """Reads "optimizer.lr=0.01,0.02"; commas in brackets, braces and quotes are part of a value."""

    def refuse(why: str) -> WrongUse:
        return WrongUse(f"--vary {text}: {why}")

    key, sign, rest = text.partition("=")
    if not sign or not key.strip():
        raise refuse("expected a key and its values, such as optimizer.lr=0.01,0.02")
    values = [part.strip() for part in _parts(rest)]
    if "" in values:
        raise refuse("contains an empty value; write '' for an empty string")
    for value in values:
        if values.count(value) > 1:
            raise refuse(f"contains {value} twice")
    if len(values) < 2:
        raise refuse("expected at least two values; use --set for the same value in all runs")
    return Varied(key.strip(), values)


def _parts(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        else:
            depth += (c in "[{") - (c in "]}")
        if c == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += c
    return parts


@dataclass(frozen=True)
class Variant:
    """One combination of values."""

    name: str  # "optimizer.lr=0.01, train.epochs=2"
    settings: list[str]  # K=V, for --set


@dataclass
class Plan:
    config_file: str  # absolute
    settings: list[str]  # for all variants
    vary: list[Varied]
    seeds: int  # train.seed is 1 .. seeds
    # train.threads of every run; weights depend on it.
    maths_threads: int = 0
    # All values of the first variant, as TOML by key, except train.seed and train.output.
    configuration: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the configuration file, after which runs are named."""
        return Path(self.config_file).stem

    def variants(self) -> list[Variant]:
        """Returns the cross product of the varied values; the last key varies fastest."""
        choices = ([f"{one.key}={value}" for value in one.values] for one in self.vary)
        products = (list(settings) for settings in itertools.product(*choices))
        return [Variant(", ".join(one) or self.name, one) for one in products]

    def differences(self, now: Plan) -> list[str]:
        """Returns the differences between this plan and `now`, as "KEY is A there and B here".

        Empty if they are equal, or equal except for more seeds. Ignores `maths_threads`.
        """

        def compared(what: str, there: object, here: object) -> Iterator[str]:
            if there != here:
                yield f"{what} is {there} there and {here} here"

        found = list(compared("the configuration's name", self.name, now.name))
        there, here = ({one.key: ",".join(one.values) for one in plan.vary} for plan in (self, now))
        varied = list(dict.fromkeys([*there, *here]))
        for key in varied:
            values = (plan.get(key, "not varied") for plan in (there, here))
            found += compared(f"--vary {key}", *values)
        if not found and list(there) != list(here):
            found.append("the keys of --vary are in another order")
        if now.seeds < self.seeds:
            found += compared("--seeds", self.seeds, now.seeds)
        for key in sorted(self.configuration.keys() | now.configuration.keys()):
            if key not in varied:
                values = (plan.configuration.get(key, "not set") for plan in (self, now))
                found += compared(key, *values)
        return found


State = Literal["waiting", "done", "failed"]  # waiting: not started, or started and not ended


@dataclass
class StudyRun:
    """One training run of a study."""

    variant: str
    seed: int
    folder: str  # relative to the study's folder; contains the run's own folder
    state: State = "waiting"
    why: str = ""  # why it failed

    @property
    def title(self) -> str:
        return f"{self.variant}, seed {self.seed}"


class Study:
    """A plan with its runs, ordered by seed, so that variants can be compared early."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        variants = plan.variants()
        names = _folder_names(plan)
        self.runs = [
            StudyRun(variant.name, seed, f"{name}-seed-{seed}" if name else f"seed-{seed}")
            for seed in range(1, plan.seeds + 1)
            for variant, name in zip(variants, names)
        ]

    def count(self, state: State) -> int:
        return sum(run.state == state for run in self.runs)

    def output_file(self, run: StudyRun) -> Path:
        """Returns the file with a run's output."""
        return self.folder / run.folder / "output.txt"

    def own_folder(self, run: StudyRun) -> Path | None:
        """Returns the newest run folder that `trainer run` created, NAME-N; None if not found."""
        pattern = re.compile(re.escape(self.plan.name) + r"-([1-9][0-9]*)")
        found = {
            int(match[1]): file
            for file in (self.folder / run.folder).glob("*")
            if (match := pattern.fullmatch(file.name)) and file.is_dir()
        }
        return found[max(found)] if found else None

    def goes_on(self, now: Plan) -> Study:
        """Returns the study extended by the additional seeds of `now`."""
        now.maths_threads = self.plan.maths_threads
        study = Study(self.folder, now)
        study.runs[: len(self.runs)] = self.runs
        return study

    def write(self, result: dict[str, Any] | None = None) -> None:
        """Replaces the file atomically."""
        json_of_all = {
            "format": FORMAT,
            "plan": asdict(self.plan),
            "runs": [asdict(run) for run in self.runs],
        }
        if result is not None:
            json_of_all["result"] = result
        text = json.dumps(json_of_all, ensure_ascii=False, indent=1)
        part = self.folder / f".{STUDY_FILE}.{os.getpid()}.part"
        try:
            with part.open("w", encoding="utf-8", errors="replace") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.folder / STUDY_FILE)
        except OSError as problem:
            part.unlink(missing_ok=True)
            reason = problem.strerror
            raise Failure(f"{self.folder / STUDY_FILE} cannot be written: {reason}") from None


def read_study(folder: Path) -> Study | None:
    """Reads the study in a folder; None if study.json is not found. Raises WrongUse if it is
    invalid."""
    file = folder / STUDY_FILE
    if not file.exists():
        return None
    try:
        saved = json.loads(file.read_text("utf-8"))
        if saved["format"] != FORMAT:
            raise WrongUse(f"{file} was written by another version of trainer")
        plan = Plan(**saved["plan"])
        plan.vary = [Varied(**one) for one in saved["plan"]["vary"]]
        study = Study(folder, plan)
        runs = [StudyRun(**one) for one in saved["runs"]]
        if [(one.variant, one.seed) for one in runs] != [
            (one.variant, one.seed) for one in study.runs
        ]:
            raise ValueError("its runs do not match its plan")
        if wrong := {one.state for one in runs} - {"waiting", "done", "failed"}:
            raise ValueError(f"invalid state of a run: {wrong.pop()!r}")
        study.runs = runs
        return study
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise WrongUse(
            f"{file} is damaged: {problem}. The study replaces it atomically, so something else "
            "changed it"
        ) from None


def _folder_names(plan: Plan) -> list[str]:
    """Returns the folders of the variants' runs, without the seed.

    Characters that a shell or a file system may reject become dashes.
    """
    names = [
        re.sub(r"(^|-)?[^0-9A-Za-z.=_-]+", lambda m: "-" if m[1] is None else m[1], one.name)
        if plan.vary
        else ""
        for one in plan.variants()
    ]
    return [
        f"variant-{i + 1}" if len(name) > 100 or names.count(name) > 1 else name
        for i, name in enumerate(names)
    ]
