#!/usr/bin/env python3
"""Makes the images in this folder, which cover every kind of image that Millrace reads except JPEG:

    pip install pillow tifffile imagecodecs && tests/dataflow/pictures/make.py

`digests.txt` has the results of OpenCV 4.6's imdecode, which Millrace used before: name, width,
height, and the XXH3 hash of the RGB pixels; "none" if the file could not be decoded.
"""

import io
import pathlib
import struct
import zlib

import numpy
import tifffile
from PIL import Image

FOLDER = pathlib.Path(__file__).parent
W, H = 37, 23
rng = numpy.random.default_rng(7)
y, x = numpy.mgrid[0:H, 0:W]
rgb = numpy.stack([x * 6, y * 11, (x * y) % 256], -1).astype(numpy.uint8)
rgb[5:9, 5:20] = rng.integers(0, 256, (4, 15, 3), dtype=numpy.uint8)
alpha = ((x * 9 + y * 3) % 256).astype(numpy.uint8)
grey = (x * 5 + y * 2).astype(numpy.uint8)
rgba = numpy.dstack([rgb, alpha])
rgb16 = (rgb.astype(numpy.uint16) << 8) + rng.integers(0, 256, (H, W, 3), dtype=numpy.uint16)
grey16 = (grey.astype(numpy.uint16) << 8) + rng.integers(0, 256, (H, W), dtype=numpy.uint16)


def place(name):
    """Returns the path of a file in its folder, such as png/grey/grey_1.png for grey_1.png."""
    kind = name.rsplit(".", 1)[1]
    part = name.split("_")[0] if name.split("_")[0] in ("grey", "palette", "turned") else "other"
    folder = FOLDER / kind / part
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def write(name, content):
    place(name).write_bytes(content)


def save(name, image, **how):
    image.save(place(name), **how)


# PNG files are written by hand, since libraries choose colour types and bit depths themselves.
def chunk(kind, content):
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def packed(row, bits):
    """Packs samples of `bits` bits into bytes."""
    if bits == 16:
        return row.astype(">u2").tobytes()
    values = row.reshape(-1)
    text = "".join(f"{value:0{bits}b}" for value in values)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))


def png(name, samples, bits, colour, extra=b"", interlaced=False):
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [
            (0, 0, 8, 8),
            (0, 4, 8, 8),
            (4, 0, 8, 4),
            (0, 2, 4, 4),
            (2, 0, 4, 2),
            (0, 1, 2, 2),
            (1, 0, 2, 1),
        ]
    lines = b""
    for top, left, down, right in passes:
        part = samples[top::down, left::right]
        if part.shape[0] and part.shape[1]:
            lines += b"".join(b"\0" + packed(row, bits) for row in part)
    write(
        name,
        b"\x89PNG\r\n\x1a\n"
        + chunk(
            b"IHDR",
            struct.pack(
                ">IIBBBBB", samples.shape[1], samples.shape[0], bits, colour, 0, 0, interlaced
            ),
        )
        + extra
        + chunk(b"IDAT", zlib.compress(lines, 9))
        + chunk(b"IEND", b""),
    )


GREY, RGB, PALETTE, GREY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
for bits in (1, 2, 4, 8, 16):
    samples = grey16 if bits == 16 else grey >> (8 - bits)
    png(f"grey_{bits}.png", samples, bits, GREY)
    png(f"grey_{bits}_interlaced.png", samples, bits, GREY, interlaced=True)
    transparent = chunk(b"tRNS", struct.pack(">H", int(samples[3, 3])))
    png(f"grey_{bits}_transparent.png", samples, bits, GREY, transparent)
for bits in (1, 2, 4, 8):
    colours = chunk(b"PLTE", rng.integers(0, 256, 3 << bits, dtype=numpy.uint8).tobytes())
    png(f"palette_{bits}.png", grey >> (8 - bits), bits, PALETTE, colours)
    png(
        f"palette_{bits}_interlaced.png",
        grey >> (8 - bits),
        bits,
        PALETTE,
        colours,
        interlaced=True,
    )
    png(
        f"palette_{bits}_transparent.png",
        grey >> (8 - bits),
        bits,
        PALETTE,
        colours + chunk(b"tRNS", b"\0\x80"),
    )
