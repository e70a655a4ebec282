"""Three ranks use DeepSpeed's interface for checkpoints, with files for torch.load and without: failures of one rank,
tags, directories that were moved or mistyped, latest, files lost and changed, a node lost, all stores lost, a planted
pickle; other engines are left alone, and a program that failed ends without waiting."""

import os
import shutil
import sys
import time
from pathlib import Path

import place
from warm import Warm

place.need("torch", "deepspeed")
HERE = Path(__file__).resolve().parent
warm = Warm("deepspeed", {**os.environ, **place.DEEPSPEED})


def run(directory, phase, torch_files):
    done = warm.run(str(HERE / "deepspeed_ranks.py"), directory, phase, torch_files, ranks=3)
    if done.returncode != 0 or any(f"rank {rank}: done" not in done.stdout for rank in range(3)):
        sys.exit(f"phase {phase}, torch_files {torch_files}:\n{done.stdout}")


late = warm.run("import kedge.deepspeed as k\nk.install()\nk.finalize()\n")
assert late.returncode == 0 and "call install before deepspeed.initialize" in late.stdout, late.stdout

# A process group that ends before the engine, and another one after it.
AGAIN = """
import os, sys, torch.distributed as dist, kedge.deepspeed as k
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo
directory = sys.argv[1]
k.install({"kedge": {"store.path": directory + "/store", "persistent.path": directory + "/prefix", "log.level": "error"}})
for number in range(2):
    dist.init_process_group("gloo", init_method=f"file://{directory}/group-{number}", rank=0, world_size=1)
    engine = k.KedgeCheckpointEngine(settings=k._install._installed)
    if number == 1:
        assert engine.open(directory) == "t"
        assert engine.load(directory + "/t/a.pt") == {"step": 0}
        engine.close()
    info = CheckpointCommitInfo("t", directory, True)
    engine.create(info)
    engine.makedirs(directory + "/t", exist_ok=True)
    engine.save({"step": number}, directory + "/t/a.pt")
    engine.commit(info)
    if number == 0:
        dist.destroy_process_group()
    k.finalize()
    del engine
child = os.fork()
if child == 0:
    k._shared._at_exit()
    os._exit(0)
os.waitpid(child, 0)
"""
with place.directory() as directory:
    again = warm.run(AGAIN, directory)
    assert again.returncode == 0 and again.stdout.count("ended before kedge.deepspeed.finalize()") == 1, again.stdout
    assert "no engine was made" not in again.stdout, again.stdout

# A rank that is gone before commit: the others hear of it there, and finalize, too, does not wait for it.
GONE = """
import os, sys, torch.distributed as dist, kedge, kedge.deepspeed as k
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo
directory = sys.argv[1]
dist.init_process_group("gloo")
k.install({"kedge": {"store.path": directory + "/store", "persistent.path": directory + "/prefix", "comm.timeout_s": 10,
                     "log.level": "off"}})
engine = k.KedgeCheckpointEngine(settings=k._install._installed)
info = CheckpointCommitInfo("t", directory, True)
engine.create(info)
engine.makedirs(directory + "/t", exist_ok=True)
engine.save({"rank": dist.get_rank()}, f"{directory}/t/zero_pp_rank_{dist.get_rank()}_mp_rank_00_optim_states.pt")
if dist.get_rank() == 1:
    os._exit(0)
try:
    engine.commit(info)
except kedge.RankFailed as error:
    print(f"rank {dist.get_rank()} heard: {error}", flush=True)
for call in (lambda: engine.create(info), k.finalize):
    try:
        call()
    except kedge.Error as error:
        print(f"rank {dist.get_rank()} then: {error}", flush=True)
os._exit(0)
"""
with place.directory() as directory:
    gone = warm.run(GONE, directory, ranks=3)
    assert gone.returncode == 0 and gone.stdout.count("start the job again") >= 4, gone.stdout
    assert "GLHF" not in gone.stdout and all(f"rank {rank} heard" in gone.stdout for rank in (0, 2)), gone.stdout

