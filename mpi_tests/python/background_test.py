"""Three ranks of torch.distributed that protect and flush in the background, over TCP, while they communicate over gloo and
their data loaders fork. A rank is killed with work under way, and then a node is lost: the newest checkpoint comes back."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import place

place.need("torch")
os.environ["PATH"] = str(Path(sys.executable).parent)
PROGRAM = Path(__file__).resolve().parent / "background_ranks.py"


def run(path, *arguments):
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3", str(PROGRAM), path,
                           *arguments], text=True, timeout=150, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    return done.returncode, done.stdout


with place.directory() as path:
    code, output = run(path, "kill")
    assert code != 0 and output.count("committed 4") == 3 and ": done" not in output, output
    code, output = run(path)
    assert code == 0 and output.count("resumed 4") == 3 and output.count(": done") == 3, output
    shutil.rmtree(next(Path(path, "store").iterdir()))
    code, output = run(path)
    assert code == 0 and output.count("resumed 8, rebuilt") == 3 and output.count(": done") == 3, output
