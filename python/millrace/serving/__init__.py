"""Batches from data servers in other processes and on other machines.

    millrace.serving.Server(root="coco", batch_size=16).run()    # on the machine with the
                                                                 # data; or `trainer serve`

    with millrace.serving.Batches("tcp://127.0.0.1:5555", seed=1) as batches:
        for batch in batches.endless():
            step(batch.images, batch.boxes)

Batch k of a stream depends only on the data, the servers' configuration, seed and rank: any
server can provide it, and each batch arrives once and in order, even if servers fail. On one host,
pixels are not copied but shared through the server's memory. The arrays are NumPy arrays, which
TensorFlow and JAX accept as well as torch.

A `millrace.data.Flow` with `source=["tcp://..."]` also reads from servers; it has the
configuration, and rejects servers whose configuration differs."""

from millrace.serving.batches import Batches
from millrace.serving.server import Server, make_keys

__all__ = ["Batches", "Server", "make_keys"]
