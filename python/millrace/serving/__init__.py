"""Batches from other processes and machines.

    millrace.serving.Server(root="coco", batch_size=16).run()    # on the machine with the
                                                                 # data; or `trainer serve`

    with millrace.serving.Batches("tcp://127.0.0.1:5555", seed=1) as batches:
        for batch in batches.endless():
            step(batch.images, batch.boxes)

Batch k of a stream is a function of the data, the servers' configuration, seed and rank alone: any
server can provide it, and each arrives once and in order, even if servers fail. On one host pixels
are not copied but shared through memory of the server. The arrays are NumPy's, so that TensorFlow
and JAX accept them as well as torch.

A `millrace.data.Flow` with `source=["tcp://..."]` also reads from servers; it knows the
configuration, and rejects servers that have another."""

from millrace.serving.batches import Batches
from millrace.serving.server import Server, make_keys

__all__ = ["Batches", "Server", "make_keys"]
