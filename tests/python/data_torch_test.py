"""Flows in PyTorch: DataLoader, tensors that share memory, several processes."""

import copy
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SMALL, digests

from millrace.data import Flow

torch = pytest.importorskip("torch")
DataLoader = torch.utils.data.DataLoader


def test_data_loader_accepts_flow(sample: str) -> None:
    expected = [batch.digest() for batch in Flow(root=sample, **SMALL)]
    flow = Flow(root=sample, **SMALL)
    assert isinstance(flow, torch.utils.data.IterableDataset)
    loader = DataLoader(flow, batch_size=None)
    assert [batch.digest() for batch in loader] == expected
    assert next(iter(loader)).epoch >= 0 and flow.epoch == 1
    assert copy.copy(flow).next().digest() == flow.next().digest()


def test_rejects_worker_processes(sample: str) -> None:
    flow = Flow(root=sample, **SMALL)
    for how in ({}, {"multiprocessing_context": "spawn"}):
        with pytest.raises(RuntimeError, match="num_workers=0"):
            list(DataLoader(flow, batch_size=None, num_workers=1, timeout=60, **how))
    assert flow.next().number == 0


def test_rejects_loader_batch_size(sample: str) -> None:
    flow = Flow(root=sample, **SMALL)
    with pytest.raises(TypeError, match="batch_size=None"):
        next(iter(DataLoader(flow, batch_size=4)))


def test_tensors_share_batch_memory(sample: str) -> None:
    batch = Flow(root=sample, **SMALL).next()
    images = torch.from_numpy(batch.images)
    assert images.data_ptr() == batch.images.ctypes.data
    assert torch.from_dlpack(batch.images).data_ptr() == images.data_ptr()
    assert torch.from_numpy(batch.boxes[0]).data_ptr() == batch.boxes[0].ctypes.data
    digest = batch.digest()
    images[0, 0, 0] += 1
    assert batch.digest() != digest
    total = int(images.sum())
    del batch
    assert int(images.sum()) == total


def test_torch_saves_state(sample: str, tmp_path: Path) -> None:
    flow = Flow(root=sample, **SMALL)
    digests(flow, 5)
    torch.save(flow.state_dict(), tmp_path / "state.pt")
    other = Flow(root=sample, **SMALL)
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert digests(other, 3) == digests(flow, 3)


def test_stateful_data_loader_resumes(sample: str) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    expected = [batch.digest() for batch in Flow(root=sample, **SMALL)]
    loader = stateful.StatefulDataLoader(Flow(root=sample, **SMALL), batch_size=None)
    steps = iter(loader)
    assert [next(steps).digest() for _ in range(3)] == expected[:3]
    state = loader.state_dict()
    again = stateful.StatefulDataLoader(Flow(root=sample, **SMALL), batch_size=None)
    again.load_state_dict(state)
    assert [batch.digest() for batch in again] == expected[3:]


RANK = """
import sys, torch.distributed as distributed
from millrace.data import Flow
distributed.init_process_group("gloo", init_method=sys.argv[2], rank=int(sys.argv[3]), world_size=2)
flow = Flow(root=sys.argv[1], batch_size=2, short_side=96, max_side=160)
assert (flow.rank, flow.world_size) == (distributed.get_rank(), 2)
print([int(i) for _ in range(6) for i in flow.next().image_ids])
distributed.destroy_process_group()
"""


def test_uses_ranks_of_torch_distributed(sample: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK, sample, place, str(rank)], text=True,
                         stdout=subprocess.PIPE, env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"})
        for rank in range(2)
    ]  # fmt: skip
    shares = [eval(rank.communicate(timeout=120)[0]) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    whole = Flow(root=sample, **SMALL)
    for k in range(6):
        step = [*shares[0][2 * k : 2 * k + 2], *shares[1][2 * k : 2 * k + 2]]
        assert sorted(step) == sorted(whole.next().image_ids)
