"""Batches from data servers: from Python's servers and the trainer's, killed and restarted."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL, TRAINER, digests, run_python

from millrace.data import Flow
from millrace.serving import Batches, Server, make_keys

SERVE = """
import sys, millrace.serving
millrace.serving.Server(root=sys.argv[1], batch_size=4, short_side=96, max_side=160,
                        bind=sys.argv[2]).run()
"""


class Process:
    """A data server in its own process, which is killed at the end."""

    def __init__(self, sample: str, endpoint: str, by_trainer: bool = False) -> None:
        if by_trainer:
            root = Path(__file__).parents[2]
            sets = [f"data.{key}={value}" for key, value in {"root": sample, **SMALL}.items()]
            command = [TRAINER, "serve", str(root / "configs/maskrcnn.toml"), "--bind", endpoint]
            command += [word for text in sets for word in ("--set", text)]
        else:
            command = [sys.executable, "-c", SERVE, sample, endpoint]
        self.child = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()


@pytest.fixture
def served(sample: str) -> Iterator[Server]:
    """Returns a data server that runs in a thread of this process."""
    server = Server(root=sample, **SMALL, bind="tcp://127.0.0.1:*")
    thread = threading.Thread(target=server.run)
    thread.start()
    yield server
    server.stop()
    thread.join()


def test_batches_match_local_flow(sample: str, served: Server) -> None:
    expected = digests(Flow(root=sample, **SMALL, seed=7), 10)
    with Batches(served.endpoint, seed=7) as batches:
        assert batches.facts == {} and batches.epoch_size is None
        assert digests(batches, 10) == expected
        assert batches.facts["data.batch_size"] == "4"
        assert batches.epoch_size == 25 and batches.epoch == 1
        assert batches.report()["stages"][0]["name"] == served.endpoint
    flow = Flow(root=sample, **SMALL, seed=7, source=[served.endpoint])
    assert digests(flow, 10) == expected
    halves = [Batches([served.endpoint], rank=rank, world_size=2) for rank in range(2)]
    ids = {rank: set(half.next().image_ids) for rank, half in enumerate(halves)}
    assert not ids[0] & ids[1]


def test_loop_ends_with_epoch(sample: str, served: Server) -> None:
    batches = Batches(served.endpoint)
    here = Flow(root=sample, **SMALL)
    for _ in range(2):
        assert [b.digest() for b in batches] == [b.digest() for b in here]


def test_state_requires_servers_with_same_data(
    sample: str, served: Server, tmp_path: Path
) -> None:
    expected = digests(Flow(root=sample, **SMALL), 8)
    batches = Batches(served.endpoint)
    digests(batches, 3)
    state = batches.state_dict()
    other = Batches(served.endpoint)
    other.load_state_dict(state)
    batch = other.next()
    assert (batch.number, batch.digest()) == (3, expected[3])
    with pytest.raises(ValueError, match="data.flip is 0.25 .*0.5"):
        other.load_state_dict({**state, "facts": {**state["facts"], "data.flip": "0.25"}})
    fresh = Batches(served.endpoint, timeout=20)
    fresh.load_state_dict({**state, "facts": {**state["facts"], "data.flip": "0.25"}})
    with pytest.raises(RuntimeError, match="data.flip is 0.25 .*0.5 .*server"):
        fresh.next()
    flow = Flow(root=sample, **SMALL)
    flow.load_state_dict(state)
    assert flow.next().digest() == expected[3], "a flow here goes on, too"


def test_views_outlive_connection_and_server(sample: str, tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/socket"
    server = Process(sample, endpoint)
    batches = Batches(endpoint)
    views = [batches.next().images for _ in range(5)]
    copies = [view.copy() for view in views]
    for _ in range(20):
        batches.next()
    batches.close()
    server.kill()
    assert all((view == copy).all() for view, copy in zip(views, copies))


@pytest.mark.parametrize("by_trainer", [False, True])
def test_survives_server_restart(
    sample: str, tmp_path: Path, by_trainer: bool
) -> None:
    if by_trainer and not TRAINER:
        pytest.skip("MILLRACE_TRAINER names no trainer")
    endpoints = [f"ipc://{tmp_path}/{k}" for k in range(2)]
    servers = [Process(sample, endpoint, by_trainer) for endpoint in endpoints]
    here = Flow(root=sample, **SMALL)
    batches = Batches(endpoints)
    try:
        for round in range(6):
            for _ in range(40):
                assert batches.next().digest() == here.next().digest()
            servers[round % 2].kill()
            servers[round % 2] = Process(sample, endpoints[round % 2], by_trainer)
    finally:
        for server in servers:
            server.kill()


def test_requires_keys(sample: str, tmp_path: Path) -> None:
    for name in ("server", "consumer", "stranger"):
        make_keys(tmp_path / name)
    with pytest.raises(RuntimeError, match="already exists"):
        make_keys(tmp_path / "server")
    keys = {"key": tmp_path / "server.key", "allow": [tmp_path / "consumer.pub"]}
    server = Server(root=sample, **SMALL, bind="tcp://127.0.0.1:*", **keys)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        theirs = tmp_path / "server.pub"
        batches = Batches(server.endpoint, key=tmp_path / "consumer.key", server_key=theirs)
        assert batches.next().digest() == Flow(root=sample, **SMALL).next().digest()
        stranger = Batches(
            server.endpoint, key=tmp_path / "stranger.key", server_key=theirs, timeout=1
        )
        with pytest.raises(RuntimeError, match="key"):
            stranger.next()
    finally:
        server.stop()
        thread.join()
    with pytest.raises(ValueError, match="source_server_key"):
        Batches(server.endpoint, key=tmp_path / "consumer.key")


def test_reports_invalid_arguments(sample: str, tmp_path: Path) -> None:
    wrong: list[tuple[Any, str]] = [
        ("nowhere", "'nowhere'"),
        ([], "source"),
        ({"servers": "tcp://127.0.0.1:1", "rank": 3, "world_size": 2}, "rank 3 of 2"),
        ({"servers": "tcp://127.0.0.1:1", "seed": -1}, "seed = -1"),
    ]
    for arguments, why in wrong:
        with pytest.raises(ValueError, match=why):
            Batches(**arguments) if isinstance(arguments, dict) else Batches(arguments)
    with pytest.raises(RuntimeError, match="no data server"):
        Batches(f"ipc://{tmp_path}/none", timeout=1).next()
    with pytest.raises(ValueError, match="insecure=True"):
        Server(root=sample, bind="tcp://*:0")
    with pytest.raises(ValueError, match="functions"):
        Server(root=sample, stages=["read", lambda sample: sample])
    with pytest.raises(ValueError, match="'nowhere'"):
        Server(root=sample, bind="nowhere")


def test_ctrl_c_ends_wait_for_server(tmp_path: Path) -> None:
    code = f"""
import millrace.serving
batches = millrace.serving.Batches("ipc://{tmp_path}/none")
print("here", flush=True)
batches.next()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as child:  # fmt: skip
        assert child.stdout and child.stdout.readline() == "here\n"
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
    assert child.returncode == -signal.SIGINT


def test_program_ends_with_server_in_thread(sample: str, tmp_path: Path) -> None:
    done = run_python("""
import sys, threading, millrace.serving
server = millrace.serving.Server(root=sys.argv[1], bind=sys.argv[2])
threading.Thread(target=server.run, daemon=True).start()
batches = millrace.serving.Batches(server.endpoint)
print(len(batches.next()))
""", sample, f"ipc://{tmp_path}/socket")  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "4\n", "")


def test_server_ends_on_ctrl_c(sample: str, tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/socket"
    server = Process(sample, endpoint)
    Batches(endpoint).next()
    server.child.send_signal(signal.SIGINT)
    assert server.child.wait(timeout=60) == -signal.SIGINT
    assert not os.path.exists(f"{tmp_path}/socket")
