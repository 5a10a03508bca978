"""The sample data set, and descriptions of all options."""

import os

from millrace import _flow


def make_sample(
    folder: str | os.PathLike[str], *, train: int = 512, val: int = 128, seed: int = 1
) -> None:
    """Creates a sample data set, as `trainer sample` does: `train` and `val` generated images of
    shapes with exact annotations, in COCO's layout. The same seed creates the same bytes.

    Raises ValueError for numbers out of range or an existing `folder`; RuntimeError if it cannot be
    written."""
    _flow.make_sample(folder, train, val, seed)


def describe() -> str:
    """Returns a description of every option of a flow, its stages and its sources, one per line,
    with default, range and unit. The options are the keys of `[data]`, `[[data.stages]]` and
    `[[data.sources]]`."""
    return _flow.describe()
