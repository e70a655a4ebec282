"""deepspeed_ranks.py DIRECTORY PHASE TORCH_FILES: three ranks use DeepSpeed's interface as DeepSpeed does, and fail in it.

Phase 1 leaves a checkpoint; phase 2 is started after a node was lost.
"""

import contextlib
import os
import random
import sys
import unittest
from unittest import mock

import numpy as np
import torch.distributed as dist
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo
from deepspeed_case import Case, directory, phase, torch_files
from deepspeed_files import Files

import kedge
import kedge.deepspeed


class Planted:
    def __reduce__(self):
        return os.mkdir, (f"{directory}/planted-{dist.get_rank()}",)


class Ranks(Files, Case):
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
    def test_a_damaged_file_latest_is_none(self):
        """As a crash of the system leaves it; what rank 0 alone reads raises on all ranks, or on none."""
        self.save("t", 1)
        for content in (b"\0" * 12, b"\xff\xfe", b"", b"../t"):
            if self.rank == 0:
                with open(f"{self.place}/latest", "wb") as file:
                    file.write(content)
            dist.barrier()
            warns = self.assertLogs("kedge.deepspeed", "WARNING") if self.rank == 0 else contextlib.nullcontext()
            with warns as said:
                self.assertEqual(self.engine.open(self.place), "t")
            self.engine.close()
            if self.rank == 0:
                self.assertRegex("\n".join(said.output), "latest does not name a checkpoint: the file is damaged")

    @unittest.skipIf(phase == 2, "phase 1")
    def test_what_fails_on_rank_0_alone_is_raised_on_all(self):
        def look():
            raise ValueError("embedded null byte")

        error = self.raises_on_all(kedge.Error, "rank 0: ValueError: embedded", lambda: self.engine._shared.from_root(look))
        self.assertEqual(error.rank, 0)
        self.assertEqual(self.rank == 0, error.__cause__ is not None)

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
    def test_a_list_of_files_that_cannot_be_saved(self):
        full = mock.patch.object(kedge._contents.Written, "end", side_effect=MemoryError("no memory"))
        self.save("t", 1)
        with full if self.rank == 1 else contextlib.nullcontext():
            self.raises_on_all(kedge.Error, "rank 1.*no memory", lambda: self.save("t2", 2))
        self.check("t", 1, opened=None)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_a_file_is_saved_once(self):
        self.save("t", 1)
        self.raises_on_all(kedge.InvalidArgument, "saved twice",
                           lambda: self.save("t", 2, spoil=lambda: self.engine.save({}, self.shard_path("t"))))
        self.check("t", 1)

    @unittest.skipIf(phase == 2, "phase 1")
    def test_created_and_never_committed(self):
        self.save("before", 1)
        self.engine.create(CheckpointCommitInfo("rejected", self.place, True))
        self.engine.save(self.shard(9), self.shard_path("before"))
        self.save("before", 2)  # the same tag, twice
        self.check("before", 2)
        self.assertEqual([name for name in os.listdir(f"{self.place}/before") if name.startswith(".")], [])

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
            try:
                with self.assertNoLogs("kedge.deepspeed"):
                    kedge.deepspeed._shared._at_exit()
                    kedge.deepspeed.finalize()
            except AssertionError:
                os._exit(1)
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
