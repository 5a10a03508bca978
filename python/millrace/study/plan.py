"""What a study runs, and how that stands: study.json in its folder.

{"format": 1, "plan": {...},
 "runs": [{"variant": "optimizer.lr=0.01", "seed": 1, "folder": "optimizer.lr=0.01-seed-1",
           "state": "done", "why": ""}, ...],
 "result": {...}}    what `trainer study --json` prints, once all has been measured
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
    """A key of the configuration with the values that it takes in turn, as TOML."""

    key: str
    values: list[str]


def read_varied(text: str) -> Varied:
    """Reads "optimizer.lr=0.01,0.02"; commas in brackets, braces and quotes belong to a value."""

    def refuse(why: str) -> WrongUse:
        return WrongUse(f"--vary {text}: {why}")

    key, sign, rest = text.partition("=")
    if not sign or not key.strip():
        raise refuse("takes a key and its values, such as optimizer.lr=0.01,0.02")
    values = [part.strip() for part in _parts(rest)]
    if "" in values:
        raise refuse("has an empty value; write '' for an empty string")
    for value in values:
        if values.count(value) > 1:
            raise refuse(f"has {value} twice")
    if len(values) < 2:
        raise refuse("needs two values or more; --set sets a key to the same value in all runs")
    return Varied(key.strip(), values)


def _parts(text: str) -> list[str]:
    """Between commas that no bracket or quote encloses."""
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
    """One choice of values."""

    name: str  # "optimizer.lr=0.01, train.epochs=2"
    settings: list[str]  # K=V, for --set


@dataclass
class Plan:
    config_file: str  # absolute
    settings: list[str]  # of all variants
    vary: list[Varied]
    seeds: int  # train.seed is 1 .. seeds
    # train.threads of every run: weights are the same bytes only for the same number
    maths_threads: int = 0
    # All values of the first variant, as TOML by key, but train.seed and train.output
    configuration: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the configuration's file: runs are named after it."""
        return Path(self.config_file).stem

    def variants(self) -> list[Variant]:
        """The cross product of the varied values, the last key fastest."""
        choices = ([f"{one.key}={value}" for value in one.values] for one in self.vary)
        products = (list(settings) for settings in itertools.product(*choices))
        return [Variant(", ".join(one) or self.name, one) for one in products]

    def differences(self, now: Plan) -> list[str]:
        """In what `now` is another plan, as "KEY is A there and B here".

        Empty: it is the same, or the same with more seeds. `maths_threads` is no part of it.
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
            found.append("the keys of --vary come in another order")
        if now.seeds < self.seeds:
            found += compared("--seeds", self.seeds, now.seeds)
        for key in sorted(self.configuration.keys() | now.configuration.keys()):
            if key not in varied:
                values = (plan.configuration.get(key, "not set") for plan in (self, now))
                found += compared(key, *values)
        return found


State = Literal["waiting", "done", "failed"]  # waiting: not begun, or begun and not ended


@dataclass
class StudyRun:
    """One training of a study."""

    variant: str
    seed: int
    folder: str  # in the study's; the run's own folder is in it
    state: State = "waiting"
    why: str = ""  # it failed

    @property
    def title(self) -> str:
        return f"{self.variant}, seed {self.seed}"


class Study:
    """A plan with its runs, seed by seed, so that variants can be compared early."""

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
        """What a run has printed."""
        return self.folder / run.folder / "output.txt"

    def own_folder(self, run: StudyRun) -> Path | None:
        """The newest run that `trainer run` has made there, NAME-N; None: none yet."""
        pattern = re.compile(re.escape(self.plan.name) + r"-([1-9][0-9]*)")
        found = {
            int(match[1]): file
            for file in (self.folder / run.folder).glob("*")
            if (match := pattern.fullmatch(file.name)) and file.is_dir()
        }
        return found[max(found)] if found else None

    def goes_on(self, now: Plan) -> Study:
        """The same study, with runs for the seeds that `now` has more."""
        now.maths_threads = self.plan.maths_threads
        study = Study(self.folder, now)
        study.runs[: len(self.runs)] = self.runs
        return study

    def write(self, result: dict[str, Any] | None = None) -> None:
        """A reader sees the old file or the new one."""
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
    """None: there is no study.json. Raises WrongUse if it cannot be read."""
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
            raise ValueError("its runs are not those of its plan")
        if wrong := {one.state for one in runs} - {"waiting", "done", "failed"}:
            raise ValueError(f"a run's state is {wrong.pop()!r}")
        study.runs = runs
        return study
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise WrongUse(
            f"{file} is damaged: {problem}. It is only replaced as a whole, so something else has "
            "written it"
        ) from None


def _folder_names(plan: Plan) -> list[str]:
    """Of the variants' runs, less their seed.

    What is no letter or digit becomes a dash where a shell or a file system could object.
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
