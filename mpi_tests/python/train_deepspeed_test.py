"""train_deepspeed_test.py EXAMPLE [LAUNCHER]: a training that is killed with a node resumes, with the losses of an undisturbed run.

With LAUNCHER by mpirun; without by torchrun, where neither MPI's programs nor ssh can be found.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import place

place.need("torch", "deepspeed", *(["mpi4py"] if sys.argv[2:] else []))
example, launcher = sys.argv[1], sys.argv[2:]


def path_without_mpi(directory):
    """A search path on which no MPI's launcher and no ssh are."""
    tools = Path(directory, "tools")
    tools.mkdir()
    for name in ("bash", "sh", "env", "uname", "gcc", "g++", "c++", "ld", "as", "ninja", "which", "hostname"):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    return str(tools)


def train(directory, environment, *arguments):
    start = [*launcher, "-n", "4", sys.executable] if launcher else [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4"]
    done = subprocess.run([*start, example, "--steps", "30", *arguments], cwd=directory, text=True, timeout=150,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **place.DEEPSPEED, **environment,
                               "KEDGE_STORE_PATH": f"{directory}/store/{{node}}"})
    return done.returncode, done.stdout, dict(re.findall(r"step (\d+): loss (\d+\.\d+)", done.stdout))


with place.directory() as undisturbed, place.directory() as disturbed:
    options = ["--stage", "2", "--torch-files"] if launcher else ["--stage", "3"]
    environment = {} if launcher else {"PATH": path_without_mpi(disturbed)}
    status, output, wanted = train(undisturbed, environment, *options)
    assert status == 0 and len(wanted) == 30, output
    status, output, _ = train(disturbed, environment, *options, "--die-at", "17")
    assert status != 0 and "step 18:" not in output, output
    shutil.rmtree(f"{disturbed}/store/node3")
    status, output, found = train(disturbed, environment, *options)
    assert status == 0 and "resumed at step 10" in output and "1 rebuilt" in output, output
    assert found == {step: loss for step, loss in wanted.items() if int(step) > 10}, (found, wanted)
