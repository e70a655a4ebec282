"""train_lightning_test.py EXAMPLE: a training that is killed and started again goes on, with the losses of an undisturbed
run; so it does by DDP, with one process after two, too, and so does a program with DeepSpeedStrategy."""

import os
import re
import subprocess
import sys
from pathlib import Path

import place

place.need("torch", "pytorch_lightning")
example = sys.argv[1]


def train(directory, *program):
    done = subprocess.run([sys.executable, *program], cwd=directory, text=True, timeout=150, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          env={**os.environ, **place.DEEPSPEED, "KEDGE_STORE_PATH": f"{directory}/store/{{node}}"})
    return done.returncode, done.stdout, dict(re.findall(r"step (\d+): loss (\d+\.\d+)", done.stdout))


def killed_and_resumed(directory, *program):
    """The losses of both, which end and begin with the same step."""
    status, output, before = train(directory, *program, "--die-at", "10")
    assert status != 0 and list(before) == [str(step) for step in range(1, 10)], output
    status, output, after = train(directory, *program)
    assert status == 0 and list(after) == [str(step) for step in range(9, 21)], output
    assert len(re.findall(r"\[kedge\] opened checkpoint", output)) == 1, output
    assert before["9"] == after["9"], (before, after)
    return {**before, **after}


with place.directory() as undisturbed, place.directory() as disturbed:
    status, output, wanted = train(undisturbed, example)
    assert status == 0 and len(wanted) == 20, output
    found = killed_and_resumed(disturbed, example)
    assert found == wanted, (found, wanted)
with place.directory() as directory:
    killed_and_resumed(directory, example, "--devices", "2")
with place.directory() as directory:
    status, output, _ = train(directory, example, "--devices", "2", "--die-at", "10")
    assert status != 0, output
    status, output, after = train(directory, example)
    assert status == 0 and list(after) == [str(step) for step in range(9, 21)], output
if place.has("deepspeed"):
    with place.directory() as directory:
        killed_and_resumed(directory, str(Path(__file__).resolve().parent / "lightning_deepspeed.py"))
        assert Path(directory, "checkpoints/epoch=4-step=20.ckpt/latest").read_text() == "checkpoint"
