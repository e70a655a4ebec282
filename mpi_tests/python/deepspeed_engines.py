"""deepspeed_engines.py DIRECTORY: what install changes in DeepSpeed's engines, on two ranks."""

import argparse
import collections
import contextlib
import os
import pathlib
import sys
import types
import unittest
from unittest import mock

import deepspeed
import deepspeed.runtime.engine as runtime
import torch
import torch.distributed as dist

import kedge
import kedge.deepspeed
from kedge.deepspeed import _install

directory = sys.argv[1]
os.environ["KEDGE_TEST_RANKS_PER_NODE"] = "1"  # each rank counts as a node
CONFIG = {
    "train_micro_batch_size_per_gpu": 4, "optimizer": {"type": "Adam", "params": {"lr": 1e-2, "torch_adam": True}},
    "kedge": {"comm": {"timeout_s": 20}, "log": {"level": "error"},
              "store": {"path": f"{directory}/store/{{node}}"}, "persistent": {"path": f"{directory}/prefix"}},
}  # fmt: skip


Point = collections.namedtuple("Point", "x y")


class History(list):
    pass


class Engines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with unittest.TestCase().assertRaisesRegex(kedge.BadState, "init_distributed"):
            kedge.deepspeed.KedgeCheckpointEngine()
        deepspeed.init_distributed(dist_backend="gloo", verbose=False)
        cls.rank = dist.get_rank()
        kedge.deepspeed.install(CONFIG)
        torch.manual_seed(0)
        model = torch.nn.Linear(8, 1)
        cls.engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=CONFIG)

    @classmethod
    def tearDownClass(cls):
        kedge.deepspeed.finalize()
        dist.destroy_process_group()

    def setUp(self):
        self.place = f"{directory}/{self.id().rsplit('.', 1)[-1]}"

    def tearDown(self):
        dist.barrier()

    def test_an_exception_in_the_middle_on_one_rank(self):
        self.engine.save_checkpoint(self.place, tag="good")
        broken = mock.patch.object(self.engine, "_save_checkpoint", side_effect=MemoryError("no memory"))
        with broken if self.rank == 1 else contextlib.nullcontext():
            with self.assertRaisesRegex(MemoryError if self.rank == 1 else kedge.Error, "no memory"):
                self.engine.save_checkpoint(self.place, tag="bad")
        path, _ = self.engine.load_checkpoint(self.place)
        self.assertIn("good", path)

    def test_a_load_that_fails_on_one_rank(self):
        self.engine.save_checkpoint(self.place, tag="t", client_state={"n": 1})
        other = mock.patch.object(self.engine, "_load_checkpoint", side_effect=ValueError("another shape"))
        with other if self.rank == 1 else contextlib.nullcontext():
            with self.assertRaisesRegex(ValueError if self.rank == 1 else kedge.Error, "another shape"):
                self.engine.load_checkpoint(self.place)
        self.engine.save_checkpoint(self.place, tag="u", client_state={"n": 2})
        self.assertEqual(self.engine.load_checkpoint(self.place)[1]["n"], 2)

    def test_it_is_installed_once_and_the_newest_settings_count(self):
        before = runtime.DeepSpeedEngine.load_checkpoint, runtime.DeepSpeedEngine.save_checkpoint
        installed = _install._installed
        kedge.deepspeed.install({"kedge": {"torch_files": False}})
        self.assertFalse(_install._installed.torch_files)
        self.assertEqual((runtime.DeepSpeedEngine.load_checkpoint, runtime.DeepSpeedEngine.save_checkpoint), before)
        _install._installed = installed

    def test_a_deepspeed_without_the_function_to_replace(self):
        create = runtime.create_checkpoint_engine
        del runtime.create_checkpoint_engine
        try:
            with self.assertRaisesRegex(kedge.BadState, "no create_checkpoint_engine.*0.19.5"):
                kedge.deepspeed.install(CONFIG)
        finally:
            runtime.create_checkpoint_engine = create

    def test_what_load_would_refuse_is_told_by_the_first_save(self):
        held = {"args": {"history": History([1])}}
        with self.assertLogs("kedge.deepspeed", "WARNING") if self.rank == 0 else contextlib.nullcontext() as told:
            self.engine.save_checkpoint(self.place, tag="t", client_state=held)
        if self.rank == 0:  # which saves it; and of what DeepSpeed saves by itself nothing is told
            said = r"^[^(]*holds \S*History \(\S*\['args'\]\['history'\]\).*add_safe_globals"
            self.assertRegex("".join(told.output), said)
        with self.assertNoLogs("kedge.deepspeed", "WARNING"):
            self.engine.save_checkpoint(self.place, tag="u", client_state=held)
        plain = {"args": argparse.Namespace(path=pathlib.Path("a"), at=Point(1, 2))}
        self.engine.save_checkpoint(self.place, tag="v", client_state=plain)
        self.assertEqual(self.engine.load_checkpoint(self.place)[1]["args"], plain["args"])
        with self.assertRaisesRegex(kedge.InvalidArgument, "History"):
            self.engine.load_checkpoint(self.place, tag="u")

    def test_a_writer_of_deepspeeds_is_not_used(self):
        config = types.SimpleNamespace(checkpoint_config={"writer": {"type": "fast"}}, _param_dict=CONFIG)
        with self.assertLogs("kedge.deepspeed", "WARNING") as logged:
            self.assertIsInstance(_install._create(config), kedge.deepspeed.KedgeCheckpointEngine)
        self.assertIn("writer", logged.output[0])
        config.checkpoint_config = {"writer": None}
        with self.assertNoLogs("kedge.deepspeed", "WARNING"):
            _install._create(config)

    def test_an_engine_of_another_kind_is_left_alone(self):
        stock = runtime.TorchCheckpointEngine()
        with mock.patch.object(self.engine, "checkpoint_engine", stock):
            self.engine.save_checkpoint(self.place, tag="t")
            self.assertIn("t", self.engine.load_checkpoint(self.place)[0])
            with mock.patch.object(stock, "commit", side_effect=MemoryError), self.assertRaises(MemoryError):
                self.engine.save_checkpoint(self.place, tag="u")
        self.assertIsNone(self.engine.checkpoint_engine.open(self.place))

    def test_weights_of_another_tag_than_latest(self):
        original = runtime.get_fp32_state_dict_from_zero_checkpoint
        with _install._from("t"):
            self.assertEqual(runtime.get_fp32_state_dict_from_zero_checkpoint.keywords, {"tag": "t"})
        self.assertIs(runtime.get_fp32_state_dict_from_zero_checkpoint, original)
        with _install._from(None):
            self.assertIs(runtime.get_fp32_state_dict_from_zero_checkpoint, original)

    def test_when_ranks_load_others_partitions(self):
        for partitioned, elastic, states, wanted in ((True, False, False, True), (True, False, True, False),
                                                     (False, False, False, False), (False, True, True, True)):
            engine = types.SimpleNamespace(zero_optimization_partition_weights=lambda p=partitioned: p,
                                           zero_elastic_checkpoint=lambda e=elastic: e)
            self.assertEqual(_install._looks_at_all(engine, True, states), wanted)
            self.assertEqual(_install._looks_at_all(engine, load_optimizer_states=states), wanted)


if __name__ == "__main__":
    program = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], exit=False)
    print(f"rank {os.environ['RANK']}: {'done' if program.result.wasSuccessful() else 'failed'}", flush=True)
    sys.exit(not program.result.wasSuccessful())
