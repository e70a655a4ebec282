"""several_ranks.py DIRECTORY [torch | group | mpi4py]: what the tests start on several ranks. Each ends with "rank N: done".

The ranks are those of the launcher, of torch.distributed, of a group of torch.distributed, or of a communicator of mpi4py.
"""

import os
import sys

over = (sys.argv[2:] or ["launcher"])[0]
if over in ("torch", "group"):
    import torch.distributed as dist

    dist.init_process_group("gloo")

import numpy as np
import place

import kedge
from kedge import communicators

path, ranks = sys.argv[1], None
os.environ["KEDGE_TEST_RANKS_PER_NODE"] = "1"  # each rank counts as a node
if over == "group":
    ranks = communicators.torch_distributed(dist.new_group(backend="gloo"))
elif over == "mpi4py":
    from mpi4py import MPI

    ranks = MPI.COMM_WORLD.Split(0, -MPI.COMM_WORLD.rank)  # in another order
    assert communicators.mpi(ranks).rank == MPI.COMM_WORLD.size - 1 - MPI.COMM_WORLD.rank
    try:
        kedge.Engine(ranks)
        sys.exit("a communicator was taken for options")
    except kedge.InvalidArgument as error:
        assert "kedge.Engine(communicator=MPI.COMM_WORLD)" in str(error), error
engine = kedge.Engine(place.options(path, **{"redundancy.scheme": "xor",
                                             "comm.timeout_s": 40}), communicator=ranks)
rank, size = engine.rank, engine.size
assert size == 4, size
MEGA = np.arange(1 << 18, dtype=np.float64) * (rank + 1)


def raises(kind, call):
    try:
        call()
    except kedge.Error as error:
        assert type(error) is kind, error
        return error
    raise AssertionError(f"no {kind.__name__}")


with engine.restart() as saved:
    if saved:
        assert saved.tag == "second", saved.tag
        np.testing.assert_array_equal(saved.load("mega"), MEGA)
        assert saved.attributes == {"step": 2}
        print(f"rank {rank}: resumed, {saved.info.source}", flush=True)

for step, tag in ((1, "first"), (2, "second")):
    with engine.checkpoint(tag, {"step": step}) as c:
        c.save("mega", MEGA)
        c.save("array", np.full((2, 3), rank), shard=kedge.Shard((2 * size, 3), (2 * rank, 0)))
engine.wait("second", "protected")
assert engine.level("second") == kedge.Level.PROTECTED


# One rank fails in the block: it raises its own error, all others one that names it; nothing is lost.
def failing():
    with engine.checkpoint("third") as c:
        c.save("mega", MEGA)
        if rank == 1:
            raise ValueError("disk on fire")


if rank == 1:
    try:
        failing()
        raise AssertionError("nothing was raised")
    except ValueError:
        pass
else:
    error = raises(kedge.InvalidArgument, failing)
    assert error.rank == 1 and "disk on fire" in str(error), error


# Attributes that only one rank cannot pass on.
def bad_attribute():
    with engine.checkpoint("third", {"step": object() if rank == 3 else 1}):
        raise AssertionError("the block was entered")


raises(kedge.InvalidArgument, bad_attribute)


# The same while loading.
def failing_load():
    with engine.restart() as r:
        r.load("mega", out=np.zeros(3) if rank == 2 else None)


raises(kedge.Mismatch, failing_load)


# Ranks in different calls are told so.
def different():
    if rank == 0:
        engine.wait("second", "protected")
    else:
        with engine.checkpoint("fourth") as c:
            c.save("x", 1)


raises(kedge.BadState, different)


# Blocks that overlap.
def overlapping():
    with engine.checkpoint("fifth") as c:
        c.save("array", np.zeros(2), shard=kedge.Shard((2 * size,), (0,)))


raises(kedge.Mismatch, overlapping)

with engine.restart() as saved:
    assert saved.tag == "second"
    np.testing.assert_array_equal(saved.load("mega"), MEGA)
engine.finalize()
print(f"rank {rank}: done", flush=True)
if over in ("torch", "group"):
    dist.destroy_process_group()
