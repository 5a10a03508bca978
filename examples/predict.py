#!/usr/bin/env python3
"""Detects objects with ctypes, without any Python package.

usage: predict.py LIBRARY MODEL IMAGE...    LIBRARY: .../lib/libmillrace_predict.so

Prints each image's objects, one per line: class, score, box and number of mask pixels.
"""

import ctypes
import sys
from collections.abc import Iterator

Handle = ctypes.c_void_p


class Object(ctypes.Structure):
    """millrace_object in millrace_predict.h."""

    _fields_ = [("x1", ctypes.c_float), ("y1", ctypes.c_float), ("x2", ctypes.c_float),
                ("y2", ctypes.c_float), ("score", ctypes.c_float), ("label", ctypes.c_int32),
                ("has_mask", ctypes.c_int32)]


class Predictor:
    """A model, open until the program ends."""

    def __init__(self, library: str, model: str) -> None:
        self._calls = ctypes.CDLL(library)
        self._calls.millrace_predict_error.restype = ctypes.c_char_p
        self._calls.millrace_predict_class_name.restype = ctypes.c_char_p
        self._model = Handle()
        self._check(self._calls.millrace_predict_open(model.encode(), None,
                                                      ctypes.byref(self._model)))

    def _check(self, status: int) -> None:
        if status != 0:
            raise RuntimeError(self._calls.millrace_predict_error().decode())

    def detect(self, image: str) -> Iterator[str]:
        """Yields one line per object in an image file."""
        result, found = Handle(), Object()
        self._check(self._calls.millrace_predict_file(self._model, image.encode(),
                                                      ctypes.byref(result)))
        width, height = ctypes.c_int32(), ctypes.c_int32()
        self._check(self._calls.millrace_result_size(result, ctypes.byref(width),
                                                     ctypes.byref(height)))
        bitmap = (ctypes.c_uint8 * (width.value * height.value))()
        for i in range(self._calls.millrace_result_count(result)):
            self._check(self._calls.millrace_result_object(result, i, ctypes.byref(found)))
            name = self._calls.millrace_predict_class_name(self._model, found.label).decode()
            line = (f"{name} {found.score:.3f} at "
                    f"{found.x1:.1f} {found.y1:.1f} {found.x2:.1f} {found.y2:.1f}")
            if found.has_mask:
                self._check(self._calls.millrace_result_bitmap(result, i, bitmap,
                                                               ctypes.c_size_t(len(bitmap))))
                line += f", {sum(bitmap)} pixels"
            yield line
        self._check(self._calls.millrace_result_close(result))


def main() -> None:
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    predictor = Predictor(sys.argv[1], sys.argv[2])
    for image in sys.argv[3:]:
        print(image)
        for line in predictor.detect(image):
            print("  " + line)


if __name__ == "__main__":
    main()
