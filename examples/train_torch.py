"""Trains a small model with PyTorch's DistributedDataParallel, and Kedge: if it is killed, start it again and it resumes.

    torchrun --nproc-per-node 4 train_torch.py
    mpirun -n 4 python3 train_torch.py

All ranks run the same lines: there is no `if rank == 0` around a checkpoint. Needs PyTorch and kedge.
"""

import argparse
import os
import signal

import torch
import torch.distributed as dist

import kedge


def start() -> None:
    """torchrun sets RANK and its like; so does this for what mpirun started on one machine."""
    if "OMPI_COMM_WORLD_RANK" in os.environ and "RANK" not in os.environ:
        os.environ["RANK"] = os.environ["OMPI_COMM_WORLD_RANK"]
        os.environ["WORLD_SIZE"] = os.environ["OMPI_COMM_WORLD_SIZE"]
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29533")
    dist.init_process_group("gloo")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--die-at", type=int, default=0, help="kill the last rank at this step, to see it resume")
    arguments = parser.parse_args()
    start()
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 20)
    random = torch.Generator().manual_seed(rank)  # each rank has data of its own
    step = 0

    with kedge.Engine() as engine:
        with engine.restart() as saved:  # the newest checkpoint that all ranks can recover
            if saved:
                state = saved.load_state("training")
                model.load_state_dict(state["model"])
                optimizer.load_state_dict(state["optimizer"])
                scheduler.load_state_dict(state["scheduler"])
                random.set_state(state["random"])
                step = state["step"]
                if rank == 0:
                    print(f"resumed at step {step}", flush=True)

        while step < arguments.steps:
            step += 1
            inputs = torch.randn(8, 32, generator=random)
            loss = torch.nn.functional.mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            if arguments.die_at == step and rank == size - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0:
                print(f"step {step}: loss {mean.item() / size:.6f}", flush=True)
            if step % 10 == 0 or step == arguments.steps:
                with engine.checkpoint(f"step-{step}") as checkpoint:
                    checkpoint.save_state("training", {
                        "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "scheduler": scheduler.state_dict(), "random": random.get_state(), "step": step})
        engine.wait(f"step-{step}", "persistent")  # the last one is on the parallel filesystem
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
