"""JSON files that were read in C++ and may be read again as Python objects later."""

from __future__ import annotations

import errno
import json
import os
import select
import stat
import weakref
from collections.abc import Iterator
from typing import Any

_LONGEST_PIPE = 1 << 32  # bytes, as in C++
_WRITER_TIMEOUT_MS = 10_000


class JsonFile:
    """An open JSON file, which stays readable after its name is removed or replaced."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the file. Raises OSError, also for a device, whose data may never end."""
        self.path = os.fspath(path)
        # Opening a pipe does not wait for its writer.
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        weakref.finalize(self, os.close, self._descriptor)
        mode = os.fstat(self._descriptor).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISDIR(mode)):
            raise OSError(errno.EINVAL, "is a device, not a file", self.path)
        self._stamp = self._now()

    def _now(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns

    @property
    def is_regular(self) -> bool:
        """False for a pipe, which can be read only once."""
        return stat.S_ISREG(os.fstat(self._descriptor).st_mode)

    def load(self) -> Any:
        """Returns the content. Raises ValueError if it is not JSON, RuntimeError if the file was
        rewritten."""
        if not self.is_regular:
            return self._parsed(b"".join(self._parts_of_pipe()))
        if self._now() != self._stamp:
            raise RuntimeError(
                f"{self.path}: rewritten after it was read; access COCO.dataset earlier, or "
                "write to a new file"
            )
        parts, begin = [], 0
        while part := os.pread(self._descriptor, 1 << 28, begin):
            parts.append(part)
            begin += len(part)
        return self._parsed(b"".join(parts))

    def _parsed(self, text: bytes) -> Any:
        try:
            return json.loads(text)
        except json.JSONDecodeError as problem:
            # A file name may contain control characters.
            shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in os.fsdecode(self.path))
            raise json.JSONDecodeError(
                f"{shown}: {problem.msg}", problem.doc, problem.pos
            ) from None

    def _parts_of_pipe(self) -> Iterator[bytes]:
        """Reads a pipe; stops early if the beginning is not JSON."""
        event = select.poll()
        event.register(self._descriptor, select.POLLIN)
        size, has_writer, waited = 0, False, False
        while True:
            try:
                part = os.read(self._descriptor, 1 << 20)
            except BlockingIOError:
                has_writer = True
                event.poll()
                continue
            if part:
                yield part
                if size == 0 and part.strip() and part.lstrip()[:1] not in b"[{":
                    return
                size += len(part)
                if size > _LONGEST_PIPE:
                    raise ValueError(f"{self.path}: more than {_LONGEST_PIPE} bytes")
                has_writer = True
            elif has_writer:
                return
            elif waited:
                raise OSError(errno.EPIPE, "no process writes to this pipe", self.path)
            else:
                waited = True
                has_writer = bool(event.poll(_WRITER_TIMEOUT_MS))
