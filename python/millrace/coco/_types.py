"""Types of the package's arrays and dicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

RLE = dict[str, Any]
Record = dict[str, Any]  # an image, an annotation, a category
Bitmaps = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
