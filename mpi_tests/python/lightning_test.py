"""KedgeCheckpointIO in one process: files are durable before they have their name, store and file give the same, damage
is found, planted pickles are refused, and the newest whole one is found."""

import abc
import contextlib
import os
import pathlib
import pickle
import resource
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

import place

place.need("torch", "pytorch_lightning")

import pytorch_lightning as pl
import torch
from lightning_utilities.core.rank_zero import rank_zero_only
from pytorch_lightning.plugins import AsyncCheckpointIO

import kedge
from kedge import _torch_files
from kedge.lightning import KedgeCheckpointIO

LOG = "kedge.lightning"


class Planted:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


class Model(pl.LightningModule):
    def __init__(self, rate=0.1, data=pathlib.Path("data"), layers=(4, 1), dtype=torch.float32, config=None):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch).square().mean()
        self.log("loss", loss, on_epoch=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.rate)
        return [optimizer], [torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 2])]


def trainer(path, io, *callbacks, epochs=1, save_last="link"):
    return pl.Trainer(
        max_epochs=epochs, accelerator="cpu", plugins=[io], logger=False, enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[pl.callbacks.ModelCheckpoint(f"{path}/run", save_last=save_last, monitor="loss"), *callbacks])


def data():
    return torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=4)


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


