"""`trainer diff`: compares the inputs and results of two runs.

python -m millrace.diff RUN RUN [--json]
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from . import _command
from ._command import Failure, counted, print_json, print_text
from ._runs import Metrics, Run, at, is_number, leaves, number_at, read_runs
from ._toml import value_text

Difference = dict[str, str]  # "what" differs; its value in "a" and in "b"
Decides = Callable[[str, dict[str, Any]], bool]  # True if a configuration key affects results

MATHS = ("ONEDNN_", "DNNL_", "MKL_", "OPENBLAS_", "ATEN_", "TORCH_", "NVIDIA_", "CUBLAS_", "NCCL_")


class DecidingKeys:
    """Determines which configuration keys affect results, from `trainer list --json`."""

    def __init__(self, listed: dict[str, Any]) -> None:
        self._keys = {
            f"{table['name']}.{option['name']}": option["decides_results"]
            for table in listed["tables"]
            for option in table["options"]
        }
        self._callbacks = {one["name"]: one for one in listed["callbacks"]}

    def __call__(self, key: str, config: dict[str, Any]) -> bool:
        """Returns True if the key affects results, and for keys of unknown options."""
        if not key.startswith("callbacks."):
            return bool(self._keys.get(key, True))
        _, name, *option = key.split(".", 2)
        callback = self._callbacks.get(at(config, "callbacks", name, "type") or name)
        if callback is None or not option:
            return True
        if f"callbacks.NAME.{option[0]}" in self._keys:  # a key of every callback
            return bool(callback["decides_results"])
        first = option[0].split(".")[0]
        return any(o["decides_results"] for o in callback["options"] if o["name"] == first)


def deciding_keys() -> DecidingKeys:
    command = [_command.trainer(), "list", "--json"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        raise Failure(f"{' '.join(command)}: {listed.stderr.strip()}")
    return DecidingKeys(json.loads(listed.stdout))


@dataclass
class Facts:
    """The inputs in which two runs differ, over all launches of each run."""

    a: Run
    b: Run
    deciding: list[Difference] = field(default_factory=list)
    others: list[Difference] = field(default_factory=list)

    def add(self, what: str, decides: bool, a: str, b: str) -> None:
        if a != b:
            (self.deciding if decides else self.others).append({"what": what, "a": a, "b": b})

    def each(self, what: str, decides: bool, find: Callable[[Run], Iterable[str]]) -> None:
        """Compares what `find` returns for each run."""
        a, b = (", ".join(sorted(set(find(run)))) or "not recorded" for run in (self.a, self.b))
        self.add(what, decides, a, b)

    def members(self, table: str, decides: Callable[[str], bool]) -> None:
        """Compares the members of a table that each launch recorded."""
        runs = (self.a, self.b)
        names = {name for run in runs for start in run.starts() for name in start.get(table) or {}}
        for name in sorted(names):
            a, b = (", ".join(sorted(set(of_starts(table, name)(run)))) for run in runs)
            self.add(name, decides(name), a or "nothing", b or "nothing")

    def configuration(self, decides: Decides) -> None:
        both = [{key: value_text(value) for key, value in leaves(run.config)}
                for run in (self.a, self.b)]  # fmt: skip
        # Paths are left out if the records have digests of the contents.
        knows_data = all(list(data_of("train")(run)) for run in (self.a, self.b))
        knows_weights = all(
            run.starts() and all("weights" in start for start in run.starts())
            for run in (self.a, self.b)
        )
        for key in sorted(both[0].keys() | both[1].keys()):
            a, b = (values.get(key, "") for values in both)
            does = decides(key, (self.b if b else self.a).config)
            if key in ("data.root", "data.train", "data.classes"):
                does = not knows_data
            if key == "model.weights":
                does = not knows_weights
            self.add(key, does, a or "nothing", b or "nothing")


def fact_text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def of_starts(*path: str) -> Callable[[Run], Iterable[str]]:
    def find(run: Run) -> Iterable[str]:
        values = (at(start, *path) for start in run.starts())
        return (fact_text(value) for value in values if value is not None)

    return find


def of_ranks(key: str) -> Callable[[Run], Iterable[str]]:
    def find(run: Run) -> Iterable[str]:
        ranks = (rank for start in run.starts() for rank in start.get("ranks") or [])
        values = (at(rank, key) for rank in ranks)
        return (fact_text(value) for value in values if value is not None)

    return find


def data_of(split: str) -> Callable[[Run], Iterable[str]]:
    """Returns "118287 samples, digest 0123..., annotations 4567..." for each launch."""

    def find(run: Run) -> Iterable[str]:
        for start in run.starts():
            data = at(start, "data", split)
            if data is None:
                continue
            samples, digest = (fact_text(at(data, key)) for key in ("samples", "digest"))
            text = f"{samples} samples, digest {digest}"
            annotations = at(data, "annotations")
            if isinstance(at(annotations, "digest"), str):
                text += f", annotations {annotations['digest']}"
            elif annotations is not None:
                text += f", annotations of {fact_text(at(annotations, 'bytes'))} bytes"
            yield text

    return find


def facts_diff(a: Run, b: Run, decides: Decides) -> Facts:
    facts = Facts(a, b)
    facts.configuration(decides)
    facts.each("data of training", True, data_of("train"))
    facts.each("data of validation", True, data_of("val"))
    facts.each("bytes of model.weights", True, of_starts("weights", "digest"))
    facts.each("program", True, of_starts("program"))
    facts.members("versions", lambda name: name not in ("mpi", "system", "onetbb"))
    # With train.micro_batch, results do not depend on the number of ranks.
    any_ranks = all(number_at(run.config, "train", "micro_batch") > 0 for run in (a, b))
    facts.each("ranks", not any_ranks, lambda run: (
        str(len(start["ranks"])) for start in run.starts() if isinstance(start.get("ranks"), list)
    ))  # fmt: skip
    facts.each("devices", True, lambda run: (one.split(":")[0] for one in of_ranks("device")(run)))
    facts.each("processors", True, of_ranks("processor"))
    facts.each("instructions", True, of_ranks("instructions"))
    facts.each("threads of maths", True, of_ranks("maths_threads"))
    facts.members("environment", lambda name: name.startswith(MATHS))
    facts.each("hosts", False, of_ranks("host"))
    facts.each("memory of hosts (MiB)", False, of_ranks("memory_mib"))
    facts.each("directory", False, of_starts("directory"))
    facts.each("command", False, of_starts("command"))
    files = (at(run.record, "config_file") or "" for run in (a, b))
    facts.add("configuration file", False, *files)
    facts.each("revision of the configuration", False, of_starts("repository", "revision"))
    return facts


class Parted(NamedTuple):
    """The first metric value that differs between the runs."""

    step: int
    name: str
    a: float
    b: float


@dataclass
class MetricsDiff:
    """The first difference between the metrics of two runs, except metrics of time."""

    compared: int = 0  # number of values for the same steps in both runs
    same_to: int = 0  # the last step up to which all values are equal
    first: Parted | None = None


def by_window(metrics: Metrics, name: str) -> dict[tuple[int, int], float]:
    """Returns the values by the steps that each covers: from after the previous value to its own
    step."""
    windows, before = {}, 0
    for step, _, value in metrics.of(name):
        windows[before, step] = value
        before = step
    return windows


def metrics_diff(a: Metrics, b: Metrics) -> MetricsDiff:
    """Compares values that cover the same steps in both runs, bit for bit."""
    diff, same, different = MetricsDiff(), set(), []
    for name in sorted(a.by_name):
        if name.startswith("time/"):
            continue
        others = by_window(b, name)
        for window, value in sorted(by_window(a, name).items(), key=lambda one: one[0]):
            if window not in others:
                continue
            diff.compared += 1
            theirs = others[window]
            if value == theirs or (math.isnan(value) and math.isnan(theirs)):
                same.add(window[1])
            else:
                different.append(Parted(window[1], name, value, theirs))
    if different:
        diff.first = min(different, key=lambda one: (one.step, one.name != "loss",
                                                     not one.name.startswith("loss")))  # fmt: skip
    steps = (step for step in same if diff.first is None or step < diff.first.step)
    diff.same_to = max(steps, default=0)
    return diff


def weights_diff(a: Run, b: Run) -> dict[str, Any] | None:
    """Compares the SHA-256 of the newest checkpoint of a step that both runs have; None if not
    found."""

    def checkpoints(run: Run) -> dict[int, Path]:
        found = run.folder.glob("checkpoints/step-*/model.safetensors")
        names = {file.parent.name[5:]: file for file in found}
        return {int(step): file for step, file in names.items() if step.isdecimal()}

    of_a, of_b = checkpoints(a), checkpoints(b)
    both = of_a.keys() & of_b.keys()
    if not both:
        return None
    step = max(both)
    return {"step": step, "a": digest(of_a[step]), "b": digest(of_b[step])}


def digest(file: Path) -> str:
    sha = hashlib.sha256()
    with file.open("rb") as stream:
        while piece := stream.read(1 << 20):
            sha.update(piece)
    return sha.hexdigest()


def figures(a: Run, b: Run) -> list[dict[str, Any]]:
    """Compares steps, the last loss and scores, speed, time by part, memory, energy and cost."""
    made = []

    def add(name: str, of: Callable[[Run], float]) -> None:
        values = of(a), of(b)
        if not all(math.isnan(value) for value in values):
            made.append({"name": name, "a": values[0], "b": values[1]})

    def used(name: str, *path: str, unit: float = 1) -> None:
        add(name, lambda run: number_at(run.record, "used", *path) / unit)

    add("step", lambda run: float(run.metrics.last_step))
    add("loss", lambda run: last_of(run, "loss"))
    for score in ("bbox/AP", "segm/AP"):
        add(score, lambda run, score=score: last_of(run, score))  # type: ignore[misc]
        add(f"best {score}", lambda run, score=score: max(  # type: ignore[misc]
            (one.value for one in run.metrics.of(score) if not math.isnan(one.value)),
            default=math.nan,
        ))  # fmt: skip
    add("images/s", images_per_s)
    used("time (s)", "wall_s")
    used("CPU time (s)", "cpu_s")
    timed = (run for run in (a, b) if not math.isnan(number_at(run.record, "used", "wall_s")))
    for part in next((parts for run in timed if (parts := at(run.record, "used", "parts"))), {}):
        used(f"  {part} (s)", "parts", part, "wall_s")
    add("peak memory of a rank (MiB)", peak_memory_mib)
    used("energy of processors (kWh)", "energy_j", unit=3.6e6)
    used("price", "price")
    return made


def last_of(run: Run, metric: str) -> float:
    values = run.metrics.of(metric)
    return values[-1].value if values else math.nan


def images_per_s(run: Run) -> float:
    """Returns the mean over the log's intervals except the first, which is warm-up."""
    values = [one.value for one in run.metrics.of("time/images_per_s")]
    values = values[1:] or values
    return sum(values) / len(values) if values else math.nan


