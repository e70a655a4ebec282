"""dtensor_ranks.py DIRECTORY: 4 ranks of torch.distributed save DTensors, another number of ranks loads them into DTensors
that are placed otherwise. Each rank ends with "rank N: done"."""

import os
import sys

import place
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, zeros

import kedge

FULL = torch.arange(35, dtype=torch.float32).reshape(7, 5)
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
row = init_device_mesh("cpu", (size,))
os.environ["KEDGE_TEST_RANKS_PER_NODE"] = "1"


def refuses(words, call):
    try:
        call()
        raise AssertionError(f"not refused: {words}")
    except kedge.InvalidArgument as error:
        assert words in str(error), error


with kedge.Engine(place.options(sys.argv[1], **{"comm.timeout_s": 40})) as engine:
    if size == 4:
        square = init_device_mesh("cpu", (2, 2))
        with engine.checkpoint("a") as c:
            for name, mesh, placements in (
                ("rows", row, [Shard(0)]), ("columns", row, [Shard(1)]), ("all", row, [Replicate()]),
                ("blocks", square, [Shard(0), Shard(1)]), ("twice", square, [Shard(0), Shard(0)]),
                ("copies", square, [Replicate(), Shard(0)]),
            ):  # fmt: skip
                c.save(name, distribute_tensor(FULL, mesh, placements))
            parts = DTensor.from_local(torch.ones(2), row, [Partial()])
            refuses("which is not a block of the array", lambda: c.save("parts", parts))
            uneven = DTensor.from_local(torch.ones(3), row, [Shard(0)], shape=(8,), stride=(1,), run_check=False)
            refuses("has shape (3,) instead of (2,)", lambda: c.save("uneven", uneven))
            refuses("leave shard and replicated out", lambda: c.save("rows2", distribute_tensor(FULL, row, [Shard(0)]), replicated=True))
        engine.wait("a", "persistent")
    with engine.restart() as r:
        assert r.info.world_size == 4
        out = {name: zeros(7, 5, device_mesh=row, placements=[place]) for name, place in (
            ("rows", Shard(1)), ("columns", Shard(0)), ("all", Replicate()), ("blocks", Shard(0)), ("twice", Shard(1)),
            ("copies", Replicate()))}  # fmt: skip
        out["rows"].requires_grad_()
        got = r.load_all({name: kedge.Want(out=tensor) for name, tensor in out.items()})
        refuses("leave shard, replicated and of out", lambda: r.load_all({"all": kedge.Want(out=out["all"], replicated=True)}))
        for name, tensor in out.items():
            assert got[name] is tensor and torch.equal(tensor.full_tensor(), FULL), name
print(f"rank {rank}: done", flush=True)
dist.destroy_process_group()
