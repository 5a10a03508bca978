#!/usr/bin/env python3
"""Our data flow beside its peers: images a second of CPU, images/s and peak memory at three
settings.

    tests/bench/dataflow.py TRAINER [--rounds 3] [--seconds 5]

All run on COCO photos (MILLRACE_TEST_DATA, default ../shared/data) with two threads or workers and
batches of four, by turns, and the medians are printed. The peers are flow.py of MILLRACE_PEERS
(default ../shared/peers), run by MILLRACE_PEERS_PYTHON, an interpreter that has them; missing ones
are left out with a message. Ours always carries polygons and run lengths along; the peers rasterise
full-image masks where the setting says masks.
"""
import statistics

from comparison import interpreter, parser, peers_folder, photos, run, take_turns

PEERS = ["torch nodes", "tensorpack thread"]  # the fastest variants that work in parallel
SETTINGS = [("800/1333", 800, 1333, "none"), ("800/1333 with masks", 800, 1333, "full"),
            ("320/533", 320, 533, "none")]
SAME_WORK = 0.03  # by which the pixels of a mean image may differ


def ours(trainer, data, seconds, short, longest):
    sets = {"root": f'"{data}"', "short_side": short, "max_side": longest, "batch_size": 4}
    command = [trainer, "bench", "dataflow", "configs/maskrcnn.toml", "--json", "--threads", "2",
               "--seconds", str(seconds)]
    result, used = run(command + [a for k, v in sets.items() for a in ("--set", f"data.{k}={v}")])
    if result is None:
        return None, used
    # The trainer reads its peak before it measures floors.
    return result | {"value": result["images_per_s"], "mib": result["peak_rss_bytes"] / 2**20,
                     "pixels": result["pixels_per_image"]}, None


def theirs(folder, data, name, seconds, short, longest, masks):
    peer, variant = name.split()
    result, used = run(["timeout", "120", interpreter(), "flow.py", "--peer", peer, "--variant",
                        variant, "--data", data, "--masks", masks, "--short", str(short), "--max",
                        str(longest), "--seconds", str(seconds), "--workers", "2", "--batch", "4"],
                       cwd=folder)
    if result is None:
        return None, used
    return result | {"mib": used["mib"], "pixels": result["check"]["pixels"]}, None


def main():
    arguments = parser(__doc__, "trainer", rounds=3)
    arguments.add_argument("--seconds", type=float, default=5)
    a = arguments.parse_args()
    data, folder = photos(), peers_folder("flow.py")
    for title, short, longest, masks in SETTINGS:
        measures = {"millrace": lambda: ours(a.trainer, data, a.seconds, short, longest)}
        for name in PEERS if folder else ():
            measures[name] = lambda name=name: theirs(folder, data, name, a.seconds, short, longest,
                                                      masks)
        answers = take_turns(measures, a.rounds)
        print(f"\n{title}: median of {a.rounds} x {a.seconds:g} s"
              f"\n  {'':<20}{'images/CPU s':>14}{'ours is':>9}{'images/s':>10}{'peak MiB':>10}")
        rows = {name: [statistics.median(r[key] for r in each)
                       for key in ("images_per_cpu_s", "value", "mib", "pixels")]
                for name, each in answers.items()}
        own = rows["millrace"]
        for name, (cpu, wall, memory, pixels) in rows.items():
            other = ""
            if abs(pixels / own[3] - 1) >= SAME_WORK:
                other = f"   other work: {pixels:.0f} pixels per image, not {own[3]:.0f}"
            print(f"  {name:<20}{cpu:>14.1f}{own[0] / cpu:>8.2f}x{wall:>10.1f}{memory:>10.0f}"
                  + other)
        last = answers["millrace"][-1]
        print("  floors, ms: " + ", ".join(f"{k[:-3]} {v:.2f}" for k, v in last["floors"].items())
              + f"; the flow reaches {100 * last['share_of_floors']:.0f} % of their sum")


if __name__ == "__main__":
    main()