def peak_memory_mib(run: Run) -> float:
    """Returns the maximum over all ranks."""
    of_ranks = at(run.record, "used", "peak_memory_mib")
    if of_ranks is None:  # written by an earlier version
        of_ranks = [(run.ended() or {}).get("peak_memory_mib")]
    known = [float(one) for one in of_ranks if is_number(one) and one > 0]
    return max(known, default=math.nan)


def excuse(runs: Iterable[Run]) -> str:
    """Returns why equal inputs may produce different bytes; empty if they must not."""
    for run in runs:
        deterministic = at(run.config, "train", "deterministic")
        if not isinstance(deterministic, bool):
            return f"the configuration of {run.name} does not contain train.deterministic"
        if not deterministic:
            return "train.deterministic = false"
        if at(run.config, "callbacks", "live_edit") is not None:
            return "[callbacks.live_edit] allows changes during training"
    return ""


class RunsDiff:
    def __init__(self, a: Run, b: Run, decides: Decides) -> None:
        self.runs = a, b
        self.facts = facts_diff(a, b, decides)
        self.metrics = metrics_diff(a.metrics, b.metrics)
        self.weights = weights_diff(a, b)
        self.figures = figures(a, b)
        weights = self.weights
        self.parted = bool(self.metrics.first or (weights and weights["a"] != weights["b"]))

    def is_bug(self) -> bool:
        return not self.facts.deciding and self.parted and not excuse(self.runs)

    def verdict(self) -> str:
        if deciding := self.facts.deciding:
            names = ", ".join(one["what"] for one in deciding)
            return f"the runs differ in inputs that decide results: {names}"
        same = "all inputs that decide results are equal"
        if not self.parted:
            if self.metrics.compared == 0 and not self.weights:
                return f"{same}; no results to compare yet"
            return f"{same}, and the results are equal"
        if why := excuse(self.runs):
            return f"{same}, but the results differ, as expected: {why}"
        return (
            f"{same}, but the results differ: this is a bug in Millrace; please report it with "
            "this output, both record.json and config.toml"
        )

    def to_json(self) -> dict[str, Any]:
        first = self.metrics.first
        return {
            "deciding": self.facts.deciding,
            "others": self.facts.others,
            "metrics": {
                "compared": self.metrics.compared,
                "same_to": self.metrics.same_to,
                "first": first and first._asdict(),
            },
            "weights": self.weights,
            "figures": self.figures,
            "is_bug": self.is_bug(),
            "verdict": self.verdict(),
        }

    def print_text(self) -> None:
        a, b = self.runs
        print(f"{a.name} ({a.standing}) | {b.name} ({b.standing})\n")
        for run in self.runs:
            for remark in run.remarks:
                print(f"{run.name}: {remark}")
        for title, all_differences in (("decides results", self.facts.deciding),
                                       ("does not decide results", self.facts.others)):  # fmt: skip
            print_text(title + ("" if all_differences else ": no difference"))
            for one in all_differences:
                print_text(f"  {one['what']}: {one['a']} | {one['b']}", "      ")
        width = max(len(a.name), len(b.name), 12) + 2
        print(f"\n{metrics_text(self.metrics)}\n{weights_text(self.weights)}\n")
        print(f"{'':<30}{a.name:>{width}}{b.name:>{width}}")
        for figure in self.figures:
            of_a, of_b = (number_text(figure[run]) for run in "ab")
            print(f"{figure['name']:<30}{of_a:>{width}}{of_b:>{width}}")
        print(f"\n{self.verdict()}")