class Lightning(unittest.TestCase):
    def setUp(self):
        self.path = self.enterContext(place.directory())
        self.file = f"{self.path}/checkpoints/a.ckpt"
        self.io = self.make()

    def make(self, allow_pickle=False, **more):
        options = place.options(self.path, **{"log.level": "error", "store.lock_timeout_s": 0.1, **more})
        io = KedgeCheckpointIO(options, allow_pickle=allow_pickle)
        self.addCleanup(io.teardown)
        return io

    def without_store(self, **more):
        return self.make(**{"persistent.path": f"{self.path}/elsewhere", **more})

    def state(self, value):
        return {"state_dict": {"w": torch.full((1000,), float(value)), "b": torch.arange(3)}, "epoch": value}

    def check(self, loaded, value):
        self.assertEqual(loaded["epoch"], value)
        self.assertTrue(torch.equal(loaded["state_dict"]["w"], torch.full((1000,), float(value))))

    def spoil_file(self):
        """So that what is loaded is not from the file."""
        weights = torch.full((1000,), 1.0).numpy().tobytes()
        flip(self.file, pathlib.Path(self.file).read_bytes().index(weights) + 2000)

    def test_store_and_file(self):
        memory = self.enterContext(tempfile.TemporaryDirectory(dir="/dev/shm"))
        for store in (f"{self.path}/store/{{node}}", memory):
            io = self.make(**{"store.path": store})
            io.save_checkpoint(self.state(1), pathlib.Path(self.file))
            with mock.patch.object(torch, "load", side_effect=AssertionError("the file was loaded")):
                self.check(io.load_checkpoint(self.file), 1)
            self.check(self.without_store().load_checkpoint(self.file), 1)
            self.check(torch.load(self.file, weights_only=True), 1)
            io.teardown()

    def test_after_a_crash(self):
        """The next process takes it from the store; after an orderly end nothing is left there."""
        program = ("import os, sys; from kedge.lightning import KedgeCheckpointIO; "
                   "io = KedgeCheckpointIO(eval(sys.argv[1])); io.save_checkpoint({'epoch': 7}, sys.argv[2]); "
                   "os._exit(9)")
        done = subprocess.run([sys.executable, "-c", program, repr(self.io._options), self.file], timeout=60)
        self.assertEqual(done.returncode, 9)
        with mock.patch.object(torch, "load", side_effect=AssertionError("the file was loaded")):
            self.assertEqual(self.io.load_checkpoint(self.file), {"epoch": 7})
        self.io.teardown()
        left = [path for path in pathlib.Path(self.path, "store").rglob("*") if path.is_file()]
        self.assertEqual([path.name for path in left], ["run"])
        self.assertEqual(self.io.load_checkpoint(self.file), {"epoch": 7})

    def test_only_what_the_file_says(self):
        """The store has another commit than the file that was asked for."""
        self.io.save_checkpoint(self.state(1), self.file)
        self.io.save_checkpoint(self.state(2), f"{self.path}/b.ckpt")
        self.check(self.io.load_checkpoint(self.file), 1)
        os.replace(self.file, f"{self.path}/b.ckpt")
        self.check(self.io.load_checkpoint(f"{self.path}/b.ckpt"), 1)

    def test_damage(self):
        self.io.save_checkpoint(self.state(1), self.file)
        self.spoil_file()
        self.check(self.io.load_checkpoint(self.file), 1)
        with self.assertRaisesRegex(kedge.Corrupt, "a.ckpt is damaged: the checksum of archive/data/0 is wrong"):
            self.without_store().load_checkpoint(self.file)
        os.truncate(self.file, 3000)
        with self.assertRaisesRegex(kedge.Corrupt, "a.ckpt is truncated"):
            self.io.load_checkpoint(self.file)
        with self.assertRaises(FileNotFoundError):
            self.io.load_checkpoint(f"{self.path}/none.ckpt")

    def test_damage_in_the_store(self):
        io = self.make(**{"store.on_exit": "keep"})
        io.save_checkpoint(self.state(1), self.file)
        io.teardown()
        weights = torch.full((1000,), 1.0).numpy().tobytes()
        for container in pathlib.Path(self.path, "store").rglob("*.h5"):
            at = container.read_bytes().find(weights)
            if at >= 0:
                flip(container, at + 2000)
        with self.assertLogs(LOG) as log:
            self.check(io.load_checkpoint(self.file), 1)
        self.assertIn("its copy in the store is damaged", log.output[0])

    def test_pickles(self):
        """Neither from the store nor from the file is anything run, unless it is allowed."""
        planted = f"{self.path}/planted"
        with self.assertLogs("kedge.lightning", "WARNING") as told:
            self.io.save_checkpoint({"x": [Planted(planted)]}, self.file)
        self.assertRegex(told.output[0], r"a.ckpt holds posix.mkdir \(checkpoint\['x'\]\[0\]\).*add_safe_globals")
        with self.assertNoLogs("kedge.lightning", "WARNING"):
            self.io.save_checkpoint({"x": [Planted(planted)]}, self.file)  # once is enough
            self.make(allow_pickle=True, run="b").save_checkpoint({"x": Planted(planted)}, f"{self.path}/b.ckpt")
        for io in (self.io, self.without_store()):
            for weights_only in (None, True):
                with self.assertRaisesRegex(kedge.InvalidArgument, "a.ckpt holds posix.mkdir, and to unpickle it"):
                    io.load_checkpoint(self.file, weights_only=weights_only)
        with self.assertRaises(kedge.InvalidArgument):
            self.without_store(allow_pickle=True).load_checkpoint(self.file, weights_only=True)
        self.assertFalse(os.path.exists(planted))
        for io, weights_only in ((self.io, False), (self.without_store(allow_pickle=True), None)):
            io.load_checkpoint(self.file, weights_only=weights_only)
            os.rmdir(planted)

    def test_failing_save(self):
        self.io.save_checkpoint(self.state(1), self.file)
        for expected, large in (("File too large", torch.zeros(1 << 16)), ("File too large", torch.zeros(1 << 20))):
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))
            try:
                with self.assertRaisesRegex(kedge.IoError, f"a.ckpt could not be written .{expected}") as raised:
                    self.io.save_checkpoint({"large": large}, self.file)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertEqual(raised.exception.path, self.file)
            self.check(self.io.load_checkpoint(self.file), 1)
            self.assertEqual(os.listdir(os.path.dirname(self.file)), ["a.ckpt"])
        with self.assertRaisesRegex(kedge.IoError, "File exists"):
            self.io.save_checkpoint(self.state(2), f"{self.file}/b.ckpt")

    def test_failing_store(self):
        io = self.make(**{"store.quota_bytes": 4096})
        with self.assertLogs(LOG) as log:
            io.save_checkpoint(self.state(1), self.file)
        self.assertIn("a.ckpt is not kept in the store", log.output[0])
        self.check(io.load_checkpoint(self.file), 1)

    def test_not_picklable(self):
        """The next save is not in the way of one that failed."""
        with self.assertRaises(Exception):
            self.io.save_checkpoint({"x": lambda: 0}, self.file)
        with mock.patch("kedge.lightning.Written.end", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                self.io.save_checkpoint(self.state(1), self.file)
        with self.assertNoLogs(LOG):
            self.io.save_checkpoint(self.state(1), self.file)
        self.spoil_file()
        self.check(self.io.load_checkpoint(self.file), 1)

    def test_durable_before_its_name(self):
        """The file is written beside, and takes its name when it is durable."""
        calls = mock.Mock()
        with mock.patch.object(os, "fsync", calls.fsync), mock.patch.object(os, "replace", calls.replace):
            calls.replace.side_effect = os.rename
            self.io.save_checkpoint(self.state(1), self.file)
        # Of the directory above the new one, of the file, and of the new directory.
        self.assertEqual([call[0] for call in calls.mock_calls], ["fsync", "fsync", "replace", "fsync"])
        beside = os.path.basename(calls.replace.call_args.args[0])
        self.assertRegex(beside, "^[.]kedge-[0-9a-f]{12}$")  # not the real name, by which Lightning finds checkpoints
        with mock.patch.object(os, "replace", side_effect=OSError(28, "No space left on device")):
            with self.assertRaisesRegex(kedge.IoError, "No space left"):
                self.io.save_checkpoint(self.state(2), self.file)
        self.check(self.without_store().load_checkpoint(self.file), 1)

    def test_two_trainers(self):
        program = ("import sys, torch; from kedge.lightning import KedgeCheckpointIO; "
                   "io = KedgeCheckpointIO(eval(sys.argv[1])); io.save_checkpoint({'epoch': 7}, sys.argv[2]); "
                   "print('saved', flush=True); sys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", program, repr(self.io._options), self.file], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            self.assertEqual(other.stdout.readline(), "saved\n")
            with self.assertRaisesRegex(kedge.Busy, r'a run of its own, KedgeCheckpointIO\(\{"run": "NAME"\}\)'):
                self.io.save_checkpoint(self.state(1), f"{self.path}/b.ckpt")
            began = time.monotonic()
            with self.assertLogs(LOG) as log:
                self.assertEqual(self.make(**{"store.lock_timeout_s": 60}).load_checkpoint(self.file), {"epoch": 7})
            self.assertLess(time.monotonic() - began, 30)
            self.assertIn("a.ckpt is loaded from the file: another trainer", log.output[0])
            self.make(run="b").save_checkpoint(self.state(1), f"{self.path}/b.ckpt")
            other.communicate(timeout=30)

    def test_other_ranks(self):
        """They have no store, and take none."""
        with mock.patch.object(rank_zero_only, "rank", 1):
            io = self.without_store()
            io.save_checkpoint(self.state(1), self.file)
            with mock.patch.object(torch, "load", wraps=torch.load) as load:
                self.check(io.load_checkpoint(self.file), 1)
            self.assertEqual(load.call_args.kwargs["map_location"], "cpu")  # not where rank 0 had it
        self.assertIsNone(io._engine)
        self.assertFalse(os.path.exists(f"{self.path}/elsewhere"))
        self.assertIsNotNone(_torch_files.mark_of(self.file))

    def test_who_only_loads_leaves_nothing(self):
        self.io.save_checkpoint(self.state(1), self.file)
        self.without_store().load_checkpoint(self.file)
        self.assertFalse(os.path.exists(f"{self.path}/elsewhere"))

    def test_ordinary_contents(self):
        """What Lightning itself saves needs no allow_pickle."""
        config = None
        with contextlib.suppress(ImportError):
            import omegaconf

            config = omegaconf.OmegaConf.create({"a": 1, "b": [1, 2.5, {"c": None}], "d": "${a}", "e": {"f": "g"}})
        callbacks = [pl.callbacks.EarlyStopping("loss"), pl.callbacks.Timer("00:01:00:00")]
        fit = trainer(self.path, self.io, *callbacks)
        fit.fit(Model(config=config), data())
        fit.save_checkpoint(f"{self.path}/end.ckpt")  # after teardown
        for path in (f"{self.path}/run/last.ckpt", f"{self.path}/end.ckpt"):
            for io in (self.io, self.without_store()):
                loaded = io.load_checkpoint(path)
                self.assertEqual(loaded["hyper_parameters"]["data"], pathlib.PosixPath("data"))
                self.assertEqual(loaded["hyper_parameters"]["config"], config)
        resumed = trainer(self.path, self.io, epochs=2)
        resumed.fit(Model(config=config), data(), ckpt_path=KedgeCheckpointIO.latest(f"{self.path}/run"))
        self.assertEqual(resumed.global_step, 4)
        Model.load_from_checkpoint(f"{self.path}/end.ckpt", weights_only=False)

    def test_wrapped(self):
        """A save in the background is waited for."""
        fit = trainer(self.path, AsyncCheckpointIO(self.io), save_last=True)
        fit.fit(Model(), data())
        self.assertEqual(self.io.load_checkpoint(f"{self.path}/run/last.ckpt")["global_step"], 2)

    def test_latest(self):
        self.assertIsNone(KedgeCheckpointIO.latest(f"{self.path}/none"))
        names = ["version_0/a.ckpt", "version_1/b.ckpt", "version_1/c.ckpt", "version_1/d.ckpt"]
        paths = [f"{self.path}/checkpoints/{name}" for name in names]
        for age, path in enumerate(paths):
            self.io.save_checkpoint(self.state(1), path)
            os.utime(path, ns=(0, 10**18 + age))
        latest = lambda: KedgeCheckpointIO.latest(pathlib.Path(self.path, "checkpoints"))
        self.assertEqual(latest(), paths[3])
        os.truncate(paths[3], os.path.getsize(paths[3]) - 1)
        flip(paths[2], pathlib.Path(paths[2]).read_bytes().index(torch.full((1000,), 1.0).numpy().tobytes()))
        for age, path in enumerate(paths):
            os.utime(path, ns=(0, 10**18 + age))
        with self.assertLogs(LOG) as log:
            self.assertEqual(latest(), paths[1])
        self.assertEqual(len(log.output), 2)
        self.assertIn("d.ckpt is truncated", log.output[0])
        os.symlink("gone", f"{self.path}/checkpoints/last.ckpt")
        open(f"{self.path}/checkpoints/notes.txt", "w").close()
        pathlib.Path(self.path, "checkpoints/.kedge-0123456789ab").write_bytes(pathlib.Path(paths[0]).read_bytes())
        with self.assertLogs(LOG):
            self.assertEqual(latest(), paths[1])

    def test_latest_of_others(self):
        """Files that torch.save wrote without checksums; directories of DeepSpeed's, written to the end or not."""
        torch.serialization.set_crc32_options(False)
        self.addCleanup(torch.serialization.set_crc32_options, True)
        torch.save(self.state(1), f"{self.path}/a.ckpt")
        self.assertEqual(KedgeCheckpointIO.latest(self.path), f"{self.path}/a.ckpt")
        self.check(self.io.load_checkpoint(f"{self.path}/a.ckpt"), 1)
        os.makedirs(f"{self.path}/b.ckpt/checkpoint")
        self.assertEqual(KedgeCheckpointIO.latest(self.path), f"{self.path}/a.ckpt")
        pathlib.Path(self.path, "b.ckpt/latest").write_text("checkpoint")
        self.assertEqual(KedgeCheckpointIO.latest(self.path), f"{self.path}/b.ckpt")
        with self.assertRaisesRegex(kedge.InvalidArgument, "is a directory: load it with the strategy"):
            self.io.load_checkpoint(f"{self.path}/b.ckpt")
        self.io.remove_checkpoint(f"{self.path}/b.ckpt")
        self.assertFalse(os.path.exists(f"{self.path}/b.ckpt"))

    def test_remove(self):
        self.io.save_checkpoint(self.state(1), self.file)
        for _ in range(2):
            self.io.remove_checkpoint(self.file)
            self.assertFalse(os.path.exists(self.file))

    def test_arguments(self):
        with self.assertRaisesRegex(kedge.InvalidArgument, "stroe.path"):
            KedgeCheckpointIO({"stroe.path": "x"})
        with self.assertRaisesRegex(kedge.InvalidArgument, "storage_options"):
            self.io.save_checkpoint({}, self.file, storage_options={})
        for call in (self.io.load_checkpoint, self.io.latest, self.io.remove_checkpoint):
            with self.assertRaisesRegex(kedge.InvalidArgument, "needs a mounted file system, unlike s3://a/b"):
                call("s3://a/b")

    def test_processes(self):
        """A spawned process starts without the engine; one that lives to the end of the program needs no teardown."""
        self.io.save_checkpoint(self.state(1), self.file)
        self.assertIsNone(pickle.loads(pickle.dumps(self.io))._engine)
        self.assertIsNotNone(self.io._engine)
        program = ("import sys; from kedge.lightning import KedgeCheckpointIO; "
                   "io = KedgeCheckpointIO({**eval(sys.argv[1]), 'run': 'b'}); io.save_checkpoint({}, sys.argv[2])")
        done = subprocess.run([sys.executable, "-c", program, repr(self.io._options), f"{self.path}/b.ckpt"],
                              timeout=60, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        stores = [path.parent.name for path in pathlib.Path(self.path, "store").rglob("*.h5")]
        self.assertFalse(any("-b-" in name for name in stores), stores)

    def test_both_packages(self):
        """pytorch_lightning and lightning accept it."""
        theirs = types.ModuleType("lightning.fabric.plugins")
        theirs.CheckpointIO = abc.ABCMeta("CheckpointIO", (), {})
        with mock.patch.dict(sys.modules, {theirs.__name__: theirs}):
            self.assertIsInstance(self.make(), theirs.CheckpointIO)


if __name__ == "__main__":
    unittest.main()
