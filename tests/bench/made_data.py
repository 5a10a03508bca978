"""Makes data sets with any number of images, objects per image and classes in seconds.

A few images repeat. Boxes and outlines of four points depend only on these sizes.
"""
import json
import os
import struct
import zlib


def write_picture(path, width, height, number):
    """Writes a PNG of smooth colours."""
    rows = b"".join(b"\0" + bytes((x * 5 + y * 3 + number * 40 + c * 85) // 4 % 256
                                  for x in range(width) for c in range(3)) for y in range(height))

    def chunk(name, body):
        return (struct.pack(">I", len(body)) + name + body +
                struct.pack(">I", zlib.crc32(name + body)))

    with open(path, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0,
                                                                  0, 0)) +
                  chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def box_of(number, side):
    """Returns x, y, w, h of an object in a square image: 1/30 to 1/10 of its width, anywhere."""
    size = side * (33 + number * 29 % 67) // 1000
    return number * 7919 % (side - size), number * 104729 % (side - size), size, size


def write_annotations(path, images, objects, classes, side, pictures):
    with open(path, "w", buffering=1 << 20) as out:
        out.write('{"images":[')
        for i in range(images):
            out.write(f'{"," if i else ""}{{"id":{i + 1},"file_name":"{i % pictures}.png",'
                      f'"width":{side},"height":{side}}}')
        out.write('],"annotations":[')
        for i in range(images * objects):
            x, y, w, h = box_of(i, side)
            out.write(f'{"," if i else ""}{{"id":{i + 1},"image_id":{i // objects + 1},'
                      f'"category_id":{i % classes + 1},"bbox":[{x},{y},{w},{h}],"area":{w * h},'
                      f'"iscrowd":0,"segmentation":[[{x},{y},{x + w},{y},{x + w},{y + h},{x},'
                      f'{y + h}]]}}')
        names = [{"id": k + 1, "name": f"class {k + 1}"} for k in range(classes)]
        out.write(f'],"categories":{json.dumps(names)}}}')


def make_set(folder, images=16, objects=10, classes=80, side=320, pictures=8):
    """Makes a COCO folder that training and validation share; returns the folder."""
    os.makedirs(os.path.join(folder, "annotations"))
    os.makedirs(os.path.join(folder, "train2017"))
    os.symlink("train2017", os.path.join(folder, "val2017"))
    for number in range(min(images, pictures)):
        write_picture(os.path.join(folder, "train2017", f"{number}.png"), side, side, number)
    train, val = (os.path.join(folder, "annotations", f"instances_{split}2017.json")
                  for split in ("train", "val"))
    write_annotations(train, images, objects, classes, side, pictures)
    os.symlink(os.path.basename(train), val)
    return folder


def write_results(path, images, found, classes, side):
    """Writes a COCO results file: the objects of a data set of this size, moved by a few pixels."""
    with open(path, "w", buffering=1 << 20) as out:
        out.write("[")
        for i in range(images * found):
            x, y, w, h = box_of(i, side)
            out.write(f'{"," if i else ""}{{"image_id":{i // found + 1},'
                      f'"category_id":{i % classes + 1},"bbox":[{x + i % 3},{y + i % 2},{w},{h}],'
                      f'"score":{i * 7919 % 9973 / 9973:.4f}}}')
        out.write("]")
