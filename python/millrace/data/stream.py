"""The common base of flows and of batches from data servers."""

import atexit
import importlib
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict, TypeVar

from millrace import _flow

_VERSION = 1
_NO_WORKERS = (
    "a millrace flow uses threads of this process and does not support worker processes of "
    "DataLoader: each would create the same batches and send them through a pipe. Use "
    "DataLoader(flow, batch_size=None, num_workers=0), or the flow itself; set the number of "
    "threads by `threads`"
)
_NO_COLLATING = (
    "a millrace flow yields whole batches, which DataLoader cannot combine; use "
    "DataLoader(flow, batch_size=None), and set the number of images by batch_size of the flow"
)


class State(TypedDict):
    """A position in a flow, and the properties that a flow must have to continue with the same
    bytes. Contains plain values, which can be pickled, saved with torch.save or written as JSON."""

    version: int
    training: bool
    next: int
    pending: list[int]
    batches: int
    progress: float
    seed: int
    facts: dict[str, str]


class Stream:
    """A sequence of batches that can start at any position. Several threads may read it; each gets
    different batches. Its worker threads start with the first batch and end with `close`, at the
    end of a `with` block, or when the stream is no longer used. Batches outlive their stream."""

    def __init__(self, stream: _flow.Stream, training: bool, rank: int, world_size: int) -> None:
        self._stream = stream
        self._training = training
        self._rank, self._world_size = rank, world_size
        self._lock = threading.Lock()
        self._takers: set[threading.Thread] = set()  # threads that are in `next`
        self._at: tuple[int, list[int]] = (0, [])
        self._batches = 0
        self._progress = 0.0
        self._goes_on = True  # the next iteration continues an evaluation
        _open_streams.add(self)
        if "torch.utils.data" in sys.modules:
            self.__class__ = _torch_class(type(self))

    def __iter__(self) -> Iterator[_flow.Batch]:
        """Iterates over the remaining batches of this epoch; in an evaluation, over all batches or
        those after a loaded state. The next loop continues an interrupted epoch; an evaluation
        restarts.

        Raises RuntimeError in a worker process of a DataLoader, and the exceptions of `next`."""
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
        """Iterates over all following batches, across epochs (`Batch.epoch`, `Batch.progress`)."""
        while (batch := self.next()) is not None:
            yield batch

    def next(self) -> _flow.Batch | None:
        """Returns the next batch, of any epoch; None at the end of an evaluation. Waits without the
        GIL; Ctrl-C ends the wait.

        Raises DataError for an unusable image if on_error="fail"; RuntimeError, naming the sample,
        if a stage throws (a function's own exception is its cause), if more than `max_skipped`
        images are unusable, if no data server answers, in a forked process, and after `close`.
        Further calls raise the same error until a state is loaded."""
        taker = threading.current_thread()
        self._takers.add(taker)
        try:
            batch = self._stream.next()
        finally:
            self._takers.discard(taker)
        if batch is not None:
            with self._lock:
                if batch.number + 1 > self._batches:
                    self._at = batch.cursor
                    self._batches = batch.number + 1
                    self._progress = batch.progress
        return batch

    def state_dict(self) -> State:
        """Returns the position after the last batch. The state of any rank is valid for all ranks,
        and for any number of ranks. The first call reads every annotation once, to identify the
        data."""
        facts = self._stream.facts()
        with self._lock:
            place, pending = self._at
            return {
                "version": _VERSION,
                "training": self._training,
                "next": place,
                "pending": list(pending),
                "batches": self._batches,
                "progress": self._progress,
                "seed": self._seed(),
                "facts": facts,
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues after the batch at which `state` was taken, with the same bytes.

        Raises ValueError, naming the difference, if the state is invalid or belongs to different
        data, a different seed or different options that affect the bytes."""
        missing = [key for key in State.__annotations__ if key not in state]
        if missing:
            raise ValueError(f"not a state of a flow: '{missing[0]}' not found")
        if state["version"] != _VERSION:
            raise ValueError(f"the state has version {state['version']}, not {_VERSION}")
        ours: dict[str, Any] = {"training": self._training, "seed": self._seed()}
        theirs = {key: state[key] for key in ours}
        ours.update(self._facts_for(state["facts"]))
        theirs.update(state["facts"])
        differences = [
            f"{key} is {theirs.get(key, 'missing')} in the state, {ours.get(key, 'missing')} here"
            for key in sorted(ours.keys() | theirs.keys())
            if ours.get(key) != theirs.get(key)
        ]
        if differences:
            raise ValueError("the state belongs to another flow: " + "; ".join(differences))
        self._seek(state["next"], list(state["pending"]), state["batches"], state["progress"])
        self._goes_on = True

    def _seed(self) -> int:
        raise NotImplementedError

    def _facts_for(self, facts: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the properties of this stream that must equal those in a state."""
        raise NotImplementedError

    def _seek(self, place: int, pending: list[int], batches: int, progress: float) -> None:
        try:
            self._stream.seek(place, pending, batches)
        except TypeError:
            raise ValueError(f"invalid position in a state: {place!r}, {pending!r}") from None
        with self._lock:
            self._at = (place, pending)
            self._batches = batches
            self._progress = progress

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, from 0."""
        return int(self._progress)

    @property
    def epoch_size(self) -> int | None:
        """Number of images per epoch, over all ranks; None until a data server reports it."""
        return self._stream.samples

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def world_size(self) -> int:
        return self._world_size

    def report(self) -> dict[str, Any]:
        """Returns statistics since the start: `stages` (or servers), each with its name, number of
        items, busy_s (seconds, summed over threads) and number of items waiting now; the number of
        `skipped` images with the first `skipped_reasons`, and of `filtered` images; `wait_s`, the
        seconds spent waiting in `next`."""
        return self._stream.report()

    def dataset(self) -> Any:
        """Makes this object a torch.utils.data.IterableDataset and returns it; imports torch if
        necessary."""
        importlib.import_module("torch.utils.data")
        self.__class__ = _torch_class(type(self))
        return self

    def close(self) -> None:
        """Ends the threads. Batches stay valid."""
        self._stream.close()

    def __enter__(self: "_Self") -> "_Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_Self = TypeVar("_Self", bound=Stream)


def place_among_ranks(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Returns the given values, otherwise torch.distributed's if it is initialised, otherwise (0,
    1)."""
    if (rank is None) != (world_size is None):
        raise ValueError("rank and world_size must be set together")
    if rank is not None and world_size is not None:
        return rank, world_size
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _refuse_workers() -> None:
    data = sys.modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None:
        raise RuntimeError(_NO_WORKERS)


def _refuse_collating(batches: Any, *, collate_fn_map: Any = None) -> Any:
    raise TypeError(_NO_COLLATING)


_torch_classes: dict[type, type] = {}


def _torch_class(of: type) -> type:
    """Returns a subclass of `of` and IterableDataset. REQUIRES: torch.utils.data is imported."""
    data = sys.modules["torch.utils.data"]
    data._utils.collate.default_collate_fn_map[_flow.Batch] = _refuse_collating
    dataset = data.IterableDataset
    if issubclass(of, dataset):
        return of
    if of not in _torch_classes:
        names = {"__module__": of.__module__, "__doc__": of.__doc__}
        _torch_classes[of] = type(of.__name__, (of, dataset), names)
    return _torch_classes[of]


_open_streams: "weakref.WeakSet[Stream]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Closes all streams, since threads must not use the interpreter after it ends. Daemon threads
    that wait for a batch get an error."""
    for stream in list(_open_streams):
        stream.close()
        others = stream._takers - {threading.current_thread()}
        while any(taker.is_alive() and taker in stream._takers for taker in others):
            time.sleep(0.001)
