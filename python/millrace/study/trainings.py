"""Trains the runs of a study in child processes (`trainer run`)."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from .. import _command
from .._command import Failure, WrongUse, counted, log, trainer
from .._runs import leaves, read_run, read_toml
from .._toml import value_text
from .plan import Plan, Study, StudyRun, Variant
from .text import duration_text

NAP = 0.02  # seconds
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


class StopSignals:
    """Treats SIGINT, SIGTERM, SIGHUP and SIGUSR1 as requests to stop.

    The first signal is recorded and a second signal kills this process, except SIGHUP, which a
    closed terminal may send more than once; if SIGHUP is ignored (nohup), it stays ignored.
    """

    received = ""  # "SIGTERM"

    def __init__(self) -> None:
        for number in _command.STOP_SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._note)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _command.STOP_SIGNALS)

    def _note(self, number: int, _: Any) -> None:
        if number == signal.SIGHUP and self.received:
            return
        self.received = signal.Signals(number).name
        for each in _command.STOP_SIGNALS:
            if each != signal.SIGHUP:
                signal.signal(each, signal.SIG_DFL)


def start(
    words: Sequence[str], out: int | IO[bytes], err: int | IO[bytes]
) -> subprocess.Popen[str]:
    """Starts a program that the kernel kills when this process ends for any reason.

    It has its own process group, so that a terminal's Ctrl-C does not reach it.
    """
    parent = os.getpid()

    def bind() -> None:
        # The parent may have ended before prctl.
        if LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0 or os.getppid() != parent:
            os._exit(127)
        os.setpgid(0, 0)

    try:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                preexec_fn=bind, encoding="utf-8", errors="replace")  # fmt: skip
    except OSError as problem:
        raise Failure(f"{words[0]} cannot be started: {problem.strerror}") from None


def failure_of(program: subprocess.Popen[str]) -> str:
    """Returns "exit code 3" or "signal 9 (Killed)"; empty on success."""
    code = program.returncode
    if code < 0:
        return f"signal {-code} ({signal.strsignal(-code)})"
    return f"exit code {code}" if code else ""


def last_words(output: str) -> str:
    """Returns the error that a program printed, otherwise its last line."""
    lines = [line for line in output.splitlines() if line]
    errors = [line for line in lines if line.startswith("trainer: error: ")]
    return errors[-1].removeprefix("trainer: error: ") if errors else (lines or [""])[-1]


def with_settings(words: Sequence[str], *settings: Sequence[str]) -> list[str]:
    """Adds --set K=V for each setting."""
    return [*words, *(word for some in settings for one in some for word in ("--set", one))]


def complete_configuration(plan: Plan, variant: Variant) -> dict[str, str]:
    """Returns all values of a variant, as TOML by key. Raises WrongUse if `trainer config`
    fails."""
    words = with_settings([trainer(), "config", plan.config_file], plan.settings, variant.settings)
    config = start(words, subprocess.PIPE, subprocess.PIPE)
    out, err = config.communicate()
    if failure := failure_of(config):
        raise WrongUse(last_words(err) or f"trainer config: {failure}")
    values = {key: value_text(value) for key, value in leaves(read_toml(out))}
    return {key: values[key] for key in values if key not in ("train.seed", "train.output")}


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise Failure(f"{folder}: cannot create the folder: {problem.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Failure(f"{folder}: folder is not writable")


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Holds a lock, which is released when the process ends. Raises Failure if another process
    holds it."""
    with file.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure(f"{file.absolute()}: in use by {_holder(lock.fileno())}") from None
        yield


def _holder(lock: int) -> str:
    """Returns "process 1234 (trainer-torch)" if found on this machine, else "another process"."""
    inode = os.fstat(lock).st_ino
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            _, kind, *_, process, place, _, _ = line.split()
            if kind == "FLOCK" and place.endswith(f":{inode}"):
                return f"process {process} ({Path(f'/proc/{process}/comm').read_text().strip()})"
    return "another process"


class Running:
    """A training run that has been started."""

    def __init__(self, run: StudyRun, words: Sequence[str], output: Path) -> None:
        self.run = run
        self.began = time.monotonic()
        log.debug("%s: %s", run.title, " ".join(words))
        with output.open("ab") as file:
            self.program = start(words, file, file)

    def seconds(self) -> float:
        return time.monotonic() - self.began


