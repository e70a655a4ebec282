"""Trains a small model with Lightning, checkpointed by Kedge: killed and started again, it has the same losses.

    python3 train_lightning.py --devices 2

Needs PyTorch, pytorch-lightning and kedge.
"""

import argparse
import os
import signal

import pytorch_lightning as pl
import torch

from kedge.lightning import KedgeCheckpointIO


class Model(pl.LightningModule):
    def __init__(self, die_at: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
        self.die_at = die_at

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = torch.nn.functional.mse_loss(self.layers(batch), batch.sum(dim=1, keepdim=True))
        if self.global_step + 1 == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.print(f"step {self.global_step + 1}: loss {loss.item():.6f}", flush=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=1, help="processes, by DDP if more than one")
    parser.add_argument("--die-at", type=int, default=0, help="kill all processes at this step, to see it resume")
    arguments = parser.parse_args()

    pl.seed_everything(0)
    data = torch.utils.data.DataLoader(torch.randn(16 * arguments.devices, 32), batch_size=4)  # 4 steps in each epoch
    trainer = pl.Trainer(
        max_epochs=5, accelerator="cpu", devices=arguments.devices, strategy="ddp" if arguments.devices > 1 else "auto",
        plugins=[KedgeCheckpointIO()], callbacks=[pl.callbacks.ModelCheckpoint("checkpoints")], logger=False,
        enable_progress_bar=False,
    )  # fmt: skip
    trainer.fit(Model(arguments.die_at), data, ckpt_path=KedgeCheckpointIO.latest("checkpoints"))


if __name__ == "__main__":
    main()
