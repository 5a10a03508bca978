#!/usr/bin/env python3
"""Compares our data server with peers: MB/s of batches of 4 x 800 x 1216 x 3 bytes from one
process to another, the CPU cost of 100 images/s in both processes, and the latency of a batch.

    tests/bench/serving.py BENCH_SERVING [--rounds 5] [--seconds 2]

Rounds are interleaved; medians are printed. The lower bounds are a bare TCP socket, with and
without our checksums, and memcpy within one process. The peers are serve.py of MILLRACE_PEERS
(default: ../shared/peers): tensorpack's send and receive, raw pyzmq and memcpy, run by the Python
MILLRACE_PEERS_PYTHON; missing peers are skipped with a message. On a busy machine, measure with
priority: rates and shares with `chrt -r 1`, but latencies with `nice -n -20`, because the kernel
stops `chrt` processes that use all cores for 50 ms of each second, which delays some batches.
"""
import itertools
import os
import statistics

from comparison import interpreter, parser, peers_folder, ratio, run, show, take_turns

WAYS = {"tcp": "millrace, tcp", "curve": "millrace, tcp with keys (CURVE)", "ipc": "millrace, ipc",
        "shared": "millrace, shared memory", "socket": "a bare TCP socket, blocking, no checksums",
        "checked": "a bare TCP socket, with our checksums"}
MANY = {("tcp", "consumers=8"): "eight consumers of one server, tcp",
        ("tcp", "servers=8"): "one consumer of eight servers, tcp",
        ("shared", "consumers=8"): "eight consumers of one server, shared memory"}
PEERS = {("tensorpack", "tcp"): "tensorpack, tcp", ("pyzmq", "tcp"): "pyzmq alone, tcp",
         ("pyzmq", "ipc"): "pyzmq alone, ipc", ("memcpy", "tcp"): "memcpy within a process"}
# The transport of ours that each peer is compared with.
OURS = {"tensorpack, tcp": "tcp", "pyzmq alone, tcp": "tcp", "pyzmq alone, ipc": "ipc",
        "memcpy within a process": "shared"}
# Batches/s for latencies: 400 images/s, which a server makes with about one core.
MADE = 100


def spread(values, form="{:,.0f}"):
    return f"{form.format(statistics.median(values))} " \
           f"({form.format(min(values))} to {form.format(max(values))})"


def percentiles(answers):
    """Returns the 50th, 99th and 99.9th percentile of the latencies of all rounds, in ms."""
    ms = sorted(each for answer in answers for each in answer["ms"])
    return [f"{ms[min(len(ms) - 1, int(share * len(ms)))]:.1f}" for share in (0.5, 0.99, 0.999)]


def main():
    arguments = parser(__doc__, "bench", rounds=5)
    arguments.add_argument("--seconds", type=float, default=2)
    a = arguments.parse_args()
    bench, seconds = os.path.abspath(a.bench), str(a.seconds)
    folder, ports = peers_folder("serve.py"), itertools.count(5789)

    def ours(*words):
        return lambda: run([bench, words[0], seconds, *words[1:]])

    def theirs(name, way):
        return lambda: run(["timeout", "120", interpreter(), "serve.py", "--peer", name,
                            "--transport", way, "--seconds", seconds, "--port", str(next(ports))],
                           cwd=folder)

    measures = {(way, load): ours(way, *load.split()) for way in WAYS
                for load in ("", "taken=25", f"made={MADE}")}
    measures.update({way: ours(*way) for way in MANY})
    if folder:
        measures.update({(name, "peer"): theirs(*name) for name in PEERS})
    answers = take_turns(measures, a.rounds)

    def values(key, name="value"):
        return [answer[name] for answer in answers[key]]

    names = {**{(way, ""): name for way, name in WAYS.items()}, **MANY,
             **{(peer, "peer"): name for peer, name in PEERS.items()}}
    tcp = values(("tcp", ""))
    rows = []
    for key, name in names.items():
        if key not in answers:
            continue
        own = values((OURS[name], "")) if name in OURS else tcp
        rows.append([name, spread(values(key)), ratio(values(key), tcp),
                     ratio(own, values(key)) if name in OURS else "",
                     f"{statistics.median(values(key, 'cpu_ms_per_batch')):.1f}"])
    fair = min(values(("tcp", "consumers=8"), "least_over_most"))
    show("serving", "Batches of 4 x 800 x 1216 x 3 bytes between processes, as fast as they come",
         ["", "MB/s", "of millrace, tcp", "millrace by the same way", "CPU ms a batch, both ends"],
         rows,
         f"Medians of {a.rounds} rounds by turns, lowest to highest in brackets. Of eight "
         f"consumers by tcp, the one with the fewest batches had {fair:.2f} of the most. memcpy is "
         "compared with shared memory.")

    floor = values(("socket", "taken=25"), "consumer_core_share")
    rows = []
    for way, name in WAYS.items():
        consumer = values((way, "taken=25"), "consumer_core_share")
        server = values((way, "taken=25"), "server_core_share")
        rows.append([name, spread([100 * v for v in consumer], "{:.1f} %"), ratio(consumer, floor),
                     spread([100 * v for v in server], "{:.1f} %")])
    show("serving-share", "A consumer that takes 100 images/s (25 such batches), share of a core",
         ["", "consumer", "of the bare socket", "server"], rows,
         "16 batches wait for the consumer, in its memory or, by the bare socket, in the kernel's.")

    rows = [[name, *percentiles(answers[way, f"made={MADE}"]), *percentiles(answers[way, ""])]
            for way, name in WAYS.items()]
    made = sum(len(answer["ms"]) for answer in answers["tcp", f"made={MADE}"])
    show("serving-latency", "How long a batch takes from when its server has it until `next()` "
         "gives it to a consumer that waits for it, ms",
         ["", f"{MADE}/s: 50 %", "99 %", "99.9 %", "as fast as they come: 50 %", "99 %", "99.9 %"],
         rows, f"Checksums included, where there are any; {made:,} batches at {MADE}/s. As fast as "
         "they come, two batches of a consumer are on their way at once.")


if __name__ == "__main__":
    main()