# All stores are lost: what DeepSpeed itself would load is loaded, where it is there, and nothing is passed over in silence.
LOST = """
import sys, torch.distributed as dist, kedge, kedge.deepspeed as k
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo
directory, torch_files = sys.argv[1], sys.argv[2] == "true"
dist.init_process_group("gloo", init_method=f"file://{directory}/group-{sys.argv[3]}", rank=0, world_size=1)
k.install({"kedge": {"store.path": directory + "/store", "persistent.path": directory + "/prefix", "persistent.every": 0,
                     "log.level": "error", "torch_files": torch_files}})
engine = k.KedgeCheckpointEngine(settings=k._install._installed)
try:
    if sys.argv[3] == "saves":
        info = CheckpointCommitInfo("t", directory, True)
        engine.create(info)
        engine.makedirs(directory + "/t", exist_ok=True)
        engine.save({"step": 1}, directory + "/t/mp_rank_00_model_states.pt")
        engine.commit(info)
        with open(directory + "/latest", "w") as file:
            file.write("t")
    else:
        for tag in (None, "t"):
            try:
                print(engine.open(directory, tag), engine.load(directory + "/t/mp_rank_00_model_states.pt"))
                engine.close()
            except kedge.Error as error:
                print("raised", error.code)
finally:
    k.finalize()
"""
for torch_files, words in (("true", "None {'step': 1}\nNone {'step': 1}\n"),
                           ("false", "raised unrecoverable\nraised not_found\n")):
    with place.directory() as directory:
        for when in ("saves", "loads"):
            lost = warm.run(LOST, directory, torch_files, when)
            assert lost.returncode == 0, lost.stdout
            if when == "saves":
                shutil.rmtree(f"{directory}/store")
        assert "".join(line for line in lost.stdout.splitlines(True) if line.startswith(("None", "raised"))) == words, lost.stdout
        assert ("loading DeepSpeed's own files" in lost.stdout) == (torch_files == "true"), lost.stdout

# At the end of a program that failed nothing waits for the other ranks.
FAILED = """
import sys, torch.distributed as dist, kedge.deepspeed as k
directory = sys.argv[1]
dist.init_process_group("gloo", init_method=f"file://{directory}/group", rank=0, world_size=1)
k.install({"kedge": {"store.path": directory + "/store", "persistent.path": directory + "/prefix", "log.level": "error"}})
engine = k.KedgeCheckpointEngine(settings=k._install._installed)
k._shared.Shared.end = lambda self: print("finalized", flush=True)
if sys.argv[2] == "fails":
    raise ValueError("on one rank")
"""
for ends in ("fails", "ends"):
    with place.directory() as directory:
        failed = warm.run(FAILED, directory, ends)
        assert ("finalized" in failed.stdout) == (ends == "ends"), failed.stdout

# Another directory than was saved to: it is the same one, moved, or the error names both.
PATHS = """
import os, sys, torch.distributed as dist, kedge, kedge.deepspeed as k
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo
directory, torch_files, group = sys.argv[1], sys.argv[2] == "true", sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{directory}/group-{group}", rank=0, world_size=1)
k.install({"kedge": {"store.path": directory + "/store", "persistent.path": directory + "/prefix", "log.level": "error",
                     "store.keep": 9, "torch_files": torch_files}})
engine = k.KedgeCheckpointEngine(settings=k._install._installed)


def save(place, tag, step):
    info = CheckpointCommitInfo(tag, place, True)
    engine.create(info)
    engine.makedirs(f"{place}/{tag}", exist_ok=True)
    engine.save({"step": step}, f"{place}/{tag}/mp_rank_00_model_states.pt")
    engine.commit(info)
    with open(place + "/latest", "w") as file:
        file.write(tag)


for place, tag, step in (one.split(":") for one in sys.argv[4:]):
    if step:
        save(f"{directory}/{place}", tag, int(step))
        continue
    try:
        found = engine.open(f"{directory}/{place}", tag or None)
        print("found", found and engine.load(f"{directory}/{place}/{found}/mp_rank_00_model_states.pt"), flush=True)
        engine.close()
    except kedge.NotFound as error:
        print("named", *(one for one in ("a", "b", "slip", "copy") if f"{directory}/{one}" in str(error)), flush=True)
k.finalize()
"""


