#!/usr/bin/env python3
"""Reads training batches from a Millrace data server (`trainer serve CONFIG`) without Millrace:
with pyzmq, msgpack and numpy. Converts them to PyTorch tensors if torch is installed, and verifies
checksums if xxhash is installed. docs/serving.md describes the format.

    trainer serve configs/maskrcnn.toml &
    python examples/read_batches.py tcp://127.0.0.1:5555 --batches 5
"""
import argparse
import hashlib
import os
import time

import msgpack
import numpy as np
import zmq

try:
    import xxhash
except ImportError:
    xxhash = None

VERSION = 2


class Refused(Exception):
    """The server refused the request, with a reason."""


def encode(**message):
    body = msgpack.packb(message)
    return msgpack.packb(["millrace", VERSION, xxhash.xxh3_64_intdigest(body) if xxhash else None,
                          body])


def decode(frame):
    name, version, checksum, *body = msgpack.unpackb(frame)
    if name != "millrace" or version != VERSION:
        raise Refused(f"the server has protocol version {version}, this script {VERSION}")
    if xxhash and checksum is not None and xxhash.xxh3_64_intdigest(body[0]) != checksum:
        raise ValueError("corrupt message: wrong checksum")
    return msgpack.unpackb(body[0], strict_map_key=False)


def rows(data, dtype, *shape):
    return np.frombuffer(data, dtype).reshape(-1, *shape)


def unpack_image(image):
    """Returns an image's fields: boxes x1 y1 x2 y2 in pixels of the batch; for each object, a list
    of polygons (x0 y0 x1 y1 ...), {"size": [h, w], "counts": run lengths, column by column, as in
    COCO}, or None."""
    def shape(of):
        if of is None:
            return None
        if isinstance(of, dict):
            return {"size": of["size"], "counts": rows(of["counts"], np.uint32)}
        return [rows(polygon, np.float64) for polygon in of]
    return {"id": image["id"], "size": image["size"], "original": image["original"],
            "scale": image["scale"],
            "boxes": rows(image["boxes"], np.float32, 4),
            "classes": rows(image["classes"], np.int32),
            "crowd": rows(image["crowd"], np.uint8).astype(bool),
            "shapes": [shape(s) for s in image["shapes"]]}


class Batches:
    """Iterates over batches 0, 1, 2, ... of a stream, without end. The same seed, share and start
    result in the same batches from any server with the same data, so a restarted server, or a
    different server at the same address, continues the stream."""

    def __init__(self, endpoint, seed=1, rank=0, ranks=1, start=None, ahead=4, facts=None,
                 silent_s=5.0, keys=None):
        self.context = zmq.Context.instance()
        self.endpoint, self.ahead, self.silent_s, self.keys = endpoint, ahead, silent_s, keys
        self.hello = dict(type="hello", consumer=os.urandom(8).hex(), seed=seed, rank=rank,
                          ranks=ranks,
                          start=start or {"next": 0, "pending": []}, facts=facts or {}, held=[])
        self.facts, self.epoch_size = {}, None  # reported by the server
        self.next, self.asked, self.ready, self.socket = 0, set(), {}, None
        self.connect()

    def connect(self):
        if self.socket is not None:
            self.socket.close(linger=0)
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.reconnect_ivl_max = 5000
        if self.keys:  # the server's public key, our public key, our secret key: 40 characters each
            socket = self.socket
            socket.curve_serverkey, socket.curve_publickey, socket.curve_secretkey = self.keys
        self.socket.connect(self.endpoint)
        self.say_hello()

    def say_hello(self):
        self.asked, self.pinged, self.heard = set(), time.monotonic(), time.monotonic()
        self.socket.send(encode(**self.hello))

    def ask(self):
        wanted = [k for k in range(self.next, self.next + self.ahead) if k not in self.asked
                  and k not in self.ready]
        if wanted:
            self.asked.update(wanted)
            self.socket.send(encode(type="ask", numbers=wanted, shared_with=0))

    def receive(self):
        """Handles one message; without one, sends a ping or reconnects."""
        if not self.socket.poll(500):
            now = time.monotonic()
            if now - self.heard > self.silent_s:
                print(f"{self.endpoint} does not answer; retrying")
                self.connect()
            elif now - self.pinged > 1:
                self.pinged = now
                self.socket.send(encode(type="ping"))
            return
        frames = self.socket.recv_multipart(copy=False)
        self.heard = time.monotonic()
        message = decode(frames[0].buffer)
        kind = message["type"]
        if kind == "welcome":
            self.facts, self.epoch_size = message["facts"], message["epoch_size"]
            self.ask()
        elif kind == "stranger":  # the server was restarted
            self.say_hello()
        elif kind == "refusal":
            raise Refused(message["why"])
        elif kind in ("batch", "failure"):
            number = message["number"]
            self.asked.discard(number)
            if number >= self.next:
                self.ready[number] = (message, frames[1].buffer if kind == "batch" else None)

    def __iter__(self):
        return self

    def __next__(self):
        """Returns (batch, cursor); `start=cursor` continues after this batch."""
        while self.next not in self.ready:
            self.receive()
        message, pixels = self.ready.pop(self.next)
        self.next += 1
        self.ask()
        if message["type"] == "failure":
            raise RuntimeError(message["why"])
        header = msgpack.unpackb(message["batch"])
        width, height = header["size"]
        # shares the frame's memory
        images = np.frombuffer(pixels, np.uint8).reshape(-1, height, width, 3)
        return ({"number": message["number"], "epoch": message["epoch"],
                 "progress": message["progress"],
                 "images": images, "objects": [unpack_image(image) for image in header["images"]]},
                 message["cursor"])


def to_torch(batch):
    """Returns the images (N, 3, H, W), bytes, and targets for torchvision's detectors."""
    import torch
    images = torch.from_numpy(batch["images"].copy()).permute(0, 3, 1, 2)
    return images, [{"boxes": torch.from_numpy(o["boxes"].copy()),
                     "labels": torch.from_numpy(o["classes"] + 1)}
                    for o in batch["objects"]]


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("endpoint", nargs="?", default="tcp://127.0.0.1:5555")
    ap.add_argument("--batches", type=int, default=5)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--rank", type=int, default=0)
    ap.add_argument("--ranks", type=int, default=1)
    a = ap.parse_args()
    try:
        import torch  # noqa: F401
        has_torch = True
    except ImportError:
        has_torch = False
    source = Batches(a.endpoint, a.seed, a.rank, a.ranks)
    for _ in range(a.batches):
        batch, cursor = next(source)
        boxes = sum(len(o["boxes"]) for o in batch["objects"])
        checksum = hashlib.sha256(batch["images"]).hexdigest()[:16]
        print(f"batch {batch['number']}: epoch {batch['epoch']}, "
              f"images {batch['images'].shape}, {boxes} boxes, "
              f"pixels {checksum}, next {cursor['next']}")
        if has_torch:
            images, targets = to_torch(batch)
            assert images.shape[0] == len(targets)


if __name__ == "__main__":
    main()
