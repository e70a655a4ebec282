"""What deepspeed_ranks.py tests with: three ranks that save and load as DeepSpeed does."""

import os
import sys
import unittest

import torch
import torch.distributed as dist
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo

import kedge.deepspeed

directory, phase, torch_files = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "true"
os.environ["KEDGE_TEST_RANKS_PER_NODE"] = "1"  # each rank counts as a node
CONFIG = {"kedge": {"torch_files": torch_files, "comm": {"timeout_s": 20},
                    "store": {"path": f"{directory}/store/{{node}}", "keep": 3}, "log": {"level": "error"},
                    "persistent": {"path": f"{directory}/prefix", "every": 0}}}
RANKS = 3


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        dist.init_process_group("gloo")
        cls.rank = dist.get_rank()
        kedge.deepspeed.install(CONFIG)
        cls.engine = kedge.deepspeed.KedgeCheckpointEngine(settings=kedge.deepspeed._install._installed)

    @classmethod
    def tearDownClass(cls):
        kedge.deepspeed.finalize()
        dist.destroy_process_group()

    def setUp(self):
        self.place = f"{directory}/{self.id().rsplit('.', 1)[-1]}"
        if phase == 2:
            self.place = self.place.replace("_2_", "_1_")

    def model(self, value):
        return {"module": {"w": torch.full((50,), float(value)), "b": torch.arange(3)}, "step": value}

    def shard(self, value):
        flat = torch.arange(100.0) * value
        return {"optimizer": {0: {"m": flat[self.rank * 10 : self.rank * 10 + 10]}}, "rank": self.rank}

    def save(self, tag, value, *, latest=True, place=None, spoil=None):
        """As DeepSpeed's save_checkpoint. ``spoil``: called on rank 1 in the middle."""
        info = CheckpointCommitInfo(tag, place or self.place, latest)
        self.write(info, value, spoil)
        self.commit(info)

    def write(self, info, value, spoil):
        place, tag = info.save_dir, info.tag
        if self.rank == 0:
            self.engine.makedirs(place, exist_ok=True)
        dist.barrier()
        self.engine.create(info)
        self.engine.makedirs(f"{place}/{tag}", exist_ok=True)
        if self.rank == 0:
            self.engine.save(self.model(value), f"{place}/{tag}/mp_rank_00_model_states.pt")
        if spoil and self.rank == 1:
            spoil()
        self.engine.save(self.shard(value), self.shard_path(tag, place))

    def commit(self, info):
        self.engine.commit(info)
        if info.save_latest and self.rank == 0:
            with open(f"{info.save_dir}/latest", "w") as file:
                file.write(info.tag)
        dist.barrier()

    def shard_path(self, tag, place=None):
        return f"{place or self.place}/{tag}/zero_pp_rank_{self.rank}_mp_rank_00_optim_states.pt"

    def check(self, tag, value, *, opened="asked", place=None):
        place = place or self.place
        asked = tag if opened == "asked" else opened
        self.assertEqual(self.engine.open(place, asked), tag)
        model = self.engine.load(f"{place}/{tag}/mp_rank_00_model_states.pt", map_location=lambda storage, _: storage)
        shard = self.engine.load(self.shard_path(tag, place), map_location="cpu")
        self.engine.close()
        self.check_states(model, shard, value)

    def check_states(self, model, shard, value):
        self.assertEqual(model["step"], value)
        self.assertTrue(torch.equal(model["module"]["w"], torch.full((50,), float(value))))
        self.assertEqual(shard["rank"], self.rank)
        wanted = torch.arange(100.0) * value
        self.assertTrue(torch.equal(shard["optimizer"][0]["m"], wanted[self.rank * 10 : self.rank * 10 + 10]))

    def raises_on_all(self, kind, words, call):
        with self.assertRaisesRegex(kind, words) as raised:
            call()
        dist.barrier()  # all have come here
        return raised.exception
