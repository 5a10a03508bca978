"""The class Flow."""

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from millrace import _flow
from millrace.data.stream import State, Stream, place_among_ranks

Stage = str | Mapping[str, Any] | Callable[[_flow.Sample], _flow.Sample | bool]
"""A stage of a flow: its name; a table such as {"type": "flip", "probability": 0.5}; or a
function that is called with each sample and returns the sample, or whether to keep it."""


class Flow(Stream):
    """Training batches, endless and shuffled; with `training=False`, each image of the validation
    split once, by ascending id. Each iteration yields the `Batch`es of one epoch; an evaluation
    restarts with each iteration.

    It is a torch.utils.data.IterableDataset if torch was imported before (`DataLoader(flow,
    batch_size=None)` accepts it). A flow does not work in a forked process; unpickling creates
    another flow at the same position."""

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
        config: a TOML file as for `trainer run`; its `[data]` and `train.seed` are used. Plug-ins
            are not loaded.
        seed: seed of the order, flips and all other random choices; default: the file's, else 1.
        rank, world_size: the share of this process; default: torch.distributed's if
            initialised, else 0 and 1. Each rank gets its own `batch_size` images per step.
        stages: the transforms of each image; default: read, decode, flip, resize_shortest_edge,
            group_by_aspect_ratio, pad.
        options: any key of `[data]`: root, train, val, classes, batch_size, test_batch_size,
            short_side, max_side, flip, threads, memory, on_error ... (`millrace.data.describe()`
            explains each). They override the file.

        Raises ValueError, with the key, for invalid options or data; RuntimeError if annotations
        cannot be read. Images are not read before the first batch."""
        rank, world_size = place_among_ranks(rank, world_size)
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
            options["stages"] = [stage_table(stage, functions) for stage in stages]
        file = "" if config is None else os.fspath(config)
        self._flow = _flow.Flow(file, options, seed, training, rank, world_size, functions)
        super().__init__(self._flow, training, rank, world_size)

    def _seed(self) -> int:
        return self._flow.seed

    def _facts_for(self, facts: Mapping[str, str]) -> Mapping[str, str]:
        return self._flow.facts()

    @property
    def classes(self) -> list[str]:
        """Class names; name k belongs to label k."""
        return self._flow.classes

    @property
    def category_ids(self) -> list[int]:
        """The classes' ids in the annotation file, for the results of an evaluation."""
        return self._flow.category_ids

    def config(self) -> str:
        """Returns all options as TOML: a file with this text creates the same flow, except for
        stages that are functions."""
        return self._flow.config()

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


def stage_table(stage: Stage, functions: list[Any]) -> dict[str, Any]:
    """Converts a stage to a `[[data.stages]]` table; appends a function to `functions`."""
    if isinstance(stage, str):
        return {"type": stage}
    if isinstance(stage, Mapping):
        return dict(stage)
    if not callable(stage):
        raise ValueError(
            f"stages: expected a name, a dict or a function, not {stage!r}"
        )
    functions.append(stage)
    name = getattr(stage, "__qualname__", type(stage).__qualname__)
    return {"type": "python", "function": f"{getattr(stage, '__module__', '')}.{name}"}
