"""Trains a small model with Lightning's DeepSpeedStrategy on two ranks, checkpointed by Kedge without files for
torch.load."""

import argparse
import os
import signal

import pytorch_lightning as pl
import pytorch_lightning.strategies.deepspeed as strategies
import torch

import kedge.deepspeed
from kedge.lightning import KedgeCheckpointIO


class OnHost(strategies.DeepSpeedStrategy):
    """Lightning asks for an accelerator, which DeepSpeed does not need."""

    root_device = property(lambda self: torch.device("cpu", self.local_rank))

    def setup_environment(self):
        strategies.DDPStrategy.setup_environment(self)


strategies._validate_device_index_selection = lambda devices: None


class Model(pl.LightningModule):
    def __init__(self, die_at):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.die_at = die_at

    def training_step(self, batch, index):
        loss = torch.nn.functional.mse_loss(self.layer(batch), batch.sum(dim=1, keepdim=True))
        if self.global_step + 1 == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.print(f"step {self.global_step + 1}: loss {loss.item():.6f}", flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--die-at", type=int, default=0)
    die_at = parser.parse_args().die_at
    pl.seed_everything(0)
    config = {"zero_optimization": {"stage": 2}, "zero_allow_untested_optimizer": True, "kedge": {"torch_files": False}}
    kedge.deepspeed.install(config)
    trainer = pl.Trainer(
        max_epochs=5, accelerator="cpu", devices=2, strategy=OnHost(config=config, process_group_backend="gloo"),
        callbacks=[pl.callbacks.ModelCheckpoint("checkpoints")], logger=False, enable_progress_bar=False,
        enable_model_summary=False)
    data = torch.utils.data.DataLoader(torch.randn(32, 8), batch_size=4)
    trainer.fit(Model(die_at), data, ckpt_path=KedgeCheckpointIO.latest("checkpoints"))
    assert isinstance(trainer.strategy.deepspeed_engine.checkpoint_engine, kedge.deepspeed.KedgeCheckpointEngine)


if __name__ == "__main__":
    main()
