#!/usr/bin/env python3
"""Our data server beside its peers: MB/s of batches of 4 x 800 x 1216 x 3 bytes from one process to
another, and what the consumer pays at 100 images/s.

    tests/bench/serving.py BENCH_SERVING [--rounds 5] [--seconds 4]

All run by turns and the medians are printed. The peers are serve.py of MILLRACE_PEERS (default
../shared/peers): tensorpack's send and receive, raw pyzmq, and memcpy as the floor, run by
MILLRACE_PEERS_PYTHON, an interpreter that has them; what is not there is left out with a word.
"""
import argparse
import os
import statistics

from comparison import interpreter, peers_folder, run

OURS = ["tcp", "ipc", "shared"]
PEERS = [("tensorpack", "tcp"), ("pyzmq", "tcp"), ("pyzmq", "ipc"), ("memcpy", "tcp")]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    a = parser.parse_args()
    bench = os.path.abspath(a.bench)
    folder = peers_folder("serve.py")
    peers = list(PEERS) if folder else []
    figures, shares = {}, {}
    for k in range(a.rounds):
        for way in OURS:
            result, why = run([bench, way, str(a.seconds)])
            if result is None:
                raise SystemExit(f"serving.py: {why}")
            figures.setdefault(("millrace", way), []).append(result["value"])
            paced, _ = run([bench, way, str(a.seconds), "25"])
            shares.setdefault(way, []).append(paced["consumer_core_share"])
        for name, way in list(peers):
            command = ["timeout", "120", interpreter(), "serve.py", "--peer", name, "--transport",
                       way, "--seconds", str(a.seconds),
                       "--port", str(5789 + k)]
            result, why = run(command, cwd=folder)
            if result is None:
                print(f"{name} over {way} is left out: {why}")
                peers.remove((name, way))
            else:
                figures.setdefault((name, way if name != "memcpy" else ""),
                                   []).append(result["value"])
    medians = {key: statistics.median(values) for key, values in figures.items()}
    print(f"MB/s, median of {a.rounds} (lowest to highest)")
    for (name, way), median in medians.items():
        values = figures[name, way]
        print(f"  {name:<10} {way:<7} {median:8.0f}  ({min(values):.0f} to {max(values):.0f})")
    for of, to in [(("millrace", "tcp"), ("tensorpack", "tcp")),
                   (("millrace", "tcp"), ("pyzmq", "tcp")),
                   (("millrace", "ipc"), ("pyzmq", "ipc")), (("millrace", "shared"), ("memcpy",
                                                                                      ""))]:
        if to in medians:
            print(f"  {' '.join(of)} / {' '.join(to).strip()}: {medians[of] / medians[to]:.2f}")
    print("share of a core that 100 images/s cost the consumer: " +
          ", ".join(f"{way} {100 * statistics.median(values):.1f} %" for way,
                    values in shares.items()))


if __name__ == "__main__":
    main()
