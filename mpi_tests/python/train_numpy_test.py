"""train_numpy_test.py LAUNCHER EXAMPLE: a training that is killed midway resumes, and ends with the same loss as undisturbed."""

import os
import re
import subprocess
import sys

import place

launcher, example = sys.argv[1:]
LOSS = r"step 200: loss (\d\.\d+e[+-]\d\d)"  # a line of the log may follow at once: several processes print


def train(directory, *arguments):
    done = subprocess.run([launcher, "-n", "4", sys.executable, example, *arguments], cwd=directory, text=True,
                          timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "KEDGE_STORE_PATH": f"{directory}/store", "OMP_NUM_THREADS": "1"})
    return done.returncode, done.stdout


with place.directory() as undisturbed, place.directory() as disturbed:
    status, output = train(undisturbed)
    assert status == 0, output
    final = re.findall(LOSS, output)
    assert len(final) == 1, output
    status, output = train(disturbed, "--die-at", "130")
    assert status != 0 and "step 200" not in output, output
    status, output = train(disturbed)
    assert status == 0 and "resumed at step 120" in output, output
    assert re.findall(LOSS, output) == final, (output, final)
