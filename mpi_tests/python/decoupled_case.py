"""What decoupled_ranks.py tests with: three ranks that save as DeepSpeed does with an engine that is decoupled."""

import contextlib
import os
import sys
import threading
import time
from unittest import mock

import torch
import torch.distributed as dist
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo
from deepspeed_case import CONFIG, Case, directory, torch_files

import kedge
import kedge.deepspeed
from kedge import _torch_files

BY_MPI = "OMPI_COMM_WORLD_RANK" in os.environ
if BY_MPI:
    from mpi4py import MPI  # noqa: F401: initializes it, for several threads

    os.environ["RANK"] = os.environ["OMPI_COMM_WORLD_RANK"]
    os.environ["WORLD_SIZE"] = os.environ["OMPI_COMM_WORLD_SIZE"]
PREFIX = f"{directory}/prefix"
STORE = sys.argv[4]
CONFIG["kedge"].update(decoupled=True, persistent={"path": PREFIX, "retries": 0})
if STORE == "disk":
    kedge._contents.Written.is_in_memory = lambda self: False
else:
    CONFIG["kedge"]["store"]["path"] = f"{STORE}/{{node}}"


class Decoupled(Case):
    def setUp(self):
        super().setUp()
        for number in range(2):  # from its second commit on the engine knows that its store is in memory
            self.save(f"before{number}", number)
            self.assertEqual(self.wait_for_info().tag, f"before{number}")
            self.end()

    def save(self, tag, value, *, latest=True, place=None, spoil=None, secures=True):
        """As DeepSpeed's save_checkpoint, with what install adds at its end."""
        self.write(CheckpointCommitInfo(tag, place or self.place, latest), value, spoil)
        assert self.engine.is_decoupled()
        dist.barrier()
        if secures:
            self.engine.secure()

    def end(self):
        """As DeepSpeed does it when it has got commit info."""
        self.commit(self.engine.get_commit_info())

    def wait_for_info(self):
        """Asks as often as it takes; each time all ranks get the same answer."""
        answers = []
        while not answers or (answers[-1] is None and len(answers) < 2000):
            answers.append(self.engine.get_commit_info())
            time.sleep(0.005)
        of_all = [None] * dist.get_world_size()
        dist.all_gather_object(of_all, answers)
        self.assertTrue(all(answers == others for others in of_all), of_all)
        self.assertIsNotNone(answers[-1])
        return answers[-1]

    def never_informed(self):
        for _ in range(40):
            self.assertIsNone(self.engine.get_commit_info())
            time.sleep(0.005)
        self.assertIsNone(self.engine._pending)

    def latest(self, place=None):
        dist.barrier()
        with open(f"{place or self.place}/latest") as file:
            text = file.read()
        dist.barrier()
        return text

    def left_over(self, tag):
        return [name for name in os.listdir(f"{self.place}/{tag}") if name.startswith(".kedge-")]

    def check_complete(self, tag, value):
        """What is promised when it is named in latest."""
        if torch_files:
            self.check_states(torch.load(f"{self.place}/{tag}/mp_rank_00_model_states.pt"), torch.load(self.shard_path(tag)),
                              value)
        else:
            self.assertEqual(self.level(tag), kedge.Level.PERSISTENT)

    def level(self, tag):
        place = kedge.deepspeed._find.Place(os.path.realpath(self.place), tag)
        return self.engine._shared.low.level(kedge.deepspeed._find.tag_of(place))

    @contextlib.contextmanager
    def held(self, rank):
        """This rank's part of what is left to do goes on when the block has ended."""
        go_on, write = threading.Event(), _torch_files.write
        shared = self.engine._shared

        def late(*arguments):
            assert go_on.wait(20)
            write(*arguments)

        if self.rank != rank:
            yield
        elif torch_files:
            with mock.patch.object(_torch_files, "write", late):
                yield
                go_on.set()
                self.engine._pending._thread.join()
        else:
            shared.low.pause()
            yield
            shared.low.resume()

    @contextlib.contextmanager
    def failing(self):
        """What is left to do fails on rank 1, or on all."""
        if torch_files:
            full = mock.patch.object(_torch_files, "write", side_effect=OSError(28, "No space left on device"))
            with full if self.rank == 1 else contextlib.nullcontext():
                yield
            return
        dist.barrier()
        if self.rank == 0:
            os.rename(PREFIX, PREFIX + "-away")
            with open(PREFIX, "w"):
                pass
        dist.barrier()
        yield
        dist.barrier()
        if self.rank == 0:
            os.remove(PREFIX)
            os.rename(PREFIX + "-away", PREFIX)
        dist.barrier()

    @contextlib.contextmanager
    def one_error(self, words):
        """Logged by rank 0 alone, and no rank raises."""
        if self.rank == 0:
            with self.assertLogs("kedge.deepspeed", "ERROR") as logged:
                yield
            self.assertEqual(len(logged.output), 1, logged.output)
            self.assertRegex(logged.output[0], words)
        else:
            with self.assertNoLogs("kedge.deepspeed", "ERROR"):
                yield
        dist.barrier()