class Trainings:
    """Trains the unfinished runs, up to `jobs` at once, and keeps study.json up to date.

    Started runs resume from their newest checkpoint, failed runs are retried. A run that fails is
    logged with the end of its output, and the other runs continue. After a signal no run starts,
    and runs in progress save their state and end. Children never outlive this process.
    """

    def __init__(self, study: Study, jobs: int, signals: StopSignals) -> None:
        self.study = study
        self.jobs = jobs
        self.signals = signals
        self.settings = {one.name: one.settings for one in study.plan.variants()}
        self.waiting: list[StudyRun] = []
        self.running: list[Running] = []
        self.took: list[float] = []  # seconds, of the runs that ended in this process
        self.told = False  # the runs in progress were requested to stop

    def run(self) -> None:
        for one in self.study.runs:
            if one.state != "done":
                one.why = ""
                one.state = "done" if self._has_ended(one) else "waiting"
        self.waiting = [one for one in self.study.runs if one.state == "waiting"]
        self.study.write()
        if self.waiting:
            log.info("training %s of %s, %s at once with %s each", len(self.waiting),
                     counted(len(self.study.runs), "run"), min(self.jobs, len(self.waiting)),
                     counted(self.study.plan.maths_threads, "maths thread"))  # fmt: skip
        while self.waiting or self.running:
            if self.signals.received:
                self._stop()
            elif self.waiting and len(self.running) < self.jobs and self._may_begin():
                self._begin(self.waiting.pop(0))
                continue
            for training in [one for one in self.running if one.program.poll() is not None]:
                self.running.remove(training)
                self._end(training)
            if self.running:
                time.sleep(NAP)

    def _has_ended(self, run: StudyRun) -> bool:
        """Returns whether the end of a run is recorded and was not caused by a signal."""
        own = self.study.own_folder(run)
        try:
            ended = read_run(own).ended() if own else None
        except Failure:  # nothing is recorded yet
            return False
        return ended is not None and not str(ended.get("reason", "")).startswith("SIG")

    def _may_begin(self) -> bool:
        """Returns False while a single run creates a missing data set, so that not all runs create
        it at once."""
        root = self.study.plan.configuration.get("data.root", "")[1:-1]
        return not self.running or not root or Path(root).exists()

    def _command(self, run: StudyRun) -> list[str]:
        plan = self.study.plan
        own = [f"train.seed={run.seed}", f"train.threads={plan.maths_threads}"]
        if self.jobs > 1 and plan.configuration.get("data.threads") == "0":
            own.append(f"data.threads={max(1, len(os.sched_getaffinity(0)) // self.jobs)}")
        out = str(self.study.folder / run.folder)
        words = [trainer(), "run", plan.config_file, "--out", out, "--resume=auto"]
        return with_settings(words, plan.settings, self.settings[run.variant], own)

    def _begin(self, run: StudyRun) -> None:
        make_folder(self.study.folder / run.folder)
        if own := self.study.own_folder(run):
            wait_until_free(own / "lock")
            # A run that was killed before its first checkpoint restarts in the same folder.
            if not any((own / "checkpoints").glob("*")):
                shutil.rmtree(own)
        self.running.append(Running(run, self._command(run), self.study.output_file(run)))

    def _end(self, one: Running) -> None:
        run, code = one.run, one.program.returncode
        saved = code == _command.STOPPED_EARLY
        if code == _command.DONE:
            run.state = "done"
            self.took.append(one.seconds())
            self._log_result(run)
        elif not self.signals.received or not (saved or code < 0):
            run.state = "failed"
            run.why = failure_of(one.program)
            file = self.study.output_file(run)
            if saved:
                run.why = "stopped by a signal; state saved"
            elif words := last_words(file.read_text("utf-8", "replace")):
                run.why += f": {words}"
            log.error("%s: %s (its output: %s)", run.title, run.why, file)
        self.study.write()

    def _log_result(self, run: StudyRun) -> None:
        own = read_run(self.study.own_folder(run) or self.study.folder / run.folder)
        figures = ""
        for metric, name in (("bbox/AP", "box AP"), ("segm/AP", "mask AP")):
            if values := own.metrics.of(metric):
                figures += f"{name} {100 * values[-1].value:.2f}, "
        log.info("%s: %s%s; %s of %s done%s", run.title, figures,
                 duration_text(own.trained_seconds()), self.study.count("done"),
                 len(self.study.runs), self._time_left())  # fmt: skip

    def _time_left(self) -> str:
        """Returns ", about 1:20:00 left", estimated from the runs that ended in this process."""
        each = sum(self.took) / len(self.took)
        work = each * len(self.waiting) + sum(max(0, each - o.seconds()) for o in self.running)
        return f", about {duration_text(work / self.jobs)} left" if work > 0 else ""

    def _stop(self) -> None:
        self.waiting.clear()
        if self.told:
            return
        self.told = True
        if self.running:
            log.info("%s: %s %s their state and end", self.signals.received,
                     counted(len(self.running), "run"),
                     "saves" if len(self.running) == 1 else "save")  # fmt: skip
        for one in self.running:
            one.program.terminate()


def wait_until_free(lock: Path) -> None:
    """Waits until no process trains in a run folder.

    The runs of a killed study are killed with it, but may take a while to release their memory. If
    the wait exceeds a minute, the next run reports the process.
    """
    for _ in range(int(60 / NAP)):
        try:
            with locked(lock):
                return
        except Failure:
            time.sleep(NAP)
