"""Batches of images and objects for training and evaluating detectors.

    flow = millrace.data.Flow(root="coco", batch_size=16, short_side=[640, 800], seed=1)
    for epoch in range(12):
        for batch in flow:                        # one epoch, shuffled anew
            step(batch.images, batch.boxes, batch.labels)

C++ threads read, decode, resize and pad without the GIL; batches are NumPy arrays over the memory
that these threads fill. The bytes are the same as in `trainer run` with the same configuration, for
any number of threads and ranks, and if resumed at any batch (`state_dict`)."""

from millrace._flow import Batch, DataError, Sample
from millrace.data.flow import Flow, Stage
from millrace.data.samples import describe, make_sample
from millrace.data.stream import State

__all__ = ["Batch", "DataError", "Flow", "Sample", "Stage", "State", "describe", "make_sample"]
