"""train_torch_test.py EXAMPLE: a training that is killed midway resumes, with the losses of an undisturbed run."""

import os
import re
import subprocess
import sys

import place

place.need("torch")
example = sys.argv[1]


def train(directory, *arguments):
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", example, *arguments],
                          cwd=directory, text=True, timeout=90, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "KEDGE_STORE_PATH": f"{directory}/store", "OMP_NUM_THREADS": "1"})
    return done.returncode, done.stdout, dict(re.findall(r"step (\d+): loss (\d+\.\d+)", done.stdout))


with place.directory() as undisturbed, place.directory() as disturbed:
    status, output, wanted = train(undisturbed)
    assert status == 0 and len(wanted) == 60, output
    assert any(name.startswith("step-60.") for name in os.listdir(f"{undisturbed}/checkpoints"))
    status, output, _ = train(disturbed, "--die-at", "35")
    assert status != 0 and "step 36:" not in output, output
    status, output, found = train(disturbed)
    assert status == 0 and "resumed at step 30" in output, output
    assert found == {step: loss for step, loss in wanted.items() if int(step) > 30}, (found, wanted)
