"""Checks that onnxruntime reproduces a model's certificate: `python check_onnx.py model.onnx`"""

import hashlib
import json
import pathlib
import sys
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-not-found, import-untyped, unused-ignore]


def tensors(file: pathlib.Path) -> dict[str, Any]:
    """Returns the arrays of a .safetensors file by name."""
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
    """Returns the interpolation weight of each mask cell for each pixel along one axis,
    (pixels, size)."""
    at = np.arange(pixels, dtype=np.float32)
    if paste == "grid":  # detectron2: bilinear over the box, zero outside
        place = (at + np.float32(0.5) - low) / max(high - low, np.float32(1e-30)) * size - 0.5
    else:  # torchvision: the mask padded by one cell, the box rounded to whole pixels
        half = (high - low) / 2 * np.float32((size + 2) / size)
        begin, end = np.trunc((low + high) / 2 - half), np.trunc((low + high) / 2 + half)
        step = np.float32((size + 2) / max(end - begin + 1, 1))
        place = (at - begin + np.float32(0.5)) * step - np.float32(0.5)
        place = np.where((at < begin) | (at > end), -9, np.maximum(place, 0) - 1)
    return np.maximum(1 - np.abs(place[:, None] - np.arange(size)), 0).astype(np.float32)


def pasted(mask: Any, box: Any, own: Any, shape: Any, paste: str) -> Any:
    """Returns a mask (M, M) of probabilities, pasted into its box, as a bitmap of `shape`; zero
    outside the image of size `own`."""
    rows = cells(box[1], box[3], shape[0], len(mask), paste)
    columns = cells(box[0], box[2], shape[1], len(mask), paste)
    whole = rows @ mask @ columns.T
    whole[own[0]:], whole[:, own[1]:] = 0, 0
    return whole >= 0.5 if paste == "grid" else whole > 0.5


def partners(got: Any, known: Any, scores: float) -> Any:
    """Returns the index in `got` of each object in `known`, or None if one is missing; objects with
    nearly equal scores may be in a different order."""
    free = np.ones(len(got["scores"]), bool)
    index = []
    for box, score, label in zip(known["boxes"], known["scores"], known["labels"]):
        likely = free & (got["labels"] == label) & (np.abs(got["scores"] - score) <= scores)
        if not likely.any():
            return None
        away = np.abs(got["boxes"] - box).max(1)
        index.append(int(np.where(likely, away, np.inf).argmin()))
        free[index[-1]] = False
    return np.array(index, int)


def differences(got: Any, known: Any, given: Any, certificate: Any) -> Any:
    """Returns the largest differences of boxes, scores and masks; None if the objects differ."""
    if len(got["scores"]) != len(known["scores"]):
        return None
    if "counts" in got and not np.array_equal(got["counts"], known["counts"]):
        return None
    index = partners(got, known, certificate["allowed"]["scores"])
    if index is None:
        return None
    found = {"boxes": np.abs(got["boxes"][index] - known["boxes"]).max(initial=0),
             "scores": np.abs(got["scores"][index] - known["scores"]).max(initial=0)}
    if "masks" in got:
        if "sizes" in given:
            own, shape = np.repeat(given["sizes"], got["counts"], 0), given["sizes"].max(0)
        else:
            shape = np.array(given["image"].shape[:2])
            own = np.tile(shape, (len(index), 1))
        bits = np.unpackbits(known["masks"], axis=2, count=int(shape[1])) > 0
        wrong = 0
        for i, bitmap in zip(index, bits):
            mask = got["masks"][i]
            if certificate["masks"] != "pasted":
                mask = pasted(mask, got["boxes"][i], own[i], shape, certificate["paste"])
            wrong += int((bitmap != (mask > 0)).sum())
        found["masks"] = wrong / max(int(bits.sum()), 1)
    return found


def shown(text: str) -> str:
    """Escapes control characters for a terminal."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def check(model: pathlib.Path) -> bool:
    """Prints the largest differences of each case; returns True if all are allowed."""
    stem = model.with_suffix("")
    certificate = json.loads(pathlib.Path(f"{stem}.certificate.json").read_text())
    for name, digest in {**certificate["files"], **certificate["tensors"]}.items():
        if name in ("", "..") or pathlib.PurePath(name).name != name:
            sys.exit(f"the certificate names {name!r}, which is not a file in its folder")
        if hashlib.sha256((model.parent / name).read_bytes()).hexdigest() != digest:
            sys.exit(f"{shown(name)} does not match the certificate")
    arrays = tensors(pathlib.Path(f"{stem}.certificate.safetensors"))
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    outputs = [one.name for one in session.get_outputs()]
    good = True
    for number, case in enumerate(certificate["cases"]):
        start = f"{number}."
        known = {name.removeprefix(start): array for name, array in arrays.items()
                 if name.startswith(start)}
        given = {one.name: known[one.name] for one in session.get_inputs()}
        got = dict(zip(outputs, session.run(outputs, given)))
        found = differences(got, known, given, certificate)
        same = found is not None and all(found[k] <= certificate["allowed"][k] for k in found)
        good = good and same
        print(f"{shown(', '.join(case['photos']))}: {case['objects']} objects,",
              ", ".join(f"{k} {found[k]:.2g}" for k in found) if found else "different objects",
              "" if same else "- MISMATCH")
    return good


if __name__ == "__main__":
    sys.exit(0 if check(pathlib.Path(sys.argv[1])) else 1)
