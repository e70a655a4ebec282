"""background_ranks.py DIRECTORY [kill]: what background_test.py starts on several ranks of torch.distributed."""

import ctypes
import os
import signal
import sys
import threading

import place
import torch
import torch.distributed as dist

import kedge

path, kills = sys.argv[1], sys.argv[2:] == ["kill"]
os.environ["KEDGE_TEST_RANKS_PER_NODE"] = "1"  # each rank counts as a node
dist.init_process_group("gloo")
lines = []
lines_by_thread = {}  # how many each has logged, as far as the interpreter still knows it
known = threading.local()


def log_line(level, line):
    lines.append(line)
    known.lines = getattr(known, "lines", 0) + 1
    lines_by_thread[threading.get_ident()] = known.lines


engine = kedge.Engine(
    place.options(path, **{"redundancy.scheme": "xor", "persistent.every": 2,
                           "pipeline.mode": "background", "comm.timeout_s": 60, "log.level": "debug"}),
    log=log_line)
rank, size = engine.rank, engine.size
log = lambda: "\n".join(lines)  # noqa: E731
if rank == 0:
    assert "background work sends over TCP, on 127.0.0.0/8" in log(), log()
# Children as data loaders fork them. Not by Python's fork: in 3.11 its child may wait for ever for a lock of the
# interpreter that another thread of the parent had (seen in _PyThreadState_DeleteExcept, without a worker too).
libc = ctypes.PyDLL(None)


def fork_child():
    pid = libc.fork()
    if pid == 0:
        libc.usleep(300_000)
        libc._exit(0)
    return pid


first = 0
with engine.restart() as saved:
    if saved:
        first = int(saved.attributes["step"])
        torch.testing.assert_close(saved.load("mega")[0], torch.tensor(first + rank, dtype=torch.float64).numpy()[()])
        print(f"rank {rank}: resumed {first}, {saved.info.source}", flush=True)
# The children end while work is under way.
for step in range(first + 1, first + 5):
    children = [fork_child()]
    with engine.checkpoint(f"step-{step}", {"step": step}) as c:
        c.save("mega", torch.full((1 << 19,), step + rank, dtype=torch.float64))
    children.append(fork_child())
    # The application's messages go on meanwhile.
    for _ in range(20):
        sum_of = torch.ones(1000)
        dist.all_reduce(sum_of)
        assert float(sum_of[0]) == size
    assert all(os.waitpid(child, 0) == (child, 0) for child in children)
print(f"rank {rank}: committed {step}", flush=True)
if kills:
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
engine.wait(f"step-{step}", "persistent")
assert engine.counters().protections >= 4, engine.counters()
if rank == 0:
    assert log().count("its other stages run in the background") == 4, log()
    # A thread that the interpreter forgets after each line is a hazard to the application's forks.
    assert all(count > 1 for count in lines_by_thread.values()) and len(lines_by_thread) > 1, lines_by_thread
engine.finalize()
print(f"rank {rank}: done", flush=True)
dist.destroy_process_group()
