"""Does onnxruntime give the answers of a model's certificate? `python check_onnx.py model.onnx`"""

import hashlib
import json
import pathlib
import sys
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-not-found, import-untyped, unused-ignore]


def tensors(file: pathlib.Path) -> dict[str, Any]:
    """The arrays of a .safetensors file."""
    raw = file.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    types = {"U8": np.uint8, "I64": np.int64, "F32": np.float32}
    arrays: dict[str, Any] = {}
    for name, one in json.loads(raw[8:start]).items():
        if name != "__metadata__":
            begin, end = (start + at for at in one["data_offsets"])
            array = np.frombuffer(raw[begin:end], types[one["dtype"]])
            arrays[name] = array.reshape(one["shape"])
    return arrays


def cells(low: Any, high: Any, pixels: int, size: int, paste: str) -> Any:
    """How much each of a mask's cells counts for each pixel of an axis, (pixels, size)."""
    at = np.arange(pixels, dtype=np.float32)
    if paste == "grid":  # detectron2: the mask over the box, bilinear, zero around it
        place = (at + np.float32(0.5) - low) / max(high - low, np.float32(1e-30)) * size - 0.5
    else:  # torchvision: a frame of one cell, and a box of whole pixels
        half = (high - low) / 2 * np.float32((size + 2) / size)
        begin, end = np.trunc((low + high) / 2 - half), np.trunc((low + high) / 2 + half)
        place = (at - begin + 0.5) * (size + 2) / max(end - begin + 1, 1) - 0.5
        place = np.where((at < begin) | (at > end), -9, np.maximum(place, 0) - 1)
    return np.maximum(1 - np.abs(place[:, None] - np.arange(size)), 0).astype(np.float32)


def pasted(mask: Any, box: Any, shape: tuple[int, int], paste: str) -> Any:
    """Probabilities over a box (M, M) as a bitmap over the image."""
    rows = cells(box[1], box[3], shape[0], len(mask), paste)
    columns = cells(box[0], box[2], shape[1], len(mask), paste)
    whole = rows @ mask @ columns.T
    return whole >= 0.5 if paste == "grid" else whole > 0.5


def check(model: pathlib.Path) -> bool:
    """Prints the largest differences of each case."""
    stem = model.with_suffix("")
    certificate = json.loads(pathlib.Path(f"{stem}.certificate.json").read_text())
    for name, digest in {**certificate["files"], **certificate["tensors"]}.items():
        if hashlib.sha256((model.parent / name).read_bytes()).hexdigest() != digest:
            sys.exit(f"{name} is not the file that the certificate was written for")
    known = tensors(pathlib.Path(f"{stem}.certificate.safetensors"))
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    inputs = [one.name for one in session.get_inputs()]
    outputs = [one.name for one in session.get_outputs()]
    allowed, good = certificate["allowed"], True
    for number, case in enumerate(certificate["cases"]):
        given = {name: known[f"{number}.{name}"] for name in inputs}
        got = dict(zip(outputs, session.run(outputs, given)))
        same = all(np.array_equal(got[name], known[f"{number}.{name}"])
                   for name in ("labels", "counts") if name in got)
        found = {name: float("inf") for name in ("boxes", "scores", "masks") if name in got}
        for name in ("boxes", "scores"):
            if same:
                found[name] = np.abs(got[name] - known[f"{number}.{name}"]).max(initial=0)
        if same and "masks" in got:
            shape = given[inputs[0]].shape[-3:-1] if "sizes" not in given else tuple(
                given["sizes"].max(0))
            bits = np.unpackbits(known[f"{number}.masks"], axis=2, count=int(shape[1])) > 0
            masks = got["masks"] > 0 if certificate["masks"] == "pasted" else [
                pasted(mask, box, shape, certificate["paste"])
                for mask, box in zip(got["masks"], got["boxes"])]
            wrong = sum(int((a != b).sum()) for a, b in zip(masks, bits))
            found["masks"] = wrong / max(int(bits.sum()), 1)
        case_good = all(found[name] <= allowed[name] for name in found)
        good = good and case_good
        print(", ".join(case["photos"]), f"- {case['objects']} objects:",
              ", ".join(f"{name} {found[name]:.2g}" for name in found),
              "" if case_good else "- NOT the same" if same else "- other objects")
    return good


if __name__ == "__main__":
    sys.exit(0 if check(pathlib.Path(sys.argv[1])) else 1)
