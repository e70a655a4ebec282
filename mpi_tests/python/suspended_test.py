"""Two ranks of torch.distributed are suspended for longer than comm.timeout_s, while one waits for the other, and go on.

usage: suspended_test.py [PATH]     (PATH: as one of the ranks)
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import place

TIMEOUT_S, STOPPED_S = 4, 6  # importing torch on a busy machine takes a rank a second longer than another


def rank(path):
    import numpy as np
    import torch.distributed as dist

    import kedge
    from kedge.communicators import torch_distributed

    dist.init_process_group("gloo")
    me = dist.get_rank()
    os.environ["KEDGE_TEST_RANKS_PER_NODE"] = "1"
    options = place.options(path, **{"comm.timeout_s": str(TIMEOUT_S)})
    with kedge.Engine(options, communicator=torch_distributed()) as engine:
        for step in range(3):
            with engine.checkpoint(f"step-{step}") as c:
                c.save("numbers", np.full(1000, me + step))
            Path(path, f"rank-{me}").write_text(str(os.getpid()))
            if step == 1 and me == 1:
                Path(path, "late").touch()
                time.sleep(1.5)
    Path(path, f"done-{me}").touch()


def wait_for(job, *files):
    deadline = time.monotonic() + 60
    while not all(file.exists() for file in files):
        assert job.poll() in (None, 0) and time.monotonic() < deadline, (files, job.communicate(timeout=10)[0])
        time.sleep(0.02)


if len(sys.argv) > 1:
    rank(sys.argv[1])
    sys.exit()
place.need("torch")
with place.directory() as path:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    job = subprocess.Popen([*launcher, __file__, path], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env={**os.environ, "OMP_NUM_THREADS": "1"})
    wait_for(job, Path(path, "late"))
    ranks = [int(Path(path, f"rank-{number}").read_text()) for number in range(2)]
    time.sleep(0.7)  # rank 0 waits for rank 1
    for process in ranks:
        os.kill(process, signal.SIGSTOP)
    time.sleep(STOPPED_S)
    for process in ranks:
        os.kill(process, signal.SIGCONT)
    said, _ = job.communicate(timeout=60)
    assert job.returncode == 0, said
    assert "timed out" not in said, said
    wait_for(job, Path(path, "done-0"), Path(path, "done-1"))
