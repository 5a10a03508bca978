"""The sample data set, and the names of all options."""

import os

from millrace import _flow


def make_sample(
    folder: str | os.PathLike[str], *, train: int = 512, val: int = 128, seed: int = 1
) -> None:
    """Creates a sample data set, `train` and `val` generated pictures of shapes with exact
    annotations, in COCO's layout, as `trainer sample` does. The same seed gives the same bytes.

    Raises ValueError for numbers out of range or an existing `folder`; RuntimeError if it cannot
    be written."""
    _flow.make_sample(folder, train, val, seed)


def describe() -> str:
    """Returns every option of a flow, of its stages and of its sources, one per line, with default,
    range and unit. These are the keys of `[data]`, `[[data.stages]]` and `[[data.sources]]`."""
    return _flow.describe()
