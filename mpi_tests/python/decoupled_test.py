"""decoupled_test.py [LAUNCHER]: three ranks use DeepSpeed's interface in decoupled mode, with torch files and without,
and fail in it: the same answer on all ranks, latest names complete checkpoints only and in order, what comes next
finishes what is pending, a failure behind costs that checkpoint's flush alone.

As torchrun starts them, and with LAUNCHER also by mpirun, where the flush goes on in the background.
"""

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import place
from warm import Warm, free_port

place.need("torch", "deepspeed")

import torch  # noqa: E402

PROGRAM = str(Path(__file__).resolve().parent / "decoupled_ranks.py")
launcher = sys.argv[1:]
warm = Warm("deepspeed", {**os.environ, **place.DEEPSPEED})


def run(launcher, *arguments):
    """Three ranks, by mpirun if a launcher is given."""
    if launcher:
        return subprocess.run([*launcher, "-n", "3", sys.executable, PROGRAM, *arguments], text=True, timeout=200,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, **place.DEEPSPEED, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()})
    return warm.run(PROGRAM, *arguments, ranks=3, timeout=200)


def check(launcher, directory, torch_files, store, *tests):
    done = run(launcher, directory, "1", torch_files, store, *tests)
    if done.returncode != 0 or any(f"rank {rank}: done" not in done.stdout for rank in range(3)):
        sys.exit(f"launcher {launcher}, torch_files {torch_files}, store {store}:\n{done.stdout}")
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
assert not of(persistent={"every": 1}).flushed and dict(of().options)["pipeline.mode"] == "inline"
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
done = warm.run(SETTINGS)
assert done.returncode == 0, done.stdout
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
done = warm.run(FROM_THE_ENVIRONMENT, environment={"KEDGE_PERSISTENT_EVERY": "7"})
assert done.returncode == 0, done.stdout

COMMON = """
import os, sys, torch, torch.distributed as dist, kedge, kedge.deepspeed as k
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo
directory, memory = sys.argv[1:]
k.install({"kedge": {"store.path": memory, "persistent.path": directory + "/prefix", "comm.timeout_s": 10, "log.level": "off",
                     "decoupled": True}})

def save(engine, tag, state):
    info = CheckpointCommitInfo(tag, directory, True)
    engine.create(info)
    engine.makedirs(f"{directory}/{tag}", exist_ok=True)
    engine.save(state, f"{directory}/{tag}/zero_pp_rank_{dist.get_rank()}_mp_rank_00_optim_states.pt")
    engine.secure()
"""

# The end of the program finishes what is pending, files that a thread would help to write, too.
AT_EXIT = COMMON + """
dist.init_process_group("gloo", init_method=f"file://{directory}/group", rank=0, world_size=1)
engine = k.KedgeCheckpointEngine(settings=k._install._installed)
for number in range(2):
    save(engine, f"t{number}", {"x": torch.full((1 << 21,), number)})
"""
# A process group that ends with a checkpoint pending: nothing waits for anything.
ENDED = COMMON + """
dist.init_process_group("gloo", init_method=f"file://{directory}/group", rank=0, world_size=1)
engine = k.KedgeCheckpointEngine(settings=k._install._installed)
save(engine, "t0", {"x": torch.ones(3)})
dist.destroy_process_group()
engine.cleanup()
k.finalize()
assert not os.path.exists(directory + "/latest")
"""
# A rank that is gone while a checkpoint is pending: the others hear of it at the next boundary.
GONE = COMMON + """
dist.init_process_group("gloo")
engine = k.KedgeCheckpointEngine(settings=k._install._installed)
save(engine, "t0", {"rank": dist.get_rank()})
if dist.get_rank() == 1:
    os._exit(0)
try:
    engine.get_commit_info()
except kedge.RankFailed as error:
    print(f"rank {dist.get_rank()} heard: {error}", flush=True)
engine.cleanup()
assert not os.path.exists(directory + "/latest")
os._exit(0)
"""


def run_program(text, ranks=None):
    """Runs it, and returns its directory's files and what it printed."""
    with place.directory() as directory, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        done = warm.run(text, directory, memory, ranks=ranks)
        assert done.returncode == 0 and "Traceback" not in done.stdout, done.stdout
        return {path.relative_to(directory).as_posix(): path.read_bytes() for path in Path(directory).rglob("*")
                if path.is_file()}, done.stdout


files, output = run_program(AT_EXIT)
assert files["latest"] == b"t1", output
for number in range(2):
    state = files[f"t{number}/zero_pp_rank_0_mp_rank_00_optim_states.pt"]
    assert torch.equal(torch.load(io.BytesIO(state))["x"], torch.full((1 << 21,), number)), output
assert not [name for name in files if "/.kedge-" in name and "prefix" not in name], files.keys()
_, output = run_program(ENDED)
assert output.count("ended before kedge.deepspeed.finalize()") == 1, output
_, output = run_program(GONE, ranks=3)
assert all(f"rank {rank} heard" in output for rank in (0, 2)), output

for start in ([], *([launcher] if launcher and place.has("mpi4py") else [])):
    for torch_files in ("true", "false"):
        with place.directory() as directory, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
            check(start, directory, torch_files, memory)
with place.directory() as directory:
    tests = ("test_the_next_checkpoint_finishes_the_one_before", "test_a_load_drains", "test_an_engine_that_never_asks",
             "test_a_commit_that_is_asked_for_waits_on_a_disk")
    check([], directory, "true", "disk", *(f"Ranks.{test}" for test in tests))
warm.close()
