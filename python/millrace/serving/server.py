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
    """Provides training batches to other processes and machines, as `trainer serve` does. Each
    consumer requests a seed, rank and position; the server has the data and all other options. It
    listens once constructed, and answers during `run`."""

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
        config, options: as for `millrace.data.Flow`, without functions as stages.
        bind: tcp://ADDRESS:PORT or ipc://FILE; other machines only with keys or `insecure`.
        key: file with the server's secret key. allow: consumers' public keys, files or folders of
            them.
        consumers: maximum number of concurrent consumers; each needs the memory of a flow.

        Raises ValueError for invalid options, keys or data; RuntimeError if it cannot listen."""
        functions: list[Any] = []
        if "stages" in options:
            options["stages"] = [stage_table(stage, functions) for stage in options["stages"]]
        if functions:
            raise ValueError(f"stages: a server does not support functions: {functions[0]!r}")
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
        """The address, with the port that the system chose for `tcp://127.0.0.1:*`."""
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
        """Ends `run` within a fraction of a second. Thread-safe."""
        self._server.stop()


_running: dict[Server, threading.Thread] = {}


@atexit.register
def _stop_all() -> None:
    """Stops all servers, since threads must not use the interpreter after it ends."""
    for server, thread in list(_running.items()):
        server.stop()
        thread.join(timeout=5)


def make_keys(name: Path) -> None:
    """Creates a key pair: NAME.key, the secret key, readable only by its owner, and NAME.pub, for
    the other side. Raises RuntimeError if either file already exists or cannot be written."""
    _flow.make_keys(name)
