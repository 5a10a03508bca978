"""The command `trainer study`."""

from __future__ import annotations

import argparse
import contextlib
import os
from pathlib import Path

from .. import _command
from .._command import Failure, WrongUse, counted, log, positive, print_json, print_text
from .plan import STUDY_FILE, Plan, Study, read_study, read_varied
from .result import Json, study_result
from .text import study_text
from .trainings import StopSignals, Trainings, complete_configuration, locked, make_folder


def plan_of(given: argparse.Namespace) -> Plan:
    """Returns the plan for a command line; checks the configuration of every variant."""
    if not given.seeds:
        raise WrongUse("--seeds is required with a configuration: the number of seeds, such as 5")
    plan = Plan(os.path.abspath(given.subject), given.settings, [], given.seeds)
    for text in given.vary:
        varied = read_varied(text)
        if varied.key in [one.key for one in plan.vary]:
            raise WrongUse(
                f"--vary {text}: {varied.key} is varied twice; list all its values in one --vary"
            )
        plan.vary.append(varied)
    for key in ("train.seed", "train.output"):
        if any(text.startswith(key + "=") for text in [*given.settings, *given.vary]):
            raise WrongUse(f"{key} cannot be set; the study sets it from --seeds and --out")
    names: dict[tuple[tuple[str, str], ...], str] = {}  # of variants, by all values
    for variant in plan.variants():
        values = complete_configuration(plan, variant)
        plan.configuration = plan.configuration or values
        same = names.setdefault(tuple(sorted(values.items())), variant.name)
        if same != variant.name:
            raise WrongUse(
                f"--vary: {same} and {variant.name} are the same configuration; remove one"
            )
    own = int(plan.configuration.get("train.threads", "0"))
    plan.maths_threads = own or max(1, len(os.sched_getaffinity(0)) // given.jobs)
    return plan


def study_in(folder: Path, plan: Plan) -> Study:
    """Reads the study in a folder, or creates a new one."""
    there = read_study(folder)
    if not there:
        return Study(folder, plan)
    if different := there.plan.differences(plan):
        raise WrongUse(
            f"{folder} has another study: {'; '.join(different)}; choose another folder by --out"
        )
    return there.goes_on(plan)


def train(given: argparse.Namespace) -> int:
    """Trains the remaining runs; returns the exit code."""
    signals = StopSignals()
    plan = plan_of(given)
    folder = Path(given.out or Path("studies") / plan.name)
    make_folder(folder)
    with locked(folder / "lock"):
        study = study_in(folder, plan)
        Trainings(study, given.jobs, signals).run()
        if signals.received:
            done = f"{study.count('done')} of {counted(len(study.runs), 'run')} done"
            log.info("stopped by %s: %s; run the same command to resume", signals.received, done)
            return _command.STOPPED_EARLY
        result = measured(study)
        study.write(result)
    show(result, given.json)
    failed = [f"{one.title} ({study.output_file(one)})"
              for one in study.runs if one.state == "failed"]  # fmt: skip
    if failed:
        raise Failure(
            f"{len(failed)} of {counted(len(study.runs), 'run')} failed: {'; '.join(failed)}; run "
            "the same command to retry"
        )
    _command.suggest_next(f"trainer report {folder}; trainer study {folder} prints this again")
    return _command.DONE


def measured(study: Study) -> Json:
    result: Json = _command.finite(study_result(study))
    return result


def show(result: Json, as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        print_text(study_text(result))


def main() -> int:
    arguments = _command.Arguments(
        "study", "Train variants of a configuration with several seeds, and compare them"
    )
    add = arguments.add_argument
    add("subject", metavar="CONFIG",
        help="configuration file (TOML), or folder of a study to print its table")  # fmt: skip
    add("--seeds", type=positive, metavar="N",
        help="number of trainings per variant, with train.seed = 1 .. N")  # fmt: skip
    add("--vary", action="append", default=[], metavar="K=A,B",
        help="values of a key to compare; if repeated, every combination is a variant. The first "
        "is the reference")  # fmt: skip
    add("--set", action="append", default=[], metavar="K=V", dest="settings",
        help="value of a configuration key in all runs; may be repeated")  # fmt: skip
    add("--out", metavar="DIR",
        help="folder of the study, to start or resume (default: studies/ and the name of "
        "CONFIG)")  # fmt: skip
    add("--jobs", type=positive, default=1, metavar="J",
        help="number of concurrent trainings, which share the cores (default: 1)")  # fmt: skip
    add("--json", action="store_true", help="print only one JSON object, on one line")
    given = arguments.read()
    folder = Path(given.subject)
    if not folder.is_dir():
        return train(given)
    _command.release_signals()
    if given.seeds or given.vary or given.settings or given.out or given.jobs != 1:
        raise WrongUse(
            f"{folder} is a folder, whose study is shown, and allows only --json; to train, name a "
            "configuration"
        )
    study = read_study(folder)
    if not study:
        raise WrongUse(f"{folder} is not a study: {STUDY_FILE} not found")
    result = measured(study)
    # Not while another process trains, since the state read here may be outdated.
    with contextlib.suppress(Failure, OSError), locked(folder / "lock"):
        study.write(result)
    show(result, given.json)
    return _command.DONE


_command.run(main, handles_signals=True)
