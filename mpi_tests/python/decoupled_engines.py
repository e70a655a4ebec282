"""decoupled_engines.py DIRECTORY: two ranks train with DeepSpeed's engines, whose checkpoints are decoupled."""

import contextlib
import gc
import os
import sys
import unittest
from unittest import mock

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.pipe import PipelineModule

import kedge
import kedge.deepspeed
from kedge import _torch_files

directory = sys.argv[1]
os.environ["KEDGE_TEST_RANKS_PER_NODE"] = "1"  # each rank counts as a node
CONFIG = {
    "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1, "steps_per_print": 10**9,
    "optimizer": {"type": "Adam", "params": {"lr": 1e-2, "torch_adam": True}},
    "checkpoint": {"tag_validation": "Fail"},
    "kedge": {"decoupled": True, "comm": {"timeout_s": 30}, "log": {"level": "error"},
              "store": {"path": f"{directory}/store/{{node}}"},
              "persistent": {"path": f"{directory}/prefix", "every": 1, "retries": 0}},
}  # fmt: skip


class Engines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        deepspeed.init_distributed(dist_backend="gloo", verbose=False)
        cls.rank = dist.get_rank()
        kedge.deepspeed.install(CONFIG)

    @classmethod
    def tearDownClass(cls):
        kedge.deepspeed.finalize()
        dist.destroy_process_group()

    def setUp(self):
        self.place = f"{directory}/{self.id().rsplit('.', 1)[-1]}"
        torch.manual_seed(0)

    def tearDown(self):
        self.engine = None
        gc.collect()
        dist.barrier()

    def plain(self, **more):
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        self.engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(),
                                               config={**CONFIG, "zero_optimization": {"stage": 1}, **more})
        return self.engine

    def step(self):
        inputs = torch.ones(4, 8) * (self.rank + 1)
        loss = torch.nn.functional.mse_loss(self.engine(inputs), inputs.sum(dim=1, keepdim=True))
        self.engine.backward(loss)
        self.engine.step()
        return loss.item()

    def latest(self):
        dist.barrier()
        text = self.latest_now()
        dist.barrier()
        return text

    def step_until_latest(self, tag, step=None):
        for _ in range(500):
            (step or self.step)()
            if self.latest() == tag:
                return
        self.fail(f"latest is {self.latest()}")

    def test_named_at_a_boundary(self):
        self.plain()
        self.step()
        write = _torch_files.write
        for number in range(3):
            pending = []

            def late(*arguments):
                pending.append(self.latest_now())  # noqa: B023
                write(*arguments)

            with mock.patch.object(_torch_files, "write", late):
                self.engine.save_checkpoint(self.place, tag=f"t{number}", client_state={"number": number})
                self.assertFalse(self.engine.checkpoint_engine.is_saving())  # the stores have it
                self.assertNotEqual(self.latest(), f"t{number}")
                self.step_until_latest(f"t{number}")
            self.assertNotIn(f"t{number}", pending)
            self.assertEqual(len(pending), 2 if self.rank == 0 else 1)  # its partition, and the model's file
        weights = [weight.detach().clone() for weight in self.engine.module.parameters()]
        self.engine.save_checkpoint(self.place, tag="pending")
        self.step()
        self.step()
        _, state = self.engine.load_checkpoint(self.place)
        self.assertEqual(self.latest(), "pending")
        self.assertTrue(all(map(torch.equal, weights, self.engine.module.parameters())))

    def latest_now(self):
        try:
            with open(f"{self.place}/latest") as file:
                return file.read()
        except OSError:
            return None

    def test_an_exception_in_the_middle_on_one_rank(self):
        """The others wait in the barrier at the end of save_checkpoint, and not in commit."""
        self.plain()
        broken = mock.patch.object(self.engine, "_save_zero_checkpoint", side_effect=MemoryError("no memory"))
        if self.rank == 1:
            with broken, self.assertRaisesRegex(MemoryError, "no memory"):
                self.engine.save_checkpoint(self.place, tag="bad")
        else:
            with self.assertRaisesRegex(kedge.Error, "rank 1: MemoryError: no memory"):
                self.engine.save_checkpoint(self.place, tag="bad")
        for _ in range(3):
            self.step()
        self.assertIsNone(self.latest())
        with self.assertRaisesRegex(AssertionError, "tag"):  # on all ranks, after create
            self.engine.save_checkpoint(self.place, tag=f"tag-of-{self.rank}")
        self.engine.save_checkpoint(self.place, tag="good")
        self.step_until_latest("good")

    def test_latest_that_cannot_be_written_at_a_boundary_raises_nowhere(self):
        """DeepSpeed would write it on rank 0 alone, while the others wait."""
        self.plain()
        self.engine.save_checkpoint(self.place, tag="t")
        if self.rank == 0:
            os.mkdir(f"{self.place}/latest")
        dist.barrier()
        logged = self.assertLogs("kedge.deepspeed", "ERROR") if self.rank == 0 else contextlib.nullcontext()
        with logged as said:
            while self.engine.checkpoint_engine._pending is not None:
                self.step()
        if self.rank == 0:
            self.assertRegex("\n".join(said.output), "t is complete, and the file latest could not be written")
            os.rmdir(f"{self.place}/latest")
        dist.barrier()
        self.engine.save_checkpoint(self.place, tag="u")
        self.step_until_latest("u")

    def test_an_interrupted_save_is_not_committed(self):
        self.plain()
        with mock.patch.object(self.engine, "_save_zero_checkpoint", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                self.engine.save_checkpoint(self.place, tag="interrupted")
        for _ in range(3):
            self.step()
        self.assertIsNone(self.latest())
        path, _ = self.engine.load_checkpoint(self.place)
        self.assertIsNone(path)
        self.engine.save_checkpoint(self.place, tag="good")
        self.step_until_latest("good")

    def test_an_interrupt_before_create_costs_nothing(self):
        self.plain()
        with mock.patch.object(self.engine.checkpoint_engine, "makedirs", side_effect=KeyboardInterrupt):
            if self.rank == 0:
                with self.assertRaises(KeyboardInterrupt):
                    self.engine.save_checkpoint(self.place, tag="interrupted")
        self.engine.save_checkpoint(self.place, tag="good")
        self.step_until_latest("good")

    def test_a_model_for_others_between_two_checkpoints(self):
        self.plain()
        self.engine.save_checkpoint(self.place, tag="t")
        self.engine.save_16bit_model(self.place)
        self.assertEqual(self.latest(), "t")
        self.assertTrue(os.path.exists(f"{self.place}/pytorch_model.bin"))
        self.step()

    def test_destroy(self):
        self.plain()
        self.engine.save_checkpoint(self.place, tag="t")
        self.engine.destroy()
        self.assertEqual(self.latest(), "t")

    def test_the_garbage_collector_waits_for_nobody(self):
        self.plain()
        self.engine.save_checkpoint(self.place, tag="t")
        if self.rank == 1:
            self.engine.__del__()
        self.assertIsNone(self.latest())
        self.plain()
        self.engine.save_checkpoint(self.place, tag="u")
        self.assertEqual(self.latest(), "t")

    def test_a_universal_checkpoint_is_looked_for_after_the_drain(self):
        self.plain()
        self.engine.save_checkpoint(self.place, tag="t")
        with mock.patch.object(self.engine, "load_universal_checkpoint", return_value=True):
            with self.assertRaises(Exception):  # noqa: B017: there is none
                self.engine.load_checkpoint(self.place)
        self.assertEqual(self.latest(), "t")

    def test_the_pipeline_engine(self):
        layers = [torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8), torch.nn.Tanh()]
        net = PipelineModule(layers=layers, num_stages=2, loss_fn=torch.nn.functional.mse_loss)
        self.engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=CONFIG)

        def data():
            while True:
                yield torch.ones(4, 8), torch.zeros(4, 8)

        def train():
            return self.engine.train_batch(data()).item()

        train()
        self.engine.save_checkpoint(self.place, tag="a")
        self.step_until_latest("a", train)
        self.engine.save_checkpoint(self.place, tag="b")
        self.assertEqual(self.latest(), "a")
        self.engine.save_checkpoint(self.place, tag="c")
        self.assertEqual(self.latest(), "b")
        wanted = [train() for _ in range(3)]
        self.engine.save_checkpoint(self.place, tag="d", save_latest=False)
        path, _ = self.engine.load_checkpoint(self.place)
        self.assertTrue(path.endswith("c") or "/c/" in path, path)
        self.assertEqual([train() for _ in range(3)], wanted)

    def test_z_pending_at_the_end(self):
        self.plain()
        self.engine.save_checkpoint(self.place, tag="last")
        self.assertIsNone(self.latest())


if __name__ == "__main__":
    program = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], exit=False)
    print(f"rank {os.environ['RANK']}: {'done' if program.result.wasSuccessful() else 'failed'}", flush=True)
    sys.exit(not program.result.wasSuccessful())