def number_text(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.6g}"


def metrics_text(metrics: MetricsDiff) -> str:
    if metrics.compared == 0:
        return "metrics: no values of the same steps yet"
    if metrics.first is None:
        values = counted(metrics.compared, "value")
        return f"metrics: all {values} equal up to step {metrics.same_to}"
    step, name, a, b = metrics.first
    before = f"equal up to step {metrics.same_to}; " if metrics.same_to else ""
    values = f"{number_text(a)} | {number_text(b)}"
    return f"metrics: {before}{name} differs at step {step} by {abs(a - b):.3g}: {values}"


def weights_text(weights: dict[str, Any] | None) -> str:
    if not weights:
        return "weights: no checkpoint of the same step"
    if weights["a"] != weights["b"]:
        return f"weights: different after step {weights['step']}"
    return f"weights: equal after step {weights['step']} (SHA-256 {weights['a']})"


def main() -> int:
    doc = "Show how two runs differ, and whether that affects results"
    arguments = _command.Arguments("diff", doc)
    add = arguments.add_argument
    add("run", nargs=2, metavar="RUN", help="run folder; the run may still be running")
    add("--json", action="store_true", help="print only one JSON object, on one line")
    given = arguments.read()
    a, b = read_runs(given.run)
    diff = RunsDiff(a, b, deciding_keys())
    if given.json:
        print_json({"a": given.run[0], "b": given.run[1], **diff.to_json()})
    else:
        diff.print_text()
    return _command.DONE


if __name__ == "__main__":
    _command.run(main)
