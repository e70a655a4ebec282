"""decoupled_test.py [LAUNCHER]: three ranks use DeepSpeed's interface in decoupled mode, with torch files and without.

By torchrun, and with LAUNCHER also by mpirun, where the flush goes on in the background.
"""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import place

place.need("torch", "deepspeed")
PROGRAM = str(Path(__file__).resolve().parent / "decoupled_ranks.py")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def run(start, directory, torch_files, store, *tests):
    done = subprocess.run([*start, PROGRAM, directory, "1", torch_files, store, *tests], text=True, timeout=200, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          env={**os.environ, **place.DEEPSPEED, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()})
    if done.returncode != 0 or any(f"rank {rank}: done" not in done.stdout for rank in range(3)):
        sys.exit(f"{start}, torch_files {torch_files}, store {store}:\n{done.stdout}")
    assert tests or Path(directory, "last", "latest").read_text() == "last", done.stdout


SETTINGS = """
import kedge
from kedge.deepspeed._settings import settings_of

def of(**section):
    return settings_of({"kedge": section})

chosen = of(decoupled=True)
assert chosen.decoupled and not chosen.flushed
options = dict(chosen.options)
assert (options["pipeline.mode"], options["persistent.every"]) == ("background", "0"), options
chosen = of(decoupled=True, torch_files=False)
options = dict(chosen.options)
assert chosen.flushed and (options["pipeline.mode"], options["persistent.every"]) == ("background", "1"), options
assert dict(of(decoupled=True, pipeline={"mode": "inline"}).options)["pipeline.mode"] == "inline"
assert of(decoupled=True, persistent={"every": 1}).flushed
assert not of(persistent={"every": 1}).flushed and "pipeline.mode" not in dict(of().options)
for words, section in (
    ("persistent.every = 5 leaves most", {"persistent": {"every": 5}}),
    ("persistent.every = 5 leaves most", {"persistent.every": 5, "torch_files": False}),
    ("latest is never written", {"persistent.every": 0, "torch_files": False}),
    ("true or false", {"decoupled": 1}),
    ('did you mean "decoupled"', {"decupled": True}),
):
    try:
        of(**{"decoupled": True, **section} if "decupled" not in section else section)
    except kedge.InvalidArgument as error:
        assert words in str(error), error
    else:
        raise AssertionError(section)
"""
subprocess.run([sys.executable, "-c", SETTINGS], check=True, timeout=120, env={**os.environ, **place.DEEPSPEED})
FROM_THE_ENVIRONMENT = """
import kedge
from kedge.deepspeed._settings import settings_of

try:
    settings_of({"kedge": {"decoupled": True}})
except kedge.InvalidArgument as error:
    assert "persistent.every = 7" in str(error), error
else:
    raise AssertionError("the environment does not count")
"""
subprocess.run([sys.executable, "-c", FROM_THE_ENVIRONMENT], check=True, timeout=120,
               env={**os.environ, **place.DEEPSPEED, "KEDGE_PERSISTENT_EVERY": "7"})

torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3"]
for start in (torchrun, *([[*sys.argv[1:], "-n", "3", sys.executable]] if sys.argv[1:] and place.has("mpi4py") else [])):
    for torch_files in ("true", "false"):
        with place.directory() as directory, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
            run(start, directory, torch_files, memory)
with place.directory() as directory:
    tests = ("test_the_next_checkpoint_finishes_the_one_before", "test_a_load_drains", "test_an_engine_that_never_asks",
             "test_a_commit_that_is_asked_for_waits_on_a_disk")
    run(torchrun, directory, "true", "disk", *(f"Ranks.{test}" for test in tests))
