"""Files that were read in C++ and may be wanted as Python's objects later."""

from __future__ import annotations

import json
import os
import stat
import weakref
from typing import Any


class JsonFile:
    """An open JSON file; it stays readable after its name is removed or given to another file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises OSError."""
        self.path = os.fspath(path)
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)
        self._stamp = self._now()

    def _now(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns

    @property
    def is_regular(self) -> bool:
        """False for a pipe, which can be read only once."""
        return stat.S_ISREG(os.fstat(self._descriptor).st_mode)

    def load(self) -> Any:
        """What it holds. Raises ValueError if it is no JSON, RuntimeError if it was rewritten."""
        if not self.is_regular:
            with os.fdopen(os.dup(self._descriptor), "rb") as file:
                return json.load(file)
        if self._now() != self._stamp:
            raise RuntimeError(
                f"{self.path}: it was rewritten after it was read; look at COCO.dataset before, or "
                "write to a new file"
            )
        parts, begin = [], 0
        while part := os.pread(self._descriptor, 1 << 28, begin):
            parts.append(part)
            begin += len(part)
        return json.loads(b"".join(parts))
