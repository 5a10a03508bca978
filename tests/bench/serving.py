#!/usr/bin/env python3
"""Our data server beside its peers: MB/s of batches of 4 x 800 x 1216 x 3 bytes from one process to
another, and what the consumer pays at 100 images/s.

    tests/bench/serving.py BENCH_SERVING [--rounds 5] [--seconds 4]

All run by turns and the medians are printed. The peers are serve.py of MILLRACE_PEERS (default
../shared/peers): tensorpack's send and receive, raw pyzmq, and memcpy as the floor, run by
MILLRACE_PEERS_PYTHON, an interpreter that has them; missing ones are left out with a message.
"""
import itertools
import os
import statistics

from comparison import interpreter, parser, peers_folder, run, take_turns

OURS = ["tcp", "ipc", "shared"]
PEERS = [("tensorpack", "tcp"), ("pyzmq", "tcp"), ("pyzmq", "ipc"), ("memcpy", "tcp")]


def main():
    arguments = parser(__doc__, "bench", rounds=5)
    arguments.add_argument("--seconds", type=float, default=4)
    a = arguments.parse_args()
    bench, seconds = os.path.abspath(a.bench), str(a.seconds)
    folder, ports = peers_folder("serve.py"), itertools.count(5789)

    def ours(way):
        result, why = run([bench, way, seconds])
        if result is None:
            return None, why
        paced, why = run([bench, way, seconds, "25"])
        return paced and (result["value"], paced["consumer_core_share"]), why

    def theirs(name, way):
        result, why = run(["timeout", "120", interpreter(), "serve.py", "--peer", name,
                           "--transport", way, "--seconds", seconds, "--port", str(next(ports))],
                          cwd=folder)
        return result and (result["value"], 0), why

    measures = {f"millrace {way}": lambda way=way: ours(way) for way in OURS}
    for name, way in PEERS if folder else ():
        measures[f"{name} {way}"] = lambda name=name, way=way: theirs(name, way)
    answers = take_turns(measures, a.rounds)
    print(f"MB/s, median of {a.rounds} (lowest to highest)")
    medians = {}
    for name, each in answers.items():
        values = [value for value, _ in each]
        medians[name] = statistics.median(values)
        print(f"  {name:<18} {medians[name]:8.0f}  ({min(values):.0f} to {max(values):.0f})")
    for own, peer in [("millrace tcp", "tensorpack tcp"), ("millrace tcp", "pyzmq tcp"),
                      ("millrace ipc", "pyzmq ipc"), ("millrace shared", "memcpy tcp")]:
        if peer in medians:
            print(f"  {own} / {peer}: {medians[own] / medians[peer]:.2f}")
    print("share of a core that 100 images/s cost the consumer: " + ", ".join(
        f"{way} {100 * statistics.median(s for _, s in answers[f'millrace {way}']):.1f} %"
        for way in OURS))


if __name__ == "__main__":
    main()
