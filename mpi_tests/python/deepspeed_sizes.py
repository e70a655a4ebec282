"""deepspeed_sizes.py DIRECTORY TORCH_FILES STAGE [damaged]: 3 ranks train with DeepSpeed and save; other numbers of ranks load,
or find the newest damaged. Each rank ends with "rank N: done".
"""

import os
import sys
import zlib

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.runtime.zero.utils import ZeRORuntimeException

import kedge
import kedge.deepspeed
from kedge import _torch_files

directory, torch_files, stage = sys.argv[1], sys.argv[2] == "true", int(sys.argv[3])
os.environ["KEDGE_TEST_RANKS_PER_NODE"] = "1"
CONFIG = {
    "train_micro_batch_size_per_gpu": 4, "optimizer": {"type": "Adam", "params": {"lr": 1e-2, "torch_adam": True}},
    "zero_optimization": {"stage": stage},
    "kedge": {"comm": {"timeout_s": 20}, "log": {"level": "error"}, "torch_files": torch_files,
              "store": {"path": f"{directory}/store/{{node}}"}, "persistent": {"path": f"{directory}/prefix", "every": 1}},
}  # fmt: skip
SAVED_BY = 3
deepspeed.init_distributed(dist_backend="gloo", verbose=False)
rank, size = dist.get_rank(), dist.get_world_size()
kedge.deepspeed.install(CONFIG)
torch.manual_seed(size)
model = torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.Linear(5, 1))
engine, optimizer, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=CONFIG)


def weights():
    return zlib.crc32(b"".join(one.detach().numpy().tobytes() for one in model.parameters()))


def momenta():
    """Of stage 0, whose optimizer is PyTorch's."""
    held = [state["exp_avg"] for state in engine.optimizer.state.values()]
    return zlib.crc32(b"".join(one.numpy().tobytes() for one in held))


def train(steps):
    for _ in range(steps):
        loss = engine(torch.ones(4, 8)).mean()
        engine.backward(loss)
        engine.step()


def check_unwritable(beside):
    """Whichever rank writes the model's file."""
    os.mkdir(beside)
    try:
        engine.load_checkpoint(place)
        raise AssertionError("a file that could not be written was passed over")
    except kedge.IoError as error:
        assert "Is a directory" in str(error), error
    os.rmdir(beside)
    dist.barrier()


place = f"{directory}/checkpoints"
if size == SAVED_BY:
    train(2)
    state = {"weights": weights(), "momenta": momenta() if stage == 0 else 0}
    engine.save_checkpoint(place, tag="s")
    engine.save_checkpoint(place, tag="t", client_state=state)
elif "damaged" in sys.argv:
    tries = 0
    path = None
    while path is None:
        try:
            path, _ = engine.load_checkpoint(place)
        except kedge.Corrupt:
            tries += 1
    assert os.path.dirname(path).endswith("/s") and tries == 2, (path, tries)
else:
    if not torch_files and stage < 3:
        check_unwritable(f"{place}/t/.kedge-{rank}-mp_rank_00_model_states.pt")
    changed = [name for name in os.listdir(f"{place}/t") if "zero_pp_rank_2" in name] if torch_files and stage == 1 else []
    for name in changed:
        if rank == 0:
            torch.save({"changed": 1}, f"{place}/t/{name}")
        dist.barrier()
    if stage == 0:
        path, state = engine.load_checkpoint(place)
        assert path is not None and (state["weights"], state["momenta"]) == (weights(), momenta()), (path, state)
    elif stage == 3 and size > SAVED_BY:
        try:
            engine.load_checkpoint(place)
            raise AssertionError("weights were loaded that only other ranks have")
        except kedge.Mismatch as error:
            assert "saved by 3 ranks, and this job has 4" in str(error) and "ds_to_universal.py" in str(error), error
    else:
        try:
            engine.load_checkpoint(place)
            raise AssertionError("partitions of another number of ranks were loaded")
        except ZeRORuntimeException as error:
            assert f"world size of {SAVED_BY}" in str(error), error
        path, state = engine.load_checkpoint(place, load_optimizer_states=False)
        assert path is not None and state["weights"] == weights(), (path, state)
    names = [name for name in sorted(os.listdir(f"{place}/t")) if name.endswith(".pt")]
    assert len(names) == {0: 1, 1: 1 + SAVED_BY, 3: 2 * SAVED_BY}[stage], names
    assert all(_torch_files.is_whole(f"{place}/t/{name}") for name in names if name not in changed)
    assert all(torch.load(f"{place}/t/{name}") == {"changed": 1} for name in changed), "what another program changed stays"
    assert sorted(os.listdir(f"{place}/t")) == sorted(names), os.listdir(f"{place}/t")
    train(1)
    engine.save_checkpoint(place, tag="u")
    engine.load_checkpoint(place, tag="u")
kedge.deepspeed.finalize()
dist.destroy_process_group()
print(f"rank {rank}: done", flush=True)
