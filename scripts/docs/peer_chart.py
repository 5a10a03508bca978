#!/usr/bin/env python3
"""Draws docs/pictures/peers.svg, the chart of README, from docs/benchmarks.json.

    scripts/docs/peer_chart.py [--check]

Each bar shows Millrace's speed as a multiple of a peer's in one measurement. --check writes
nothing; its exit code is 1 if the picture is not up to date.
"""
import json
import os
import re
import sys
from html import escape

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLES, PICTURE = "docs/benchmarks.json", "docs/pictures/peers.svg"
# Label, table, column, the peer's row, and whether higher is better.
BARS = [
    ("Mask R-CNN R50-FPN, training step", "maskrcnn-step", "s", "torchvision", False),
    ("Mask R-CNN R50-FPN, detection with masks", "maskrcnn-detection", "s", "torchvision", False),
    ("YOLOX, training step", "yolox-step", "s", "yolox", False),
    ("RT-DETR, training step", "rtdetr-step", "s", "transformers", False),
    ("COCO evaluation, masks", "evaluation-segm-2", "s", "hotcoco", False),
    ("COCO photos with masks, images per CPU second", "dataflow", "800/1333, masks",
     "SPDL threads, OpenCV", True),
    ("Batches over TCP, bytes per second", "serving", "MB/s", "tensorpack, tcp", True),
]
WIDTH, ROW, LEFT, RIGHT = 770, 26, 340, 190


def value(table, row, column):
    cells = next(cells for cells in table["rows"] if cells[0] == row)
    return float(re.match(r"[\d,.]*\d", cells[table["header"].index(column)])[0].replace(",", ""))


def speed_ups(tables):
    """Yields each bar's label, Millrace's speed relative to the peer's, and the peer's name."""
    for label, name, column, peer, more_is_better in BARS:
        table = tables[name]
        ours = value(table, table["rows"][0][0], column)
        theirs = value(table, peer, column)
        yield label, ours / theirs if more_is_better else theirs / ours, re.split("[ ,]", peer)[0]


def draw(tables):
    bars = list(speed_ups(tables))
    height = ROW * (len(bars) + 1)
    scale = (WIDTH - LEFT - RIGHT) / max(times for _, times, _ in bars)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Speed of Millrace as a multiple of each peer's</title>",
        "<style>text{font:14px sans-serif;fill:#1f2328}rect{fill:#1a7f64}line{stroke:#59636e}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#3fb68e}"
        "line{stroke:#9198a1}}</style>",
    ]
    for i, (label, times, peer) in enumerate(bars):
        top, wide = ROW * i + 4, times * scale
        lines += [
            f'<text x="{LEFT - 8}" y="{top + 13}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{LEFT}" y="{top}" width="{wide:.1f}" height="{ROW - 8}" rx="2"/>',
            f'<text x="{LEFT + wide + 6:.1f}" y="{top + 13}">{times:.1f}x {escape(peer)}</text>',
        ]
    lines += [
        f'<line x1="{LEFT + scale:.1f}" x2="{LEFT + scale:.1f}" y1="0" y2="{height - ROW + 2}" '
        'stroke-dasharray="3 3"/>',
        f'<text x="{LEFT + scale:.1f}" y="{height - 8}" text-anchor="middle">1x = the peer</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main():
    os.chdir(ROOT)
    with open(TABLES) as file:
        picture = draw(json.load(file))
    if sys.argv[1:] == ["--check"]:
        with open(PICTURE) as file:
            sys.exit(0 if file.read() == picture else
                     f"{PICTURE} differs from {TABLES}: run scripts/docs/peer_chart.py")
    with open(PICTURE, "w") as file:
        file.write(picture)


if __name__ == "__main__":
    main()
