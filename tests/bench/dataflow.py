#!/usr/bin/env python3
"""Our data flow beside its peers: images a second of CPU, images/s and peak memory at three
settings.

    tests/bench/dataflow.py TRAINER [--rounds 3] [--seconds 5]

All run on COCO photos (MILLRACE_TEST_DATA, default ../shared/data) with two threads or workers and
batches of four, by turns, and the medians are printed. The peers are flow.py of MILLRACE_PEERS
(default ../shared/peers), run by MILLRACE_PEERS_PYTHON, an interpreter that has them; what is not
there is left out with a word. Ours always carries polygons and run lengths along; the peers
rasterise full-image masks where the setting says masks.
"""
import argparse
import os
import statistics
import sys

from comparison import interpreter, peers_folder, photos, run

PEERS = ["torch nodes", "tensorpack thread"]  # the fastest variants that work in parallel
SETTINGS = [("800/1333", 800, 1333, "none"), ("800/1333 with masks", 800, 1333, "full"),
            ("320/533", 320, 533, "none")]
SAME_WORK = 0.03  # by which the pixels of a mean image may differ


def ours(trainer, data, seconds, short, longest):
    sets = {"root": f'"{data}"', "short_side": short, "max_side": longest, "batch_size": 4}
    command = [trainer, "bench", "dataflow", "configs/maskrcnn.toml", "--json", "--threads", "2"]
    command += ["--seconds", str(seconds)] + [a for k, v in sets.items()
                                              for a in ("--set", f"data.{k}={v}")]
    result, used = run(command)
    if result is None:
        sys.exit(f"dataflow.py: {used}")
    # The trainer reads its peak before it measures floors.
    return (result["images_per_cpu_s"], result["images_per_s"], result["peak_rss_bytes"] / 2**20,
            result["pixels_per_image"]), result


def theirs(folder, data, name, seconds, short, longest, masks):
    peer, variant = name.split()
    command = ["timeout", "120", interpreter(), "flow.py", "--peer", peer, "--variant", variant,
               "--data", data, "--masks", masks]
    command += ["--short", str(short), "--max", str(longest), "--seconds", str(seconds),
                "--workers", "2", "--batch", "4"]
    result, used = run(command, cwd=folder)
    if result is None:
        return None, used
    return (result["images_per_cpu_s"], result["value"], used["mib"],
            result["check"]["pixels"]), None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    a = parser.parse_args()
    data = photos()
    if not os.path.isdir(data):
        return print(f"the comparison is left out: no photos in {data} (set MILLRACE_TEST_DATA)")
    folder = peers_folder("flow.py")
    peers = list(PEERS) if folder else []

    for title, short, longest, masks in SETTINGS:
        rounds, last = {}, {}
        for _ in range(a.rounds):
            figures, last = ours(a.trainer, data, a.seconds, short, longest)
            rounds.setdefault("millrace", []).append(figures)
            for name in list(peers):
                figures, why = theirs(folder, data, name, a.seconds, short, longest, masks)
                if figures is None:
                    print(f"{name} is left out: {why}")
                    peers.remove(name)
                else:
                    rounds.setdefault(name, []).append(figures)
        print(f"\n{title}: median of {a.rounds} x {a.seconds:g} s"
              f"\n  {'':<20}{'images/CPU s':>14}{'ours is':>9}{'images/s':>10}{'peak MiB':>10}")
        own = [statistics.median(column) for column in zip(*rounds["millrace"])]
        for name, each in rounds.items():
            cpu, wall, memory, pixels = (statistics.median(column) for column in zip(*each))
            other = ""
            if abs(pixels / own[3] - 1) >= SAME_WORK:
                other = f"   other work: {pixels:.0f} pixels per image, not {own[3]:.0f}"
            print(f"  {name:<20}{cpu:>14.1f}{own[0] / cpu:>8.2f}x{wall:>10.1f}{memory:>10.0f}"
                  + other)
        floors = last["floors"]
        print("  floors, ms: " + ", ".join(f"{k[:-3]} {v:.2f}" for k, v in floors.items())
              + f"; the flow reaches {100 * last['share_of_floors']:.0f} % of their sum")


if __name__ == "__main__":
    main()
