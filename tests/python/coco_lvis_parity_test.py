"""Compares LVIS with lvis-api itself, bit for bit."""

from __future__ import annotations

import contextlib
import copy
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coco_lvis_test import KINDS, files, lvis_set, made
from coco_random import results

lvis = pytest.importorskip("lvis")


def printed(run: Any) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        run.print_results()
    return text.getvalue()


@pytest.mark.parametrize(("iou", "kind"), KINDS)
@pytest.mark.parametrize("limit", [300, 4])
@pytest.mark.parametrize("seed", range(6))
def test_matches_lvis_api(
    tmp_path: Path, seed: int, limit: int, iou: str, kind: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(np, "float", float, raising=False)  # lvis 0.5.3 needs NumPy 1
    data = lvis_set(seed)
    found = results(data, seed, kind)
    gt, dt = files(tmp_path, data, found)
    theirs = lvis.LVISEval(
        lvis.LVIS(gt), lvis.LVISResults(lvis.LVIS(gt), copy.deepcopy(found), limit), iou
    )
    theirs.run()
    for given, touched in ((dt, False), (copy.deepcopy(found), False), (dt, True)):
        ours = made(gt, given, iou, limit, touched)
        assert list(ours.results.items()) == list(theirs.results.items())
        assert printed(ours) == printed(theirs)
        for name in ("precision", "recall"):
            assert np.array_equal(ours.eval[name], theirs.eval[name])
        for a, b in zip(ours.eval_imgs, theirs.eval_imgs, strict=True):
            assert (a is None) == (b is None)
            assert a is None or all(np.array_equal(a[name], b[name]) for name in b)
        for category, areas in theirs.eval["dt_pointers"].items():
            for area, arrays in areas.items():
                mine = ours.eval["dt_pointers"][category][area]
                assert all(np.array_equal(mine[name], arrays[name]) for name in arrays)
