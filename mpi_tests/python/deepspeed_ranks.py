"""deepspeed_ranks.py DIRECTORY PHASE TORCH_FILES: three ranks use DeepSpeed's interface as DeepSpeed does, and fail in it.

Phase 1 leaves a checkpoint; phase 2 is started after a node was lost.
"""

import os
import random
import shutil
import sys
import time
import unittest

import numpy as np
import torch
import torch.distributed as dist
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo

import kedge
import kedge.deepspeed
from kedge import _torch_files
from kedge._states import take_apart

directory, phase, torch_files = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "true"
CONFIG = {"kedge": {"torch_files": torch_files, "topology": {"ranks_per_node": 1}, "comm": {"timeout_s": 20},
                    "store": {"path": f"{directory}/store/{{node}}", "keep": 3}, "log": {"level": "error"},
                    "persistent": {"path": f"{directory}/prefix", "every": 0}}}
RANKS = 3


class Planted:
    def __reduce__(self):
        return os.mkdir, (f"{directory}/planted-{dist.get_rank()}",)


class Ranks(unittest.TestCase):
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
        place = place or self.place
        info = CheckpointCommitInfo(tag, place, latest)
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
        self.engine.commit(info)
        if latest and self.rank == 0:
            with open(f"{place}/latest", "w") as file:
                file.write(tag)
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

    @unittest.skipIf(phase == 2, "phase 1")
    def test_1_saved(self):
        self.save("global_step1", 1)
        self.check("global_step1", 1)
        self.check("global_step1", 1, opened=None)

    @unittest.skipIf(phase == 1, "phase 2")
    def test_2_saved(self):
        """After a node was lost, with everything that it kept."""
        tag = self.engine.open(self.place, "latest")
        self.assertEqual(tag, "after")
        self.assertTrue(os.path.exists(self.shard_path(tag)))
        model = self.engine.load(f"{self.place}/{tag}/mp_rank_00_model_states.pt")
        shard = self.engine.load(self.shard_path(tag))
        self.engine.close()
        self.check_states(model, shard, 7)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_files_lie_where_deepspeed_looks(self):
        self.save("a", 2)
        path = self.shard_path("a")
        names = sorted(os.listdir(f"{self.place}/a"))
        self.assertEqual(names, ["mp_rank_00_model_states.pt",
                                 *(f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in range(RANKS))])
        if torch_files:
            self.check_states(torch.load(f"{self.place}/a/mp_rank_00_model_states.pt"), torch.load(path), 2)
        else:
            with open(path) as file:
                self.assertIn(f"rank {self.rank} keeps this file", file.read())
            with self.assertRaisesRegex(kedge.NotFound, "no checkpoint is open.*load_checkpoint"):
                self.engine.load(path)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_a_failure_on_one_rank_is_one_of_all(self):
        self.save("good", 3)
        spoilers = {
            "pickle|lambda|local object": lambda: self.engine.save({"x": lambda: 0}, self.shard_path("bad") + "x"),
            "File exists|Not a directory|exists": lambda: self.engine.makedirs(f"{self.place}/latest"),
            "No such file": (lambda: self.engine.save({}, f"{self.place}/nowhere/x.pt")) if torch_files else None,
        }
        for words, spoil in spoilers.items():
            if spoil is None:
                continue
            error = self.raises_on_all(kedge.Error, words, lambda spoil=spoil: self.save("bad", 4, spoil=spoil))
            self.assertEqual(error.rank, 1)
            self.assertEqual(self.rank == 1, error.__cause__ is not None)
            self.assertEqual(os.listdir(f"{self.place}/bad"), [])
            with open(f"{self.place}/latest") as file:
                self.assertEqual(file.read(), "good")
            self.check("good", 3)
        self.save("better", 5)
        self.check("better", 5)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_a_directory_that_cannot_be_made_before_create(self):
        with open(f"{directory}/a_file-{self.rank}", "w"):
            pass
        self.raises_on_all(kedge.Error, "exists|Not a directory", lambda: self.save("t", 1, place=f"{directory}/a_file-0"))
        self.save("t", 6)
        if self.rank == 1:
            self.engine.makedirs(self.place)  # it is there
        self.raises_on_all(kedge.Error, "rank 1.*exists", lambda: self.save("t", 7))
        self.check("t", 6)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_a_file_that_cannot_be_put_in_its_place(self):
        self.save("good", 3)
        words = "rank 1.*[Dd]irectory"
        self.raises_on_all(kedge.IoError, words, lambda: self.save("bad", 4, spoil=lambda: os.mkdir(self.shard_path("bad"))))
        with open(f"{self.place}/latest") as file:
            self.assertEqual(file.read(), "good")
        self.check("good", 3)
        if self.rank == 1:
            os.rmdir(self.shard_path("bad"))
        dist.barrier()
        self.check("bad", 4)  # the store has it
        self.save("good", 5)
        self.check("good", 5, opened=None)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_created_and_never_committed(self):
        self.save("before", 1)
        self.engine.create(CheckpointCommitInfo("rejected", self.place, True))
        self.engine.save(self.shard(9), self.shard_path("before"))
        self.save("before", 2)  # the same tag, twice
        self.check("before", 2)
        self.assertEqual([name for name in os.listdir(f"{self.place}/before") if name.startswith(".")], [])

    @unittest.skipIf(phase == 2, "phase 1")
    def test_a_model_for_others_with_the_tag_of_a_checkpoint(self):
        """As save_16bit_model does it."""
        self.save("global_step8", 8)
        info = CheckpointCommitInfo("global_step8", self.place, False)
        for value in (1, None):
            self.engine.create(info)
            if self.rank == 0:
                self.engine.save({"w": torch.ones(3)} if value else {"w": lambda: 0}, f"{self.place}/model.bin")
            if value:
                self.engine.commit(info)
            else:
                self.raises_on_all(kedge.Error, "lambda|pickle|local object", lambda: self.engine.commit(info))
        self.assertTrue(torch.equal(torch.load(f"{self.place}/model.bin")["w"], torch.ones(3)))
        self.check("global_step8", 8)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_a_rank_that_leaves_in_the_middle(self):
        def leave():
            raise MemoryError("on the way")

        def save():
            try:
                self.save("left", 1, spoil=leave)
            except MemoryError as error:
                self.engine.give_up(error)
                raise

        self.raises_on_all(MemoryError if self.rank == 1 else kedge.Error, "on the way", save)
        self.save("left", 2)
        self.check("left", 2)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_tags_that_differ(self):
        info = CheckpointCommitInfo(f"tag-{self.rank}", self.place, True)
        self.engine.create(info)
        path = f"{self.place}/tag-{self.rank}/mp_rank_00_model_states.pt"
        self.engine.makedirs(os.path.dirname(path), exist_ok=True)
        self.engine.save(self.model(self.rank), path)
        self.engine.commit(info)
        self.assertEqual(self.engine.open(self.place, info.tag), info.tag)
        self.assertEqual(self.engine.load(path)["step"], self.rank)
        self.engine.close()

    @unittest.skipIf(phase == 2, "phase 1")
    def test_which_is_the_latest(self):
        self.assertIsNone(self.engine.open(self.place))
        self.save("one", 1)
        self.save("aside", 2, latest=False)
        self.check("one", 1, opened=None)
        self.save("elsewhere", 3, place=self.place + "-other")
        self.check("one", 1, opened="latest")
        self.assertIsNone(self.engine.open(self.place, "elsewhere"))
        # The process died after commit: the file is older than the checkpoint.
        if self.rank == 0:
            with open(f"{self.place}/latest", "w") as file:
                file.write("older")
            os.utime(f"{self.place}/latest", (1, 1))
        dist.barrier()
        self.check("one", 1, opened=None)
        # It names something that is not there.
        self.name_latest("older")
        self.check("one", 1, opened=None)
        # Somebody saved without Kedge.
        if self.rank == 0:
            os.makedirs(f"{self.place}/older")
            torch.save({}, f"{self.place}/older/mp_rank_00_model_states.pt")
        dist.barrier()
        self.assertIsNone(self.engine.open(self.place))
        # That was in Kedge alone, and is lost.
        if self.rank == 0:
            _torch_files.write_stand_in(f"{self.place}/older/mp_rank_00_model_states.pt", "")
        dist.barrier()
        self.check("one", 1, opened=None)
        # Somebody went back.
        self.save("newer", 5)
        self.name_latest("one")
        self.check("one", 1, opened=None)
        # That is the newest of all again.
        self.save("two", 2)
        self.check("two", 2, opened=None)

    def name_latest(self, tag):
        dist.barrier()
        if self.rank == 0:
            with open(f"{self.place}/latest", "w") as file:
                file.write(tag)
            os.utime(f"{self.place}/latest", (time.time() + 60,) * 2)
        dist.barrier()

    @unittest.skipIf(phase == 2 or not torch_files, "phase 1, with torch files")
    def test_damaged_files_are_written_again(self):
        self.save("t", 4)
        model = f"{self.place}/t/mp_rank_00_model_states.pt"
        if self.rank == 0:
            with open(model, "r+b") as file:
                data = bytearray(file.read())
                at = data.index(torch.full((50,), 4.0).numpy().tobytes())
                data[at + 2] ^= 1
                file.seek(0)
                file.write(data)
        else:
            os.truncate(self.shard_path("t"), 700)
        dist.barrier()
        with self.assertRaisesRegex(kedge.Corrupt, "damaged: remove it"):
            self.engine.load(model)
        dist.barrier()
        self.check("t", 4)
        self.check_states(torch.load(model), torch.load(self.shard_path("t")), 4)

    @unittest.skipIf(phase == 2 or not torch_files, "phase 1, with torch files")
    def test_files_of_different_checkpoints_are_refused(self):
        self.save("t", 4)
        copy = self.place + "-copy"
        if self.rank == 0:
            shutil.copytree(self.place, copy)
        dist.barrier()
        if self.rank == 1:
            self.write_newer(self.shard(5), self.shard_path("t", copy))
        self.assertIsNone(self.engine.open(copy, "t"))
        self.engine.load(self.shard_path("t", copy))
        self.raises_on_all(kedge.Mismatch, "belong to different checkpoints", lambda: self.engine.close())

    @unittest.skipIf(phase == 2, "phase 1")
    def test_what_another_engine_left_open_ends(self):
        other = kedge.deepspeed.KedgeCheckpointEngine(settings=kedge.deepspeed._install._installed)
        other.create(CheckpointCommitInfo("left", self.place, True))
        self.save("t", 1)
        other.open(self.place, "t")
        self.save("u", 2)
        self.check("u", 2)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_a_forked_child_does_not_end_the_engine(self):
        child = os.fork()
        if child == 0:
            kedge.deepspeed._shared._at_exit()
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.save("t", 1)
        self.check("t", 1)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_arrays_and_random_states_are_allowed(self):
        self.engine.create(CheckpointCommitInfo("t", self.place, True))
        self.engine.makedirs(f"{self.place}/t", exist_ok=True)
        state = {"loss": np.float64(2.5), "counts": np.arange(3), "numpy": np.random.default_rng(1).bit_generator.state,
                 "old": np.random.RandomState(1).get_state(), "python": random.Random(1).getstate()}
        self.engine.save(state, self.shard_path("t"))
        self.engine.commit(CheckpointCommitInfo("t", self.place, True))
        self.assertEqual(self.engine.open(self.place, "t"), "t")
        self.assertEqual(str(self.engine.load(self.shard_path("t"))), str(state))
        self.engine.close()

    @unittest.skipIf(phase == 2, "phase 1")
    def test_files_that_were_lost_or_changed(self):
        self.save("t", 4)
        path, model = self.shard_path("t"), f"{self.place}/t/mp_rank_00_model_states.pt"
        dist.barrier()
        if self.rank == 0:
            os.remove(model)
        os.remove(path)
        dist.barrier()
        self.check("t", 4)
        if torch_files:
            self.check_states(torch.load(model), torch.load(path), 4)
            dist.barrier()
            if self.rank == 0:
                torch.save({"step": "edited"}, model)
                os.utime(model, (time.time() + 60,) * 2)
            dist.barrier()
            self.engine.open(self.place, "t")
            self.assertEqual(self.engine.load(model)["step"], "edited")
            self.engine.close()

    @unittest.skipIf(phase == 2 or not torch_files, "phase 1, with torch files")
    def test_a_file_of_an_older_checkpoint(self):
        """The process died after commit, before the file was in its place."""
        path = self.shard_path("t")
        self.save("t", 4)
        shutil.copy(path, path + ".old")
        self.save("t", 5)
        os.replace(path + ".old", path)
        os.utime(path, (1, 1))
        dist.barrier()
        self.check("t", 5)
        self.assertTrue(torch.equal(torch.load(path)["optimizer"][0]["m"], self.shard(5)["optimizer"][0]["m"]))

    @unittest.skipIf(phase == 2 or not torch_files, "phase 1, with torch files")
    def test_files_of_a_newer_checkpoint_that_the_stores_have_lost(self):
        self.save("t", 4)
        self.write_newer(self.shard(5), self.shard_path("t"))
        if self.rank == 0:
            self.write_newer(self.model(5), f"{self.place}/t/mp_rank_00_model_states.pt")
        dist.barrier()
        self.assertIsNone(self.engine.open(self.place, "t"))
        self.assertTrue(torch.equal(self.engine.load(self.shard_path("t"))["optimizer"][0]["m"],
                                    self.shard(5)["optimizer"][0]["m"]))
        dist.barrier()
        if self.rank == 0:
            os.utime(self.shard_path("t"), (1, 1))  # not all of them: a mixture
        dist.barrier()
        self.check("t", 4)

    def write_newer(self, state, path):
        taken = take_apart(state)
        parts = [_torch_files.Part(storage.key, storage.on_host()) for storage in taken.storages]
        _torch_files.write(path, taken.pickled, parts, "newer")
        os.utime(path, (time.time() + 60,) * 2)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_a_planted_path_is_not_written(self):
        self.engine.create(CheckpointCommitInfo("t", self.place, True))
        self.engine.makedirs(f"{self.place}/t", exist_ok=True)
        self.engine._saving.written._storages["../../planted"] = []
        self.engine.commit(CheckpointCommitInfo("t", self.place, True))
        self.raises_on_all(kedge.Error, "outside of its directory", lambda: self.engine.open(self.place, "t"))
        self.save("t", 1)
        self.check("t", 1)

    @unittest.skipIf(phase == 2 or torch_files, "phase 1, without torch files")
    def test_a_partition_of_another_rank(self):
        self.save("t", 4)
        other = self.shard_path("t").replace(f"rank_{self.rank}_mp", f"rank_{(self.rank + 1) % RANKS}_mp")
        self.engine.open(self.place, "t")
        with self.assertRaisesRegex(kedge.NotFound, "kept by another rank.*torch_files"):
            self.engine.load(other)
        self.engine.close()
        self.engine.open(self.place, "t", whole=True)
        self.assertEqual(self.engine.load(other)["rank"], (self.rank + 1) % RANKS)
        self.engine.close()

    @unittest.skipIf(phase == 2, "phase 1")
    def test_a_planted_pickle_is_not_executed(self):
        info = CheckpointCommitInfo("t", self.place, True)
        self.engine.create(info)
        path = self.shard_path("t")
        self.engine.makedirs(os.path.dirname(path), exist_ok=True)
        self.engine.save({"x": Planted()}, path)
        self.engine.commit(info)
        self.engine.open(self.place, "t")
        with self.assertRaisesRegex(kedge.InvalidArgument, "mkdir.*allow_pickle"):
            self.engine.load(path)
        self.raises_on_all(kedge.Error, "mkdir|load", lambda: self.leave_load(path))
        self.assertFalse(os.path.exists(f"{directory}/planted-{self.rank}"))

    def leave_load(self, path):
        """As load_checkpoint does after an exception."""
        try:
            self.engine.load(path)
        except kedge.Error as error:
            self.engine.close(error)
            raise

    @unittest.skipIf(phase == 2, "phase 1")
    def test_a_load_that_fails_on_one_rank_fails_on_all(self):
        self.save("t", 1)
        self.engine.open(self.place, "t")
        error = ValueError("not the model") if self.rank == 1 else None
        if error:
            self.engine.close(error)
        else:
            with self.assertRaisesRegex(kedge.Error, "not the model"):
                self.engine.close()
        dist.barrier()
        self.check("t", 1)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_outside_of_create_and_commit(self):
        info = CheckpointCommitInfo("t", self.place, True)
        with self.assertRaisesRegex(kedge.BadState, "create"):
            self.engine.save({}, f"{self.place}/x.pt")
        with self.assertRaisesRegex(kedge.BadState, "create"):
            self.engine.commit(info)
        self.engine.close()
        self.assertFalse(self.engine.preserves_storage_sharing())
        self.assertFalse(self.engine.is_decoupled())
        self.assertIsNone(self.engine.get_commit_info())
        self.assertEqual([self.engine.is_data_parallel_writer(rank) for rank in (0, 1)], [True, False])

    @unittest.skipIf(phase == 2, "phase 1")
    def test_z_the_last_for_phase_2(self):
        self.save("after", 7, place=self.place.rsplit("/", 1)[0] + "/test_1_saved")


if __name__ == "__main__":
    program = unittest.main(argv=sys.argv[:1], exit=False)
    print(f"rank {os.environ['RANK']}: {'done' if program.result.wasSuccessful() else 'failed'}", flush=True)
    sys.exit(not program.result.wasSuccessful())
