"""The class Server, and keys."""

import atexit
import os
import threading
from collections.abc import Sequence
from typing import Any

from millrace import _flow
from millrace.data.flow import stage_table

Path = str | os.PathLike[str]


class Server:
    """Makes training batches for other processes and machines, as `trainer serve` does. Each
    consumer says which seed, rank and place it wants; the data and all other options are here. It
    listens from now on, and answers while it runs."""

    def __init__(
        self,
        config: Path | None = None,
        /,
        *,
        bind: str = "tcp://127.0.0.1:5555",
        key: Path | None = None,
        allow: Sequence[Path] = (),
        insecure: bool = False,
        consumers: int = 64,
        **options: Any,
    ) -> None:
        """
        config, options: as of `millrace.data.Flow`, without functions as stages.
        bind: tcp://ADDRESS:PORT or ipc://FILE; beyond this machine only with keys, or `insecure`.
        key: file with the server's secret key. allow: consumers' public keys, files or folders of
            them.
        consumers: so many at once at most; each costs the memory of a flow.

        ValueError for options, keys or data that cannot work; RuntimeError if it cannot listen."""
        functions: list[Any] = []
        if "stages" in options:
            options["stages"] = [stage_table(stage, functions) for stage in options["stages"]]
        if functions:
            raise ValueError(f"stages: a server cannot make {functions[0]!r} a stage")
        self._server = _flow.Server(
            "" if config is None else os.fspath(config),
            options,
            bind,
            None if key is None else os.fspath(key),
            [os.fspath(path) for path in allow],
            insecure,
            consumers,
        )

    @property
    def endpoint(self) -> str:
        """Where it listens, with the port that the system chose for `tcp://127.0.0.1:*`."""
        return self._server.endpoint

    def run(self) -> None:
        """Serves until `stop`, or Ctrl-C in the main thread."""
        thread = threading.current_thread()
        _running[self] = thread
        try:
            self._server.run(thread is threading.main_thread())
        finally:
            _running.pop(self, None)

    def stop(self) -> None:
        """Lets `run` end, within a fraction of a second. Any thread."""
        self._server.stop()


_running: dict[Server, threading.Thread] = {}


@atexit.register
def _stop_all() -> None:
    """No thread may want the interpreter once that has gone."""
    for server, thread in list(_running.items()):
        server.stop()
        thread.join(timeout=5)


def make_keys(name: Path) -> None:
    """Makes a key pair: NAME.key, the secret key, which only its owner may read, and NAME.pub, for
    the other side. RuntimeError if one of them exists or cannot be written."""
    _flow.make_keys(name)