def paths(directory, torch_files, group, *steps):
    done = warm.run(PATHS, directory, torch_files, group, *steps)
    assert done.returncode == 0, done.stdout
    return [line for line in done.stdout.splitlines() if line.startswith(("found", "named"))]


def expect(found, *wanted):
    assert found == list(wanted), (found, wanted)


for torch_files in ("true", "false"):
    with place.directory() as directory:
        directory = os.path.realpath(directory)
        expect(paths(directory, torch_files, "1", "a::", "a:t0:7", "a:t1:1", "a:t2:2", "slip::"), "found None", "found None")
        if torch_files == "false":
            shutil.copytree(f"{directory}/a", f"{directory}/copy")
            expect(paths(directory, torch_files, "3", "copy::"), "named a copy")
            shutil.rmtree(f"{directory}/copy")
        expect(paths(directory, torch_files, "2", "slip::", "slip:t1:", "a:t9:", "a:t1:", "a::", "slip::"),
               "named a slip", "named a slip", "found None", "found {'step': 1}", "found {'step': 2}", "found None")
        os.rename(f"{directory}/a", f"{directory}/b")
        expect(paths(directory, torch_files, "4", "slip::", "b:t1:", "b::", "b:t1:", "b:t3:3", "b::", "slip::"),
               "named a slip", *(f"found {{'step': {step}}}" for step in (1, 2, 1, 3)), "found None")
        # With files, these are DeepSpeed's to load.
        older = "found None" if torch_files == "true" else "found {'step': 7}"
        expect(paths(directory, torch_files, "5", "b::", "b:t0:"), "found {'step': 3}", older)
        # Of a run that has both, the directory that is left is its own.
        expect(paths(directory, torch_files, "6", "slip::"), "named a b slip")

# A rank that exits early, or logged what failed and came to its end, is not waited for, and waits for nobody.
ALONE = """
import sys, time, torch.distributed as dist, kedge.deepspeed as k
directory = sys.argv[1]
dist.init_process_group("gloo")
k.install({"kedge": {"store.path": directory + "/store/{node}", "persistent.path": directory + "/prefix", "log.level": "error",
                     "comm.timeout_s": 120}})
engine = k.KedgeCheckpointEngine(settings=k._install._installed)
if dist.get_rank() == 1 or sys.argv[2] == "all":
    if sys.argv[3] == "exit":
        sys.exit(1)
else:
    time.sleep(100)
"""
for who, how in (("one", "exit"), ("one", "ends"), ("all", "exit"), ("all", "ends")):
    with place.directory() as directory:
        begun = time.monotonic()
        alone = warm.run(ALONE, directory, who, how, ranks=2, timeout=30)
        if how == "exit":
            assert alone.returncode == 1 and time.monotonic() - begun < 25, alone.stdout
        assert ("rank 1 ends, and the other ranks did not" in alone.stdout) == (who == "one"), alone.stdout

with place.directory() as directory:
    engines = warm.run(str(HERE / "deepspeed_engines.py"), directory, ranks=2)
    assert engines.returncode == 0 and all(f"rank {rank}: done" in engines.stdout for rank in range(2)), engines.stdout

for torch_files, lost in (("true", 1), ("false", 0)):
    with place.directory() as directory:
        run(directory, "1", torch_files)
        shutil.rmtree(f"{directory}/store/node{lost}")
        run(directory, "2", torch_files)
warm.close()
