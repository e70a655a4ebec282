"""Trains a small model with DeepSpeed and Kedge: killed, even with a node lost, and started again, it has the same losses.

    mpirun -n 4 python3 train_deepspeed.py
    torchrun --nproc-per-node 4 train_deepspeed.py

Each rank counts as a node here (KEDGE_TEST_RANKS_PER_NODE), so that one machine shows what happens when one is lost. Needs
DeepSpeed, PyTorch and kedge; with mpirun also mpi4py.
"""

import argparse
import os
import signal

import deepspeed
import torch

import kedge.deepspeed

CHECKPOINTS = "checkpoints"


def config_of(arguments: argparse.Namespace) -> dict:
    return {
        "train_micro_batch_size_per_gpu": 8,
        "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 20}},
        "zero_optimization": {
            "stage": arguments.stage,
            # DeepSpeed 0.19.5 gathers small parameters of stage 3 together, and uses them when the last one has arrived:
            # over gloo, others may not have. With 0 it gathers each when it is needed.
            "stage3_param_persistence_threshold": 0,
        },
        "kedge": {
            "torch_files": arguments.torch_files,
            "decoupled": arguments.decoupled,
            "redundancy": {"scheme": "xor"},
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--stage", type=int, default=2, help="ZeRO stage, 0 to 3")
    parser.add_argument("--torch-files", action="store_true", help="also write the files that DeepSpeed would")
    parser.add_argument("--decoupled", action="store_true", help="train on while checkpoints are flushed")
    parser.add_argument("--die-at", type=int, default=0, help="kill the last rank at this step, to see it resume")
    parser.add_argument("--local_rank", type=int, help="set by launchers; not needed")
    arguments = parser.parse_args()

    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    os.environ.setdefault("KEDGE_TEST_RANKS_PER_NODE", "1")  # each rank counts as a node
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    config = config_of(arguments)
    kedge.deepspeed.install(config)  # before deepspeed.initialize
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)

    step = 0
    path, state = engine.load_checkpoint(CHECKPOINTS)  # the newest that all ranks can recover
    if path is not None:
        step = state["step"]
        if rank == 0:
            print(f"resumed at step {step}", flush=True)

    while step < arguments.steps:
        step += 1
        data = torch.Generator().manual_seed(step * size + rank)  # the position in the data is the step
        inputs = torch.randn(8, 32, generator=data)
        loss = torch.nn.functional.mse_loss(engine(inputs), inputs.sum(dim=1, keepdim=True))
        engine.backward(loss)
        engine.step()
        if arguments.die_at == step and rank == size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        mean = loss.detach().clone()
        torch.distributed.all_reduce(mean)
        if rank == 0:
            print(f"step {step}: loss {mean.item() / size:.6f}", flush=True)
        if step % 10 == 0:
            engine.save_checkpoint(CHECKPOINTS, client_state={"step": step})

    kedge.deepspeed.finalize()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