png("palette_short.png", grey >> 4, 8, PALETTE, chunk(b"PLTE", bytes(range(30))))
for bits in (8, 16):
    wide = bits == 16
    colour = rgb16 if wide else rgb
    png(f"rgb_{bits}.png", colour, bits, RGB)
    png(f"rgb_{bits}_interlaced.png", colour, bits, RGB, interlaced=True)
    png(
        f"rgb_{bits}_transparent.png",
        colour,
        bits,
        RGB,
        chunk(b"tRNS", struct.pack(">3H", *map(int, colour[3, 3]))),
    )
    png(f"rgb_{bits}_gamma.png", colour, bits, RGB, chunk(b"gAMA", struct.pack(">I", 100000)))
    see = (alpha.astype(numpy.uint16) << 8) + 77 if wide else alpha
    png(f"rgba_{bits}.png", numpy.dstack([colour, see]), bits, RGB_ALPHA)
    png(
        f"rgba_{bits}_interlaced.png",
        numpy.dstack([colour, see]),
        bits,
        RGB_ALPHA,
        interlaced=True,
    )
    png(f"grey_alpha_{bits}.png", numpy.dstack([grey16 if wide else grey, see]), bits, GREY_ALPHA)
png("one.png", rgb[:1, :1], 8, RGB)

# WebP
save("lossy.webp", Image.fromarray(rgb), quality=60)
save("lossy_alpha.webp", Image.fromarray(rgba), quality=60)
save("lossless.webp", Image.fromarray(rgb), lossless=True)
save("lossless_alpha.webp", Image.fromarray(rgba), lossless=True, exact=True)
save(
    "exif.webp",
    Image.fromarray(rgb),
    quality=80,
    exif=b"Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0",
)
save(
    "animated.webp",
    Image.fromarray(rgb),
    save_all=True,
    append_images=[Image.fromarray(255 - rgb)],
)
save("one.webp", Image.fromarray(rgb[:1, :1]), lossless=True)


# TIFF
def tiff(name, data, **how):
    tifffile.imwrite(place(name), data, metadata=None, software=False, **how)


for method in ("none", "lzw", "deflate", "packbits", "zstd", "lzma"):
    tiff(
        f"rgb_{method}.tif",
        rgb,
        photometric="rgb",
        rowsperstrip=7,
        compression=None if method == "none" else method,
    )
tiff("rgb_predictor.tif", rgb, photometric="rgb", compression="deflate", predictor=True)
tiff("rgb_one_strip.tif", rgb, photometric="rgb")
tiff("rgb_tiles.tif", rgb, photometric="rgb", tile=(16, 16), compression="lzw")
tiff("rgb_planes.tif", numpy.moveaxis(rgb, -1, 0), photometric="rgb", planarconfig="separate")
tiff("rgb_big_endian.tif", rgb, photometric="rgb", byteorder=">")
tiff("rgb_big.tif", rgb, photometric="rgb", bigtiff=True)
tiff("rgb_16.tif", rgb16, photometric="rgb")
tiff("rgb_16_big_endian.tif", rgb16, photometric="rgb", byteorder=">")
tiff("rgb_16_tiles.tif", rgb16, photometric="rgb", tile=(16, 16), compression="lzw")
tiff("rgba_straight.tif", rgba, photometric="rgb", extrasamples=["unassalpha"])
tiff("rgba_multiplied.tif", rgba, photometric="rgb", extrasamples=["assocalpha"])
tiff("rgba_unknown.tif", rgba, photometric="rgb", extrasamples=["unspecified"])
tiff("grey_8.tif", grey, photometric="minisblack")
tiff("grey_8_white.tif", grey, photometric="miniswhite")
tiff("grey_16.tif", grey16, photometric="minisblack")
tiff("grey_1.tif", grey > 90, photometric="minisblack")
tiff("grey_float.tif", grey.astype(numpy.float32) / 255, photometric="minisblack")
tiff("rgb_float.tif", rgb.astype(numpy.float32) / 255, photometric="rgb")
tiff("grey_32.tif", grey.astype(numpy.uint32) << 24, photometric="minisblack")
tiff(
    "palette_8.tif",
    grey,
    photometric="palette",
    colormap=rng.integers(0, 65536, (3, 256), dtype=numpy.uint16),
)
tiff("pages.tif", numpy.stack([rgb, 255 - rgb]), photometric="rgb")
for turn in range(1, 9):
    tiff(
        f"turned_{turn}.tif",
        rgb,
        photometric="rgb",
        rowsperstrip=H,
        extratags=[(274, 3, 1, turn, True)],
    )
    tiff(
        f"turned_{turn}_strips.tif",
        rgb,
        photometric="rgb",
        rowsperstrip=7,
        extratags=[(274, 3, 1, turn, True)],
    )
    tiff(
        f"turned_{turn}_tiles.tif",
        rgb,
        photometric="rgb",
        tile=(16, 16),
        compression="lzw",
        extratags=[(274, 3, 1, turn, True)],
    )
save("jpeg.tif", Image.fromarray(rgb), compression="jpeg", quality=75)
save("fax.tif", Image.fromarray(grey > 90), compression="group4")
save("cmyk.tif", Image.fromarray(rgb).convert("CMYK"))
save("lab.tif", Image.fromarray(rgba).convert("RGB").convert("LAB"))
