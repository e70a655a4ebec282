"""decoupled_ranks.py DIRECTORY 1 TORCH_FILES STORE [TEST ...]: three ranks use DeepSpeed's interface in decoupled mode, and
fail in it. STORE: a directory in memory; or "disk", where files are written before the commit.

Under mpirun what is left to do goes on in the background; over torchrun the flush is part of the commit.
"""

import contextlib
import os
import sys
import threading
import time
import unittest
from unittest import mock

import torch
import torch.distributed as dist
from decoupled_case import BY_MPI, STORE, Decoupled
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo
from deepspeed_case import directory, torch_files

import kedge
import kedge.deepspeed
from kedge.deepspeed._pending import Pending


class Ranks(Decoupled):
    def test_the_slowest_rank_counts(self):
        with self.held(1):
            self.save("t", 1)
            self.assertGreaterEqual(self.level("t"), kedge.Level.LOCAL)  # and the program trains on
            in_background = torch_files or BY_MPI
            if in_background:
                for _ in range(20):
                    self.assertIsNone(self.engine.get_commit_info())
                self.assertEqual(self.latest(), "before1")
            dist.barrier()
        self.assertEqual(self.wait_for_info(), CheckpointCommitInfo("t", self.place, True))
        self.assertEqual(self.engine.get_commit_info().tag, "t")  # until it is committed
        self.assertEqual(self.latest(), "before1")
        self.check_complete("t", 1)
        self.end()
        self.assertIsNone(self.engine.get_commit_info())
        self.assertEqual(self.latest(), "t")
        self.check("t", 1, opened=None)

    def test_ranks_that_are_ready_at_different_times(self):
        is_over, asked = Pending.is_over, []

        def later(pending):
            asked.append(None)
            return is_over(pending) and len(asked) > 3 * self.rank

        with mock.patch.object(Pending, "is_over", later):
            self.save("t", 1)
            self.assertEqual(self.wait_for_info().tag, "t")
        self.assertGreater(len(asked), 6)
        self.end()

    def test_nothing_is_pending(self):
        self.assertIsNone(self.engine.get_commit_info())
        self.engine.cleanup()
        self.engine.advance()
        with self.assertRaisesRegex(kedge.BadState, "create"):
            self.engine.commit(CheckpointCommitInfo("t", self.place, True))

    def test_the_next_checkpoint_finishes_the_one_before(self):
        self.save("t", 1)
        self.save("u", 2)
        self.assertEqual(self.latest(), "t")  # never asked for: the engine wrote it
        self.check_complete("t", 1)
        self.save("u", 3)  # the same tag
        self.assertEqual(self.latest(), "u")
        self.wait_for_info()  # asked for, and not committed
        self.save("v", 4, latest=False)
        self.assertEqual(self.latest(), "u")
        self.check("u", 3, opened=None)
        self.assertEqual(self.latest(), "u")
        self.check("v", 4)

    def test_a_load_drains(self):
        self.save("t", 1)
        self.assertEqual(self.latest(), "before1")
        self.assertEqual(self.engine.open(self.place), "t")
        self.assertEqual(self.latest(), "t")
        self.engine.close()
        self.save("u", 2)
        self.engine.drain()  # before files are looked at
        self.assertEqual(self.latest(), "u")
        self.check_complete("u", 2)

    def test_cleanup(self):
        self.save("t", 1)
        child = os.fork()
        if child == 0:
            self.engine.cleanup()
            os._exit(self.engine._pending is None)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        dist.barrier()
        self.engine.cleanup()
        self.assertEqual(self.latest(), "t")
        self.check_complete("t", 1)
        self.engine.cleanup()
        self.save("u", 2, secures=False)
        self.engine.cleanup()
        self.assertEqual(self.latest(), "u")

    def test_an_engine_that_never_asks(self):
        self.save("t", 1)
        deadline = time.monotonic() + 20
        while self.latest() != "t" and time.monotonic() < deadline:
            self.engine.advance()
        self.assertEqual(self.latest(), "t")
        self.assertIsNone(self.engine._pending)

    def test_who_writes_latest_himself_does_so(self):
        self.save("t", 1, latest=False)
        self.assertFalse(self.wait_for_info().save_latest)
        self.end()
        self.save("u", 2, latest=False)
        self.engine.finish()
        self.assertEqual(self.latest(), "before1")
        self.check("u", 2)

    def test_another_engine_finishes_it(self):
        other = kedge.deepspeed.KedgeCheckpointEngine(settings=kedge.deepspeed._install._installed)
        self.save("t", 1)
        other.create(CheckpointCommitInfo("left", self.place, True))
        self.assertEqual(self.latest(), "t")
        other.makedirs(f"{self.place}/left", exist_ok=True)
        other.save({}, self.shard_path("left"))
        other.give_up(ValueError("enough"))
        self.save("u", 2)
        self.engine.cleanup()

    def test_what_fails_behind_costs_the_name_in_latest_alone(self):
        for ends in (self.never_informed, self.engine.finish, lambda: self.save("next", 3, latest=False)):
            tag = f"t-{ends.__name__.strip('<>')}"
            with self.failing(), self.one_error(f"the checkpoint {tag} is in the node-local stores.*latest is unchanged"):
                self.save(tag, 2)
                ends()
            self.assertEqual(self.latest(), "before1")
            self.assertEqual(self.left_over(tag), [])
            self.assertEqual(os.path.exists(self.shard_path(tag)), not torch_files)  # no rank's, then
            self.engine.finish()
            self.check(tag, 2)  # the stores have it
        self.save("u", 4)
        self.wait_for_info()
        self.end()
        self.check_complete("u", 4)
        self.check("u", 4, opened=None)

    def test_a_commit_that_is_asked_for_waits(self):
        """As for save_16bit_model, and by programs that do not wait for commit info."""
        self.save("t", 1, secures=False)
        self.engine.commit(CheckpointCommitInfo("t", self.place, True))
        self.assertIsNone(self.engine.get_commit_info())
        self.check_complete("t", 1)
        with self.failing():
            self.save("u", 2, secures=False)
            self.raises_on_all(kedge.Error, "No space|[Dd]irectory|prefix",
                               lambda: self.engine.commit(CheckpointCommitInfo("u", self.place, True)))
        self.assertEqual(self.left_over("u"), [])
        self.engine.create(CheckpointCommitInfo("t", self.place, False))
        if self.rank == 0:
            self.engine.save({"w": torch.ones(3)}, f"{self.place}/model.bin")
        self.engine.commit(CheckpointCommitInfo("t", self.place, False))
        self.assertIsNone(self.engine.get_commit_info())
        self.assertTrue(torch.equal(torch.load(f"{self.place}/model.bin")["w"], torch.ones(3)))
        self.check("t", 1)

    @unittest.skipUnless(STORE == "disk", "needs a store on a disk")
    def test_a_commit_that_is_asked_for_waits_on_a_disk(self):
        """The files are written before the commit, and get their names when it is complete."""
        self.save("t", 1)
        self.assertEqual(len(self.left_over("t")) if self.rank == 0 else 4, 4)
        dist.barrier()
        self.wait_for_info()
        dist.barrier()
        self.assertEqual(self.left_over("t"), [])
        self.end()
        with self.failing():
            self.raises_on_all(kedge.IoError, "rank 1.*No space", lambda: self.save("u", 2))
        self.assertEqual(self.left_over("u"), [])
        self.never_informed()
        self.check("t", 1, opened=None)

    def test_a_failure_on_one_rank_is_one_of_all(self):
        bad = {"spoil": lambda: self.engine.save({"x": lambda: 0}, self.shard_path("bad") + "x")}
        self.raises_on_all(kedge.Error, "rank 1", lambda: self.save("bad", 1, **bad))
        self.never_informed()
        if self.rank == 1:
            self.save("bad", 1, secures=False, **bad)
        else:
            self.save("bad", 1, secures=False)
        with self.assertLogs("kedge.deepspeed", "ERROR") if self.rank == 0 else contextlib.nullcontext() as logged:
            self.assertIsNone(self.engine.get_commit_info())
        if self.rank == 0:
            self.assertRegex(logged.output[0], "the checkpoint bad was dropped: .*rank 1")
        dist.barrier()
        self.assertEqual(self.level("bad"), 0)
        self.assertEqual(self.left_over("bad"), [])
        self.assertEqual(self.latest(), "before1")
        self.save("good", 2)
        self.wait_for_info()
        self.end()
        self.check("good", 2, opened=None)

    def test_an_engine_that_is_asked_before_all_is_secured(self):
        self.save("t", 1, secures=False)
        self.wait_for_info()
        self.end()
        self.save("t", 2, secures=False)
        self.engine.create(CheckpointCommitInfo("left", self.place, True))
        self.assertEqual(self.latest(), "t")
        self.engine.give_up(ValueError("enough"))
        self.check("t", 2)

    @unittest.skipUnless(torch_files, "with torch files")
    def test_a_rank_that_gets_no_thread(self):
        none = mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread"))
        with none if self.rank == 1 else contextlib.nullcontext():
            self.save("t", 1)
            self.assertEqual(self.engine._pending._thread is None, self.rank == 1)
        self.wait_for_info()
        self.check_complete("t", 1)
        self.end()

    def test_latest_that_cannot_be_written(self):
        self.save("t", 1)
        dist.barrier()
        if self.rank == 0:
            os.remove(f"{self.place}/latest")
            os.mkdir(f"{self.place}/latest")
        dist.barrier()
        with self.one_error("t is complete, and the file latest could not be written: .*[Dd]irectory"):
            self.engine.finish()
        if self.rank == 0:
            os.rmdir(f"{self.place}/latest")
        self.save("u", 2)
        self.engine.finish()
        self.assertEqual(self.latest(), "u")

    def test_a_job_that_was_killed_before_its_files_were_in_their_places(self):
        dist.barrier()
        if self.rank == 0:
            os.makedirs(f"{self.place}/killed")
            torch.save({}, f"{self.place}/killed/.kedge-0-mp_rank_00_model_states.pt")
        dist.barrier()
        self.assertEqual(kedge.deepspeed._find._files(self.place, "killed"), "nothing")

    def test_z_the_last_is_finished_at_the_end(self):
        self.save("last", 7, place=f"{directory}/last")


if __name__ == "__main__":
    program = unittest.main(argv=[sys.argv[0], *sys.argv[5:]], exit=False)
    print(f"rank {os.environ['RANK']}: {'done' if program.result.wasSuccessful() else 'failed'}", flush=True)
    sys.exit(not program.result.wasSuccessful())
