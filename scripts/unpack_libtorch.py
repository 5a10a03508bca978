#!/usr/bin/env python3
"""Unpacks the C++ part of the torch and nvidia wheels: unpack_libtorch.py WHEELS_DIR TARGET_DIR.

Writes include/, lib/ and licenses/ to TARGET_DIR. All shared libraries are placed side by side in
lib/, because libtorch searches there ($ORIGIN). Only torch's own headers and those of NCCL are
kept: the wheel also contains fmt, pybind11 and protobuf, which would shadow the system's.
The CUDA part of torch is kept if the CUDA wheels are present.
"""

from __future__ import annotations

import pathlib
import shutil
import sys
import zipfile

HEADERS = ("torch/include/ATen/", "torch/include/c10/", "torch/include/caffe2/",
           "torch/include/torch/")
CPU_LIBS = ("libc10.so", "libtorch_cpu.so", "libgomp.so.1", "libcudart.so.13", "libcupti.so.13")
PYTHON_LIBS = ("libtorch_python.so", "libshm.so", "libtorch_global_deps.so")


def place(name: str, with_cuda: bool) -> str | None:
    """Returns the path under TARGET_DIR for a wheel's file; None if it is not needed."""
    folder, _, file = name.rpartition("/")
    if name.startswith(HEADERS):
        return name.removeprefix("torch/")
    if folder.startswith("nvidia/nccl/include"):
        return name.removeprefix("nvidia/nccl/")
    if folder.endswith("/lib") and ".so" in file:
        wanted = file not in PYTHON_LIBS if with_cuda else file in CPU_LIBS
        return f"lib/{file}" if wanted else None
    if ".dist-info/" in folder and "license" in name.lower():
        return f"licenses/{folder.split('-')[0]}/{file}"
    return None


def unpack(wheels: list[pathlib.Path], target: pathlib.Path) -> None:
    with_cuda = any("cudnn" in wheel.name for wheel in wheels)
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                path = None if entry.is_dir() else place(entry.filename, with_cuda)
                if path is None:
                    continue
                out = target / path
                out.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, out.open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    unpack(sorted(pathlib.Path(sys.argv[1]).glob("*.whl")), pathlib.Path(sys.argv[2]))
