"""The files that lie beside a checkpoint: whose they are, and which are loaded. Part of deepspeed_ranks.py."""

import contextlib
import os
import shutil
import time
import unittest
from unittest import mock

import torch
import torch.distributed as dist
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo
from deepspeed_case import RANKS, phase, torch_files

import kedge
from kedge import _torch_files
from kedge._states import split_state


class Files:
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
        # The process died after commit, and the one before is still there: nobody went back to it.
        self.name_latest("one", at=1)
        self.check("two", 2, opened=None)

    def name_latest(self, tag, at=None):
        dist.barrier()
        if self.rank == 0:
            with open(f"{self.place}/latest", "w") as file:
                file.write(tag)
            os.utime(f"{self.place}/latest", (at or time.time() + 60,) * 2)
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
    def test_files_that_were_lost_or_changed(self):
        self.save("t", 4)
        path, model = self.shard_path("t"), f"{self.place}/t/mp_rank_00_model_states.pt"
        dist.barrier()
        if self.rank == 0:
            os.remove(model)
        os.remove(path)
        dist.barrier()
        self.check("t", 4)
        dist.barrier()
        if self.rank == 0:
            shutil.rmtree(f"{self.place}/t")
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
        self.save("other", 3)
        self.save("t", 4)
        self.write_newer(self.shard(5), self.shard_path("t"))
        if self.rank == 0:
            self.write_newer(self.model(5), f"{self.place}/t/mp_rank_00_model_states.pt")
        dist.barrier()
        self.engine.load(self.shard_path("other"))  # before open: does not count
        self.assertIsNone(self.engine.open(self.place, "t"))
        self.assertTrue(torch.equal(self.engine.load(self.shard_path("t"))["optimizer"][0]["m"],
                                    self.shard(5)["optimizer"][0]["m"]))
        self.engine.close()
        if self.rank == 0:
            os.utime(self.shard_path("t"), (1, 1))  # not all of them: a mixture
        dist.barrier()
        self.check("t", 4)
        self.write_newer(self.shard(5), self.shard_path("t"), f"newer-{self.rank}")  # of several checkpoints
        if self.rank == 0:
            self.write_newer(self.model(5), f"{self.place}/t/mp_rank_00_model_states.pt", "newer-0")
        dist.barrier()
        self.assertEqual(self.engine.open(self.place, "t"), "t")
        self.engine.close()

    def write_newer(self, state, path, mark="newer"):
        taken = split_state(state)
        parts = [_torch_files.Part(storage.key, storage.on_host()) for storage in taken.storages]
        _torch_files.write(path, taken.pickled, parts, mark)
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

    @unittest.skipIf(phase == 2, "phase 1")
    def test_files_of_which_one_rank_cannot_load_its_own(self):
        self.assertIsNone(self.engine.open(self.place, "nothing"))
        error = ValueError("it has another shape") if self.rank == 1 else None
        if error:
            self.engine.close(error)  # the caller raises it
            dist.barrier()
        else:
            self.raises_on_all(kedge.Error, "rank 1: ValueError: it has another shape", lambda: self.engine.close())

    @unittest.skipIf(phase == 2, "phase 1")
    def test_files_that_cannot_be_laid_out(self):
        self.save("t", 1)
        full = mock.patch.object(self.engine._reader, "_lay_out", side_effect=OSError(28, "No space left on device"))
        with full if self.rank == 1 else contextlib.nullcontext():
            self.raises_on_all(kedge.IoError, "rank 1.*No space", lambda: self.engine.open(self.place, "t"))
        self.save("t", 2)
        self.check("t", 2)

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
