"""What torch_bench.py measures. Each row's ``work`` does it once, and returns its parts: seconds by name."""

import os
import time
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

import kedge
from kedge import communicators


class Row:
    """``is_slow``: it needs no more than one round to warm up. ``may_fail``: it is left out then."""

    def __init__(self, name, work, is_slow=False, may_fail=False):
        self.name, self.work, self.is_slow, self.may_fail = name, work, is_slow, may_fail


def synchronize():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def wake(state):
    """A GPU that was idle for seconds runs at a fraction of its clock at first; one that computes does not. What a row
    leaves behind, such as files and memory that its processes free, is not the next one's cost."""
    largest = max(state.values(), key=lambda tensor: tensor.nbytes)
    if not largest.is_cuda:
        return
    time.sleep(0.3)
    end = time.perf_counter() + 0.1
    while time.perf_counter() < end:
        largest.clone()
        synchronize()


def timed(work):
    """``work`` with what it gave the GPU."""

    def timed_work():
        synchronize()
        begin = time.perf_counter()
        work()
        synchronize()
        return {"": time.perf_counter() - begin}

    return timed_work


def training_state(size_bytes, device):
    """50 tensors of varied sizes: weights in bfloat16, and what an optimizer keeps of them in float32."""
    shares = {"embedding.weight": (6, torch.bfloat16), "head.weight": (6, torch.bfloat16)}
    for layer in range(6):
        for kind, dtype in (("weight", torch.bfloat16), ("moment", torch.float32)):
            for part, share in (("attention", 3), ("up", 4), ("down", 4), ("norm", 0.002)):
                shares[f"layer{layer}.{part}.{kind}"] = (share, dtype)
    whole = sum(share * dtype.itemsize for share, dtype in shares.values())
    generator = torch.Generator(device).manual_seed(1)
    return {name: torch.randn(max(1, int(size_bytes * share / whole)), generator=generator, device=device, dtype=dtype)
            for name, (share, dtype) in shares.items()}


def copies(state, others):
    """As fast as PyTorch can: each tensor by one copy of its own, not waited for."""
    is_cuda = next(iter(state.values())).is_cuda
    pinned = {name: torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=is_cuda) for name, tensor in state.items()}

    def copy_into(targets):
        for name, tensor in state.items():
            targets[name].copy_(tensor, non_blocking=True)

    return [Row("copy to the host", timed(lambda: copy_into(pinned))),
            Row("copy within the device", timed(lambda: copy_into(others)))]


def of_torch(directory, state):
    return [Row("torch.save", timed(lambda: torch.save(state, f"{directory}/state.pt")), is_slow=True)]


def loads(directory, engine, targets):
    """Into tensors that exist, by Kedge; new ones, by PyTorch."""
    device = next(iter(targets.values())).device
    return [Row("torch.load", timed(lambda: torch.load(f"{directory}/state.pt", map_location=device)), is_slow=True),
            Row("Kedge, load", timed(lambda: engine.load(targets)))]


class Kedge:
    """An engine, and the state that it saves."""

    def __init__(self, name, directory, run, state, stack, options):
        settings = {"run": run, "store.path": f"{directory}/store-{run}", "store.on_exit": "remove",
                    "persistent.path": f"{directory}/prefix", "persistent.every": 0, "redundancy.scheme": "single",
                    "pipeline.mode": "background", "log.level": "warning", **options}
        self.name, self.state, self.saved = name, state, 0
        self.engine = stack.enter_context(kedge.Engine(settings, communicator=communicators.single_process()))

    def commit(self):
        self.saved += 1
        tag = f"step-{self.saved}"
        with self.engine.checkpoint(tag) as checkpoint:
            for name, tensor in self.state.items():
                checkpoint.save(name, tensor)
        return tag

    def save(self):
        synchronize()
        begin = time.perf_counter()
        tag = self.commit()
        blocked = time.perf_counter() - begin
        self.engine.wait(tag, "local")
        return {"blocked": blocked, "done": time.perf_counter() - begin}

    def load(self, targets):
        with self.engine.restart() as saved:
            for name, target in targets.items():
                saved.load(name, out=target)


def kedge_engines(directory, state, stack):
    """Straight into the store's files, by buffers, and with copies on the GPU; and which of them this Kedge lacks."""
    ways = [("Kedge", "direct", {"device.path": "auto"}), ("Kedge by buffers", "buffers", {"device.path": "buffers"}),
            ("Kedge with snapshot", "snapshot", {"device.snapshot": True})]
    engines, skipped = [], {}
    for name, run, options in ways:
        try:
            engines.append(Kedge(name, directory, run, state, stack, options))
        except kedge.InvalidArgument as error:
            if run != "snapshot":
                raise
            skipped[name] = str(error)
    return engines, skipped


def check_bytes(engine, state, wanted):
    """What is saved is what the tensors were when commit returned. Returns the level that it returned at."""
    level = engine.engine.level(tag := engine.commit())
    for tensor in state.values():
        tensor.zero_()
    engine.engine.wait(tag, "local")
    engine.load(state)
    different = [name for name, tensor in state.items() if not torch.equal(tensor, wanted[name])]
    if different:
        raise AssertionError(f"{engine.name}: other bytes in {', '.join(different)}")
    return level.name.lower()


def of_dcp(directory, state, stack):
    """async_save as it is, in the ways that this PyTorch has."""
    warnings.filterwarnings("ignore", message="Detected an existing checkpoint")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    try:
        dist.init_process_group("gloo", init_method=f"file://{directory}/rendezvous", rank=0, world_size=1)
        stack.callback(dist.destroy_process_group)
    except Exception as error:  # DCP does without in a single process, but for that of its own
        print(f"no process group: {error}")
    is_cuda = next(iter(state.values())).is_cuda

    def way(name, process=False, **staging):
        stagers = []

        def stager():
            from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

            # Some releases close it when a save is done, so that memory is pinned anew for each.
            if stagers and not is_open(stagers[-1]):
                stagers.clear()
            if not stagers:
                stagers.append(DefaultStager(StagingOptions(**staging)))
                stack.callback(stagers[0].close)
            return stagers[0]

        def work():
            more = {"async_stager": stager()} if staging else {}
            if process:
                from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

                more["async_checkpointer_type"] = AsyncCheckpointerType.PROCESS
            return async_save(state, f"{directory}/{name.replace(' ', '-')}", more)

        return Row(name, work, is_slow=True, may_fail=True)

    def options(shared=False, background=False):
        return {"use_pinned_memory": is_cuda, "use_shared_memory": shared, "use_async_staging": background,
                "use_non_blocking_copy": is_cuda}

    return [way("async_save"), way("async_save with pinned staging", **options()),
            way("async_save with staging in the background", **options(background=True)),
            way("async_save in a process", process=True, **options(shared=True))]


def is_open(stager):
    return bool(getattr(getattr(stager, "_state_dict_stager", None), "_deepcopy_dispatch", True))


def async_save(state, path, options):
    synchronize()
    begin = time.perf_counter()
    answer = dcp.async_save(state, checkpoint_id=path, **options)
    parts = {}
    if hasattr(answer, "staging_completion"):
        parts["returned"] = time.perf_counter() - begin
        answer.staging_completion.result(timeout=30)
        answer = answer.upload_completion
    parts["blocked"] = time.perf_counter() - begin
    answer.result(timeout=30)
    return {**parts, "done": time.perf_counter() - begin}
