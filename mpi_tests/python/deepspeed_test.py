"""Three ranks use DeepSpeed's interface for checkpoints, with files for torch.load and without; then a node is lost."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import place

place.need("torch", "deepspeed")
PROGRAM = Path(__file__).resolve().parent / "deepspeed_ranks.py"


def run(directory, phase, torch_files):
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3", str(PROGRAM), directory,
                           phase, torch_files], text=True, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **place.DEEPSPEED})
    if done.returncode != 0 or any(f"rank {rank}: done" not in done.stdout for rank in range(3)):
        sys.exit(f"phase {phase}, torch_files {torch_files}:\n{done.stdout}")


late = subprocess.run([sys.executable, "-c", "import kedge.deepspeed as k; k.install(); k.finalize()"], text=True, timeout=120,
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **place.DEEPSPEED})
assert late.returncode == 0 and "call install before deepspeed.initialize" in late.stdout, late.stdout

for torch_files, lost in (("true", 1), ("false", 0)):
    with place.directory() as directory:
        run(directory, "1", torch_files)
        shutil.rmtree(f"{directory}/store/node{lost}")
        run(directory, "2", torch_files)
