"""other_ranks_test.py LAUNCHER: 3, 1, 5 and 4 ranks load what 4 ranks saved: blocks of global arrays, replicated and single
ranks' values, into memory of any layout; mistakes of one rank fail on all. 3 ranks of torch.distributed load DTensors of 4."""

import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import place

FULL = int(os.environ.get("KEDGE_TEST_FULL") == "1")
HERE = Path(__file__).resolve().parent


def run(launcher, ranks, program, *arguments, **environment):
    done = subprocess.run([*launcher, str(HERE / program), *arguments], text=True, timeout=100, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, "OMP_NUM_THREADS": "1", **environment})  # fmt: skip
    missing = [rank for rank in range(ranks) if f"rank {rank}: done" not in done.stdout]
    if done.returncode != 0 or missing:
        sys.exit(f"{ranks} ranks: exit status {done.returncode}, ranks {missing} did not come to their end:\n{done.stdout}")
    return done.stdout


def over_mpi(ranks, *arguments, **environment):
    return run([sys.argv[1], "-n", str(ranks), sys.executable], ranks, "several_sizes.py", *arguments, **environment)


def over_torch(ranks, path):
    run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)], ranks, "dtensor_ranks.py", path)


with place.directory() as saved:
    over_mpi(4, saved, "save")
    # 3 of the 4 nodes are there; the prefix alone; a node was lost, so that its container is rebuilt.
    for ranks, ranks_per_node, lost, torch in ((3, 1, None, 1), (1, 1, "store", 0), (5, 5, "store", FULL), (4, 1, "store/node1", 0)):
        with place.directory() as path:
            shutil.copytree(saved, path, dirs_exist_ok=True, symlinks=True)
            if lost:
                shutil.rmtree(Path(path, lost))
            output = over_mpi(ranks, path, RANKS_PER_NODE=str(ranks_per_node), WITH_TORCH=str(torch))
            read = [int(rank) for found in re.findall(r"reads \[([^]]*)\]", output) for rank in found.split(",") if rank.strip()]
            assert sorted(read) == [0, 1, 2, 3], output
    for file in Path(saved, "prefix").glob("step-7.*/data/*/rank-2.h5"):
        data = bytearray(file.read_bytes())
        begin = data.index(b"".join(struct.pack("<d", value) for value in range(20_000, 20_010)))  # of rank 2's elements
        data[begin + 8000] ^= 1
        file.write_bytes(data)
    shutil.rmtree(Path(saved, "store"))
    over_mpi(3, saved, "damaged", WITH_TORCH="0")
if place.has("torch"):
    with place.directory() as path:
        over_torch(4, path)
        over_torch(3, path)
