"""Times DeepSpeed's checkpoint interface with Kedge against DeepSpeed's own engine and torch.save, in one run.

    torchrun --nproc-per-node 4 deepspeed_bench.py [--mib 128] [--rounds 7] [--directory DIRECTORY]
    mpirun -n 4 python3 deepspeed_bench.py ...       # Kedge's messages go over MPI (needs mpi4py)

Each rank saves a state of its own, as ZeRO's partitions are. The engines take turns within each round; shown are medians
over the rounds of the slowest rank, and each as a ratio to the stock engine's time of the same round. DIRECTORY is where
the files go (the parallel filesystem's part); Kedge's store is where KEDGE_STORE_PATH says, by default in memory.
"""

import argparse
import os
import statistics
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo
from deepspeed.runtime.checkpoint_engine.torch_checkpoint_engine import TorchCheckpointEngine

import kedge.deepspeed
from kedge._memory import dtype_number
from kedge._states import split_state
from kedge.deepspeed._settings import settings_of


def settings(directory, name, torch_files, **more):
    """Each engine is a run of its own."""
    section = {"torch_files": torch_files, "run": name, "log": {"level": "warning"},
               "persistent": {"path": f"{directory}/prefix", "every": 0}, "store": {"on_exit": "remove"}, **more}
    return settings_of({"kedge": section})


def save(engine, state, directory, tag, is_durable=False):
    """Seconds of one checkpoint, as DeepSpeed makes it."""
    rank = dist.get_rank()
    os.makedirs(f"{directory}/{tag}", exist_ok=True)
    path = f"{directory}/{tag}/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
    info = CheckpointCommitInfo(tag, directory, True)
    dist.barrier()
    begin = time.perf_counter()
    engine.create(info)
    engine.save(state, path)
    if is_durable:
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
    engine.commit(info)
    dist.barrier()
    return time.perf_counter() - begin


def slowest(seconds):
    held = torch.tensor(seconds)
    dist.all_reduce(held, op=dist.ReduceOp.MAX)
    return float(held)


def anonymous_kib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))


class Watch:
    """How much anonymous memory was added at most."""

    def __enter__(self):
        self.before = self.most = anonymous_kib()
        self.is_over = False
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def look(self):
        while not self.is_over:
            self.most = max(self.most, anonymous_kib())
            time.sleep(0.0005)

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()

    @property
    def mib(self):
        return (self.most - self.before) / 1024


def per_tensor(directory):
    """Microseconds per tensor above those of the engine's own call, of many small tensors. The ranks take turns: on a
    machine with fewer cores they would wait for each other."""
    engine = kedge.deepspeed.KedgeCheckpointEngine(settings=settings(directory, "small", False))
    count = 5000
    state = {"module": {f"layer.{number}.weight": torch.ones(64) for number in range(count)}}
    info = CheckpointCommitInfo("small", directory, True)
    os.makedirs(f"{directory}/small", exist_ok=True)
    costs = []
    for number in range(7):
        engine.create(info)
        for turn in range(dist.get_world_size()):
            dist.barrier()
            if turn != dist.get_rank():
                continue
            begin = time.perf_counter()
            engine.save(state, f"{directory}/small/zero_pp_rank_{turn}_mp_rank_00_optim_states.pt")
            all_of_it = time.perf_counter() - begin
            regions = [(f"bare/{s.name}", s.on_host().data_ptr(), dtype_number("float32"), s.shape)
                       for s in split_state(state).storages]
            begin = time.perf_counter()
            for name, address, kind, shape in regions:
                engine._shared.low.save(name, address, kind, shape, None)
            engine_alone = time.perf_counter() - begin
            if number > 1:  # the first two meet a new structure
                costs.append((all_of_it - engine_alone) / count * 1e6)
        engine.commit(info)
    return statistics.median(costs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=128, help="of state on each rank")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--directory", help="by default a new one below the current directory")
    arguments = parser.parse_args()
    os.environ["KEDGE_TEST_RANKS_PER_NODE"] = "1"  # each rank counts as a node
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        import mpi4py.MPI  # noqa: F401: initializes MPI, as DeepSpeed does there

        os.environ.update(RANK=os.environ["OMPI_COMM_WORLD_RANK"], WORLD_SIZE=os.environ["OMPI_COMM_WORLD_SIZE"])
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29544")
    dist.init_process_group("gloo")
    held = [arguments.directory or (tempfile.mkdtemp(prefix="kedge-bench-", dir=".") if dist.get_rank() == 0 else None)]
    dist.broadcast_object_list(held)
    directory = os.path.abspath(held[0])

    state = {"optimizer_state_dict": {f"group{number}": torch.randn(arguments.mib * (1 << 20) // 4 // 8)
                                      for number in range(8)}, "step": 1}
    stock = TorchCheckpointEngine()
    stock.zipfile_serialization = True  # as DeepSpeed configures it
    alone = kedge.deepspeed.KedgeCheckpointEngine(settings=settings(directory, "alone", False))
    single = kedge.deepspeed.KedgeCheckpointEngine(settings=settings(directory, "single", False,
                                                                     redundancy={"scheme": "single"}))
    both = kedge.deepspeed.KedgeCheckpointEngine(settings=settings(directory, "both", True,
                                                                   redundancy={"scheme": "single"}))
    beside = kedge.deepspeed.KedgeCheckpointEngine(settings=settings(directory, "beside", True))
    columns = {
        "DeepSpeed's engine": lambda: save(stock, state, directory, "stock"),
        "torch.save and fsync": lambda: save(stock, state, directory, "durable", is_durable=True),
        "Kedge, torch_files false, without protection": lambda: save(single, state, directory, "single"),
        "Kedge, torch_files false": lambda: save(alone, state, directory, "alone"),
        "Kedge, torch_files true, without protection": lambda: save(both, state, directory, "both"),
        "Kedge, torch_files true": lambda: save(beside, state, directory, "beside"),
    }
    times = {name: [] for name in columns}
    memory = dict.fromkeys(columns, 0.0)
    for number in range(arguments.rounds + 2):
        for name, run in columns.items():
            with Watch() as watch:
                seconds = slowest(run())
            if number > 1:  # the first two make files
                times[name].append(seconds)
                memory[name] = max(memory[name], slowest(watch.mib))
    cost = slowest(per_tensor(directory))
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, {arguments.mib} MiB each, medians of {arguments.rounds} rounds\n")
        print("| | s | of DeepSpeed's engine | of torch.save and fsync | anonymous memory, MiB |\n|---|---|---|---|---|")
        for name, seconds in times.items():
            ratios = [statistics.median(mine / other for mine, other in zip(seconds, times[base]))
                      for base in ("DeepSpeed's engine", "torch.save and fsync")]
            print(f"| {name} | {statistics.median(seconds):.3f} | {ratios[0]:.2f} | {ratios[1]:.2f} | {memory[name]:.0f} |")
        print(f"\nper tensor above the engine: {cost:.1f} us")
    kedge.deepspeed.finalize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
