"""decoupled_train_test.py EXAMPLE [LAUNCHER]: DeepSpeed's engines, the pipeline engine too, with decoupled checkpoints:
exceptions, interrupts, destroy and the garbage collector in the middle; a training that is killed at every point, with
its stores and without, resumes with the losses of an undisturbed run.

With LAUNCHER by mpirun, without by torchrun.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import place

place.need("torch", "deepspeed", *(["mpi4py"] if sys.argv[2:] else []))
HERE = Path(__file__).resolve().parent
example, launcher = sys.argv[1], sys.argv[2:]
RANKS = 4


def start(ranks):
    return [*launcher, "-n", str(ranks), sys.executable] if launcher else [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]


def run(command, directory):
    done = subprocess.run(command, cwd=directory, text=True, timeout=150, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **place.DEEPSPEED, "KEDGE_STORE_PATH": f"{directory}/store/{{node}}"})
    return done.returncode, done.stdout


def train(directory, *options, killed=()):
    program = [str(HERE / "killed_in.py"), *killed, example] if killed else [example]
    status, output = run([*start(RANKS), *program, "--decoupled", "--steps", "31", *options], directory)
    assert (status == 0) == (not killed), output
    return output, dict(re.findall(r"step (\d+): loss (\d+\.\d+)", output))


def latest(directory):
    return Path(directory, "checkpoints", "latest").read_text()


def resumes(directory, ats, wanted, *options):
    output, found = train(directory, *options)
    at = next((at for at in ats if f"resumed at step {at}\n" in output), None)
    assert at is not None, (ats, output)
    assert found == {step: loss for step, loss in wanted.items() if int(step) > at}, (found, wanted, output)
    assert latest(directory) == "global_step30", output


if not launcher:
    with place.directory() as directory:
        status, output = run([*start(2), str(HERE / "decoupled_engines.py"), directory], directory)
        assert status == 0 and all(f"rank {rank}: done" in output for rank in range(2)), output
        assert Path(directory, "test_z_pending_at_the_end", "latest").read_text() == "last", output

with place.directory() as undisturbed:
    options = ["--stage", "2", "--torch-files"] if launcher else ["--stage", "3"]
    _, wanted = train(undisturbed, *options)
    assert len(wanted) == 31 and latest(undisturbed) == "global_step30", (wanted, latest(undisturbed))

for where, named in {"saved": 10, "told": 10, "named": 20}.items():  # each takes most of a minute
    with place.directory() as killed, place.directory() as copies:
        output, _ = train(killed, *options, killed=(where, "global_step20"))
        assert latest(killed) == f"global_step{named}", (where, output)
        kept = f"{copies}/kept"
        shutil.copytree(killed, kept)
        if where != "named":
            resumes(killed, [20], wanted, *options)
        if where != "told":
            # Without the stores there is what latest names, at least; without torch files a flush may just be over.
            shutil.rmtree(killed)
            shutil.move(kept, killed)  # checkpoints know their directory
            shutil.rmtree(f"{killed}/store")
            resumes(killed, [20] if where == "named" else [10] if launcher else [10, 20], wanted, *options)
