"""Batches that other processes and machines make.

    millrace.serving.Server(root="coco", batch_size=16).run()    # where the data are; or
                                                                 # `trainer serve`

    with millrace.serving.Batches("tcp://127.0.0.1:5555", seed=1) as batches:
        for batch in batches.endless():
            step(batch.images, batch.boxes)

Batch k of a stream is a function of the data, the servers' configuration, seed and rank alone: any
server gives it, and each arrives once and in order, whatever becomes of the servers. On one host
pixels are not copied: they lie in memory that the server shares. The arrays are NumPy's, so that
TensorFlow and JAX take them as well as torch.

A `millrace.data.Flow` with `source=["tcp://..."]` takes its batches from servers too; that one
knows the configuration, and refuses servers that have another."""

from millrace.serving.batches import Batches
from millrace.serving.server import Server, make_keys

__all__ = ["Batches", "Server", "make_keys"]
