"""The class Flow."""

import atexit
import copy
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from millrace import _flow

Stage = str | Mapping[str, Any] | Callable[[_flow.Sample], _flow.Sample | bool]
"""A stage of a flow: its name; its table, such as {"type": "flip", "probability": 0.5}; or a function
that is called with each sample and returns it, or whether to keep it."""

_VERSION = 1
_NO_WORKERS = (
    "a millrace flow is made by threads of this process, so DataLoader's worker processes have "
    "nothing to do: each would make the same batches again, and send them through a pipe. Use "
    "DataLoader(flow, batch_size=None, num_workers=0), or the flow itself; `threads` says how many "
    "threads make batches"
)


class State(TypedDict):
    """A place in a flow, and what the flow must be for the same bytes to follow. Plain values: it
    may be pickled, saved with torch.save or written as JSON."""

    version: int
    training: bool
    next: int
    pending: list[int]
    batches: int
    progress: float
    seed: int
    facts: dict[str, str]


class Flow:
    """Batches for training, endless and shuffled, or with `training=False` each image of the
    validation split once, by ascending id. Iterating gives `Batch`es up to the end of the epoch,
    and the next time those of the next epoch; an evaluation begins anew each time.

    It is a torch.utils.data.IterableDataset where torch has been imported before
    (`DataLoader(flow, batch_size=None)` takes it). Several threads may take batches, each gets
    others. A flow does not live on in a forked process; pickling one makes another at its place.

    The threads start with the first batch and end with `close`, at the end of a `with` block, or
    when the flow is no longer used. Batches outlive their flow."""

    def __init__(
        self,
        config: str | os.PathLike[str] | None = None,
        /,
        *,
        training: bool = True,
        seed: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        stages: Sequence[Stage] | None = None,
        **options: Any,
    ) -> None:
        """
        config: a TOML file as `trainer run` takes it; its `[data]` and `train.seed` count. Plug-ins
            that it names are not opened.
        seed: of order, flips and all other draws; by default the file's, else 1.
        rank, world_size: this process's part; by default torch.distributed's where that is
            initialised, else all (0 of 1). Each rank gets its own `batch_size` images of a step.
        stages: what becomes of each image, by default read, decode, flip, resize_shortest_edge,
            group_by_aspect_ratio, pad.
        options: any key of `[data]`: root, train, val, classes, batch_size, test_batch_size,
            short_side, max_side, flip, threads, memory, on_error ... (`millrace.data.describe()`
            explains each). They come before what the file says.

        ValueError, with the key, for options or data that cannot work; RuntimeError for annotations
        that cannot be read. Images are first read for the first batch."""
        if (rank is None) != (world_size is None):
            raise ValueError("rank and world_size go together")
        if rank is None or world_size is None:
            rank, world_size = _place_among_ranks()
        self._arguments: dict[str, Any] = {
            "config": config,
            "training": training,
            "seed": seed,
            "rank": rank,
            "world_size": world_size,
            "stages": stages,
            **options,
        }
        functions: list[Any] = []
        if stages is not None:
            options["stages"] = [_table(stage, functions) for stage in stages]
        self._training = training
        self._rank, self._world_size = rank, world_size
        self._lock = threading.Lock()
        self._at: tuple[int, list[int]] = (0, [])
        self._batches = 0
        self._progress = 0.0
        self._goes_on = True  # an evaluation, from where it stands, with the next iteration
        file = "" if config is None else os.fspath(config)
        self._flow = _flow.Flow(file, options, seed, training, rank, world_size, functions)
        _open_flows.add(self)
        if "torch.utils.data" in sys.modules:
            self.__class__ = _torch_class(type(self))

    def __iter__(self) -> Iterator[_flow.Batch]:
        """The batches up to the end of this epoch; of an evaluation, all, or those after a state
        that was loaded. One that was broken off goes on with the next loop; an evaluation does not.

        RuntimeError from a worker of DataLoader. See `next` for others."""
        _refuse_workers()
        if not self._training and not self._goes_on:
            self._seek(0, [], 0, 0.0)
        self._goes_on = False
        return self._epoch()

    def _epoch(self) -> Iterator[_flow.Batch]:
        epoch = int(self._progress)
        while not self._training or int(self._progress) == epoch:
            batch = self.next()
            if batch is None:
                return
            yield batch

    def endless(self) -> Iterator[_flow.Batch]:
        """All batches that follow, over the ends of epochs (`Batch.epoch`, `Batch.progress`)."""
        while (batch := self.next()) is not None:
            yield batch

    def next(self) -> _flow.Batch | None:
        """The next batch, whatever its epoch; None at the end of an evaluation. Waits without the
        interpreter's lock; Ctrl-C ends the waiting.

        DataError with on_error="fail" for an image that cannot be used; RuntimeError, naming the
        sample, for what a stage throws (a function's own exception is its cause), if more images
        than `max_skipped` cannot be used, if no data server answers, in a forked process, and
        after `close`. The same error comes again until a state is loaded."""
        batch = self._flow.next()
        if batch is not None:
            with self._lock:
                if batch.number + 1 > self._batches:
                    self._at = batch.cursor
                    self._batches = batch.number + 1
                    self._progress = batch.progress
        return batch

    def state_dict(self) -> State:
        """The place after the last batch that was taken. Any rank's state serves all ranks, and
        any number of them. The first call reads every annotation once, to identify the data."""
        facts = self._flow.facts()
        with self._lock:
            place, pending = self._at
            return {
                "version": _VERSION,
                "training": self._training,
                "next": place,
                "pending": list(pending),
                "batches": self._batches,
                "progress": self._progress,
                "seed": self._flow.seed,
                "facts": facts,
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on after the batch at which `state` was taken, byte for byte.

        ValueError that says what differs, for a state of other data, options that decide the bytes,
        or seed; or that is none."""
        self._check(state)
        self._seek(state["next"], list(state["pending"]), state["batches"], state["progress"])
        self._goes_on = True

    def _check(self, state: Mapping[str, Any]) -> None:
        missing = [key for key in State.__annotations__ if key not in state]
        if missing:
            raise ValueError(f"this is no state of a flow: it has no '{missing[0]}'")
        if state["version"] != _VERSION:
            raise ValueError(f"this state has version {state['version']}, not {_VERSION}")
        ours: dict[str, Any] = {
            "training": self._training,
            "seed": self._flow.seed,
            **self._flow.facts(),
        }
        theirs = {"training": state["training"], "seed": state["seed"], **state["facts"]}
        differences = [
            f"{key} is {theirs.get(key, 'missing')} in the state and {ours.get(key, 'missing')} here"
            for key in sorted(ours.keys() | theirs.keys())
            if ours.get(key) != theirs.get(key)
        ]
        if differences:
            raise ValueError("this state is of another flow: " + "; ".join(differences))

    def _seek(self, place: int, pending: list[int], batches: int, progress: float) -> None:
        try:
            self._flow.seek(place, pending, batches)
        except TypeError:
            raise ValueError(f"a state with the place {place!r}, {pending!r} is none") from None
        with self._lock:
            self._at = (place, pending)
            self._batches = batches
            self._progress = progress

    @property
    def epoch(self) -> int:
        """The epoch that the next batch belongs to, from 0."""
        return int(self._progress)

    @property
    def epoch_size(self) -> int | None:
        """Images of an epoch, over all ranks; None if only data servers know the data."""
        return self._flow.samples

    @property
    def classes(self) -> list[str]:
        """Names; label k is the k-th."""
        return self._flow.classes

    @property
    def category_ids(self) -> list[int]:
        """Of an evaluation: the id in the annotation file of each class, for results."""
        return self._flow.category_ids

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def world_size(self) -> int:
        return self._world_size

    def config(self) -> str:
        """The options, complete, as TOML: a file with this text makes the same flow (functions that
        are stages apart)."""
        return self._flow.config()

    def report(self) -> dict[str, Any]:
        """What the flow has done since it started: `stages`, each with its name, items, busy_s
        (seconds, summed over threads) and items that wait now; `skipped` images with the first
        `skipped_reasons`, `filtered` ones; `wait_s`, the time that `next` has waited."""
        return self._flow.report()

    def dataset(self) -> Any:
        """This flow as a torch.utils.data.IterableDataset; imports torch, if that has not been."""
        import torch.utils.data  # noqa: F401

        self.__class__ = _torch_class(type(self))
        return self

    def close(self) -> None:
        """Ends the threads. Batches stay valid."""
        self._flow.close()

    def __enter__(self) -> "Flow":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return _remade, (copy.copy(self._arguments), self.state_dict())

    def __repr__(self) -> str:
        kind = "training" if self._training else "evaluation"
        return f"<millrace.data.Flow for {kind}, {self.epoch_size} images, batch {self._batches}>"


def _remade(arguments: dict[str, Any], state: State) -> Flow:
    arguments = dict(arguments)
    flow = Flow(arguments.pop("config"), **arguments)
    flow.load_state_dict(state)
    return flow


def _table(stage: Stage, functions: list[Any]) -> dict[str, Any]:
    if isinstance(stage, str):
        return {"type": stage}
    if isinstance(stage, Mapping):
        return dict(stage)
    if not callable(stage):
        raise ValueError(
            f"Flow(stages=...): a stage is a name, a dict or a function, not {stage!r}"
        )
    functions.append(stage)
    name = getattr(stage, "__qualname__", type(stage).__qualname__)
    return {"type": "python", "function": f"{getattr(stage, '__module__', '')}.{name}"}


def _place_among_ranks() -> tuple[int, int]:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _refuse_workers() -> None:
    data = sys.modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None:
        raise RuntimeError(_NO_WORKERS)


@functools.cache
def _torch_class(of: type) -> type:
    """`of`, which is also an IterableDataset. REQUIRES: torch.utils.data is imported."""
    dataset = sys.modules["torch.utils.data"].IterableDataset
    if issubclass(of, dataset):
        return of
    return type(of.__name__, (of, dataset), {"__module__": of.__module__, "__doc__": of.__doc__})


_open_flows: "weakref.WeakSet[Flow]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """No thread may want the interpreter once that has gone."""
    for flow in list(_open_flows):
        flow.close()
