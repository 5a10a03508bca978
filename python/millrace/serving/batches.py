"""The class Batches."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from millrace import _flow
from millrace.data.stream import State, Stream, place_among_ranks


class Batches(Stream):
    """Training batches from data servers (`Server`, `trainer serve`), endless; an iteration yields
    the batches up to the end of the epoch. `state_dict` and the other methods are those of
    `millrace.data.Flow`; a state is valid for any servers with the same data and configuration.

    It is a torch.utils.data.IterableDataset if torch was imported before."""

    def __init__(
        self,
        servers: str | Sequence[str],
        *,
        seed: int = 1,
        rank: int | None = None,
        world_size: int | None = None,
        key: str | os.PathLike[str] | None = None,
        server_key: str | os.PathLike[str] | None = None,
        timeout: float = 300.0,
        memory: int = 2048,
        max_skipped: float = 0.1,
    ) -> None:
        """
        servers: tcp://HOST:PORT or ipc://FILE, one or several. Faster servers get more requests;
            servers may stop and restart. All must have the same data as the first that answers.
        seed: seed of the stream. rank, world_size: as for `millrace.data.Flow`.
        key, server_key: files with our secret key and the servers' public key, if they require
            keys (`make_keys`).
        timeout: seconds after which waiting fails if no server answers.
        memory: maximum MiB of batches that wait. max_skipped: maximum share of an epoch's images
            that are unusable.

        Raises ValueError for invalid values; connects with the first batch, which raises
        RuntimeError if no server answers for `timeout`, or if all servers reject the request, with
        their reasons."""
        rank, world_size = place_among_ranks(rank, world_size)
        self._arguments: dict[str, Any] = {
            "servers": servers,
            "seed": seed,
            "rank": rank,
            "world_size": world_size,
            "key": key,
            "server_key": server_key,
            "timeout": timeout,
            "memory": memory,
            "max_skipped": max_skipped,
        }
        options: dict[str, Any] = {
            "source": [servers] if isinstance(servers, str) else list(servers),
            "source_timeout": f"{timeout} seconds",
            "memory": memory,
            "max_skipped": max_skipped,
        }
        if key is not None:
            options["source_key"] = key
        if server_key is not None:
            options["source_server_key"] = server_key
        self._served = _flow.Served(options, seed, rank, world_size)
        super().__init__(self._served, True, rank, world_size)

    @property
    def facts(self) -> dict[str, str]:
        """The properties that the servers report for their batches, by name: "classes",
        "data.batch_size", "samples" ...; empty before the first batch."""
        return self._served.facts()

    def _seed(self) -> int:
        return self._served.seed

    def _facts_for(self, facts: Mapping[str, str]) -> Mapping[str, str]:
        known = self._served.facts()
        if known and facts:
            return known
        self._served.expect(dict(facts))  # rejects servers whose facts differ
        return facts

    def __reduce__(self) -> Any:
        return _remade, (dict(self._arguments), self.state_dict())

    def __repr__(self) -> str:
        return f"<millrace.serving.Batches of {self._arguments['servers']}, batch {self._batches}>"


def _remade(arguments: dict[str, Any], state: State) -> Batches:
    batches = Batches(**arguments)
    batches.load_state_dict(state)
    return batches
