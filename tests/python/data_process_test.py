"""A flow and its process: signals, forks, interpreter shutdown."""

import signal
import subprocess
import sys
from pathlib import Path

from conftest import run_python

HEAD = """
import os, signal, sys, threading, time
import millrace.data
OPTIONS = dict(root=sys.argv[1], batch_size=4, short_side=96, max_side=160)
REST = ["flip", "resize_shortest_edge", "group_by_aspect_ratio", "pad"]
"""
WAITING = HEAD + """
def waits(sample):
    time.sleep(0.2)
    return sample
flow = millrace.data.Flow(**OPTIONS, threads=1, in_flight=4,
                          stages=["read", "decode", waits, *REST])
"""


def test_ctrl_c_ends_wait_without_loss(sample: str) -> None:
    done = run_python(WAITING + """
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
numbers, interrupts = [], 0
while len(numbers) < 3:
    try:
        numbers.append(flow.next().number)
    except KeyboardInterrupt:
        interrupts += 1
signal.setitimer(signal.ITIMER_REAL, 0)
assert numbers == [0, 1, 2] and interrupts > 3, (numbers, interrupts)
""", sample)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_ends_program(sample: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITING + "print('here', flush=True)\nlist(flow)", sample],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parent,
    ) as child:  # fmt: skip
        assert child.stdout and child.stdout.readline() == "here\n"
        child.send_signal(signal.SIGINT)
        _, told = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGINT
    assert told.rstrip().endswith("KeyboardInterrupt")


def test_program_ends_with_active_flows(sample: str) -> None:
    done = run_python(WAITING + """
other = millrace.data.Flow(**OPTIONS)
held = next(iter(other)).images
def take():
    try:
        flow.next()
    except RuntimeError as error:
        assert "closed" in str(error)
for _ in range(6):  # any of these threads may need the interpreter last
    threading.Thread(target=take, daemon=True).start()
time.sleep(0.1)
print(held.shape[0])
""", sample)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "4\n")


def test_reports_use_in_forked_child(sample: str) -> None:
    done = run_python(HEAD + """
flow = millrace.data.Flow(**OPTIONS, stages=["read", "decode", lambda sample: sample, *REST])
batch = flow.next()
state = flow.state_dict()
child = os.fork()
if child == 0:
    for touch in (flow.next, flow.state_dict, flow.report, lambda: next(iter(flow)),
                  lambda: flow.load_state_dict(state), lambda: millrace.data.Flow(**OPTIONS)):
        try:
            touch()
        except RuntimeError as error:
            assert "forked from process" in str(error), error
        else:
            sys.exit(3)
    assert batch.images.any()
    del flow, batch
    sys.exit(0)
status = os.waitpid(child, 0)[1]
assert status == 0, status
print(flow.next().number)
""", sample)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "1\n")


def test_child_forked_early_creates_flow(sample: str) -> None:
    done = run_python(HEAD + """
child = os.fork()
flow = millrace.data.Flow(**OPTIONS)
digest = flow.next().digest()
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    flow.close()
""", sample)
    assert (done.returncode, done.stderr) == (0, "")


def test_import_starts_no_thread() -> None:
    done = run_python("""
import threading, os
import millrace.data, millrace.serving
assert len(os.listdir("/proc/self/task")) == 1
import sys
assert "torch" not in sys.modules
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
