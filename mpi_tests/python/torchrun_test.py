"""Four ranks of torch.distributed, without MPI and without ssh: an exception on one rank drops the checkpoint on all; a
node is lost in between."""

import os
import sys
from pathlib import Path

import place
import ranks

place.need("torch")
# Nothing but the interpreter is found by name.
os.environ["PATH"] = str(Path(sys.executable).parent)
for over in ("torch", "group"):
    with place.directory() as path:
        ranks.check([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4"], path, over)
