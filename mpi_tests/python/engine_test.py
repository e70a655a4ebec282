"""The package in one process: every NumPy type and shape comes back, contiguous or not, others are refused in words;
counters, completions, finalize with a limit, signal handlers, a class for every error; a planted pickle is not run."""

import functools
import os
import pickle
import re
import signal
import time
import unittest
from pathlib import Path

import numpy as np
import place

import kedge
from kedge import _memory, communicators

ROOT = Path(__file__).resolve().parents[2]


class Case(unittest.TestCase):
    def setUp(self):
        self.path = self.enterContext(place.directory())
        self.engine = self.start()

    def start(self, **more):
        return kedge.Engine(place.options(self.path, **more), communicator=communicators.single_process())

    def saved_and_loaded(self, value):
        with self.engine.checkpoint("t") as c:
            c.save("x", value)
        with self.engine.restart() as r:
            return r.load("x")


class Numbers(unittest.TestCase):
    def test_types_have_the_numbers_of_c(self):
        """Two that are exchanged would come back all right, and be wrong in the file."""
        header = (ROOT / "include/kedge/kedge.h").read_text()
        types = re.search(r"enum kedge_dtype .*?{(.*?)}", header, re.S)[1]
        wanted = {name.lower(): int(number) for name, number in re.findall(r"KEDGE_(\w+) = (\d+)", types)}
        self.assertGreater(len(wanted), 17)
        self.assertEqual(_memory._NUMBERS | {"opaque": _memory.OPAQUE}, wanted)

    def test_every_kind_of_failure_has_a_class_that_programs_can_name(self):
        header = (ROOT / "include/kedge/kedge.h").read_text()
        kinds = re.search(r"\{([^{}]*)\} kedge_error;", header, re.S)[1]
        wanted = {name.lower() for name, number in re.findall(r"KEDGE_(\w+) = (\d+)", kinds) if int(number) > 0}
        self.assertGreaterEqual(len(wanted), 12)
        named = [getattr(kedge, name) for name in kedge.__all__]
        errors = [one for one in named if isinstance(one, type) and issubclass(one, kedge.Error) and one is not kedge.Error]
        self.assertEqual({one.code for one in errors}, wanted)
        for one in errors:
            words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", one.__name__).lower()
            self.assertEqual(words.removesuffix("_error"), one.code)
        statuses = [error("").exit_status for error in (kedge.Mismatch, kedge.NoSpace, kedge.Error)]
        self.assertEqual(statuses, [78, 75, 1])

    def test_names_that_the_guides_give_are_exported(self):
        text = "".join(guide.read_text() for guide in (ROOT / "share/doc").glob("*.md"))
        names = set(re.findall(r"\bkedge\.([A-Z]\w*(?:\.\w+)*)", text))
        self.assertTrue({"Engine", "Error", "NoSpace", "RankFailed", "Shard", "Level.NONE"} <= names, names)
        for name in names:
            first, *rest = name.split(".")
            self.assertIn(first, kedge.__all__)
            functools.reduce(getattr, rest, getattr(kedge, first))


class Values(Case):
    def test_every_dtype_and_shape_comes_back(self):
        names = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                 "float64", "complex64", "complex128", "bool"]
        values = {}
        for name in names:
            for shape in [(), (0,), (3, 0, 2), (7,), (3, 4), (2, 3, 4, 5)]:
                raw = np.random.default_rng(1).integers(0, 100, shape)
                values[f"{name}/{len(values)}"] = raw.astype(name)
        with self.engine.checkpoint("all") as c:
            for name, value in values.items():
                c.save(name, value)
        with self.engine.restart() as r:
            self.assertEqual(set(r.regions), set(values))
            for name, value in values.items():
                loaded = r.load(name)
                self.assertEqual((loaded.dtype, loaded.shape), (value.dtype, value.shape), name)
                np.testing.assert_array_equal(loaded, value)
                out = np.zeros_like(value)
                self.assertIs(r.load(name, out=out), out)
                np.testing.assert_array_equal(out, value)

    def test_what_is_not_contiguous_is_saved_and_loaded_as_it_looks(self):
        base = np.arange(24.0).reshape(4, 6)
        for value in (base.T, base[::2, ::3], base[::-1], np.asfortranarray(base), np.broadcast_to(base[0], (3, 6))):
            np.testing.assert_array_equal(self.saved_and_loaded(value), value)
        with self.engine.checkpoint("t") as c:
            c.save("x", base)
        target = np.zeros((6, 8))
        with self.engine.restart() as r:
            r.load("x", out=target.T[::2, :])
        np.testing.assert_array_equal(target.T[::2, :], base)
        self.assertEqual(target.T[1::2].sum(), 0)

    def test_read_only_memory_can_be_saved_and_not_loaded_into(self):
        value = np.arange(5)
        value.flags.writeable = False
        np.testing.assert_array_equal(self.saved_and_loaded(value), value)
        with self.assertRaisesRegex(kedge.InvalidArgument, "read-only"), self.engine.restart() as r:
            r.load("x", out=value)

    def test_numbers_lists_and_bytes(self):
        self.assertEqual(self.saved_and_loaded(3.5), 3.5)
        self.assertEqual(self.saved_and_loaded(True), np.True_)
        np.testing.assert_array_equal(self.saved_and_loaded([1, 2, 3]), [1, 2, 3])
        for value in (b"", b"hello", bytearray(b"\0\xff"), memoryview(b"view")):
            with self.engine.checkpoint("t") as c:
                c.save("x", value)
            with self.engine.restart() as r:
                self.assertEqual(r.load_bytes("x"), bytes(value))
                out = np.zeros(len(value), np.uint8)
                self.assertEqual(r.load("x", out=out).tobytes(), bytes(value))

    def test_what_has_no_type_is_refused_in_words_and_costs_nothing(self):
        self.saved_and_loaded(1)
        swapped = np.zeros(2, ">f8")
        for value in (np.array(["a"]), np.array([None]), np.zeros(2, "i4,f8"), np.zeros(2, "M8[s]"), swapped,
                      np.zeros(2, np.longdouble), "text", {"a": 1}, None):
            with self.assertRaises(kedge.InvalidArgument) as raised, self.engine.checkpoint("bad") as c:
                c.save("odd", value)
            self.assertIn("'odd'", str(raised.exception))
            self.assertRegex(str(raised.exception), "byteorder" if value is swapped else "save|view")
        with self.engine.restart() as r:
            self.assertEqual(r.tag, "t")

    def test_a_buffer_may_be_changed_once_save_returned(self):
        value = np.arange(1000)
        with self.engine.checkpoint("t") as c:
            c.save("x", value)
            value[:] = -1
        with self.engine.restart() as r:
            np.testing.assert_array_equal(r.load("x"), np.arange(1000))

    def test_shards_and_replicated_regions_keep_their_place(self):
        with self.engine.checkpoint("t") as c:
            c.save("s", np.ones((2, 3)), shard=kedge.Shard((4, 3), (1, 0), holes_allowed=True))
            c.save("r", 1, replicated=True)
            c.save("o", 1)
        with self.engine.restart() as r:
            self.assertEqual(r.regions["s"].shard, kedge.Shard((4, 3), (1, 0), True))
            self.assertEqual([r.regions[name].replicated for name in "sro"], [False, True, False])
        with self.assertRaises(kedge.InvalidArgument), self.engine.checkpoint("t") as c:
            c.save("x", 1, shard=kedge.Shard((1,), (0,)), replicated=True)
        with self.assertRaises(kedge.Mismatch), self.engine.checkpoint("hole") as c:
            c.save("s", np.ones((2, 3)), shard=kedge.Shard((4, 3), (1, 0)))


class Planted:
    """Unpickling it leaves a mark."""

    def __reduce__(self):
        return (os.mkdir, (Planted.where,))


class Objects(Case):
    def test_unpickling_is_opt_in_and_a_planted_pickle_is_not_run(self):
        Planted.where = os.path.join(self.path, "planted")
        with self.engine.checkpoint("t") as c:
            c.save_object("state", {"rng": [1, 2], "name": "x"})
            c.save_object("planted", Planted(), allow_pickle=True)
        with self.engine.restart() as r:
            self.assertEqual(r.load_object("state"), {"rng": [1, 2], "name": "x"})
            with self.assertRaisesRegex(kedge.InvalidArgument, "allow_pickle"):
                r.load_object("planted")
            r.load("planted"), r.load_bytes("planted"), r.regions
        self.assertFalse(os.path.exists(Planted.where))
        with self.engine.restart() as r:
            r.load_object("planted", allow_pickle=True)
        self.assertTrue(os.path.exists(Planted.where))  # the mark can be seen

    def test_what_cannot_be_pickled_fails_the_checkpoint(self):
        with self.assertRaisesRegex(kedge.InvalidArgument, "f is a builtins.function, which cannot be pickled"), self.engine.checkpoint("t") as c:
            c.save_object("f", lambda: 1)
        with self.engine.restart() as r:
            self.assertFalse(r)


class Brackets(Case):
    def test_an_error_in_the_block_drops_the_checkpoint_and_is_raised(self):
        with self.assertRaisesRegex(ZeroDivisionError, "by zero"), self.engine.checkpoint("t") as c:
            c.save("x", 1)
            1 / 0
        with self.engine.restart() as r:
            self.assertFalse(r)
            self.assertIsNone(r.tag)
        self.assertEqual(self.saved_and_loaded(2), 2)

    def test_calls_outside_of_the_block_are_refused(self):
        c = self.engine.checkpoint("t")
        with self.assertRaisesRegex(kedge.BadState, "with statement"):
            c.save("x", 1)
        with self.engine.checkpoint("t") as c:
            c.save("x", 1)
        with self.assertRaises(kedge.BadState):
            c.save("x", 1)
        with self.engine.restart() as r:
            pass
        for call in (lambda: r.load("x"), lambda: r.regions, lambda: r.info, lambda: r.route_in("x")):
            self.assertRaises(kedge.BadState, call)

    def test_a_region_that_is_not_there_can_be_asked_for(self):
        self.saved_and_loaded(1)
        with self.engine.restart() as r:
            with self.assertRaisesRegex(kedge.NotFound, "did you mean 'x'"):
                r.load("xx")
            self.assertEqual(r.load("x"), 1)

    def test_another_shape_or_type_is_a_mismatch(self):
        self.saved_and_loaded(np.zeros((2, 3)))
        for out in (np.zeros((3, 2)), np.zeros((2, 3), np.float32), np.zeros(6)):
            with self.assertRaises(kedge.Mismatch), self.engine.restart() as r:
                r.load("x", out=out)

    def test_tags_levels_attributes_and_the_way_back(self):
        for step in (1, 2, 3):
            with self.engine.checkpoint(f"step-{step}", {"step": step, "dt": 0.5, "who": "me", "sizes": [1, 2]}) as c:
                c.save("x", step)
            self.engine.wait(f"step-{step}", "persistent")
        self.assertEqual(self.engine.level("step-3"), kedge.Level.PERSISTENT)
        self.assertEqual(self.engine.level("none"), kedge.Level.NONE)
        self.assertEqual(str(kedge.Level.SNAPSHOT), "snapshot")
        with self.engine.restart() as r:
            self.assertEqual((r.tag, r.attributes), ("step-3", {"step": 3, "dt": 0.5, "who": "me", "sizes": [1, 2]}))
            self.assertEqual((r.info.world_size, r.info.logical_rank, r.info.source), (1, 0, "in place"))
        with self.engine.restart("step-1") as r:
            self.assertEqual(r.load("x"), 1)
        with self.engine.restart(before="step-3") as r:
            self.assertEqual(r.tag, "step-2")
        with self.engine.restart("step-9") as r:
            self.assertFalse(r)
        self.engine.pin("step-1")
        self.engine.unpin("step-1")

    def test_a_checkpoint_goes_on_behind_the_program(self):
        self.engine.finalize()
        told, lines = [], []
        self.engine = kedge.Engine(
            place.options(self.path, **{"pipeline.mode": "background", "persistent.every": 1, "log.level": "info"}),
            communicator=communicators.single_process(), log=lambda _, line: lines.append(line))
        with self.engine.checkpoint("a") as c:
            c.save("x", np.arange(1000))
        with self.engine.paused():
            self.engine.on_complete("a", "persistent", told.append)
        self.assertTrue(self.engine.wait("a", "persistent", timeout=60))
        self.assertEqual(told, [None])
        self.assertTrue(any(line.startswith("committed a ") and "persistent after" in line for line in lines), lines)
        with self.engine.checkpoint("b") as c:
            c.save("x", np.arange(1000))
        self.engine.on_complete("b", "protected", told.append)  # of one rank nothing is protected
        with self.assertRaises(kedge.NotFound):
            self.engine.on_complete("none", "local", told.append)
        self.engine.finalize()
        with self.assertRaises(kedge.BadState):
            self.engine.on_complete("b", "local", told.append)
        self.assertEqual(told, [None, None])  # persistent is more
        counters = self.engine.counters()
        self.assertIsInstance(counters, kedge.Counters)
        self.assertEqual((counters.commits, counters.flushes, counters.protections, counters.pending), (2, 2, 0, 0))
        self.assertGreater(counters.saved_bytes, 16000)
        self.assertEqual(counters.flushed_bytes, counters.saved_bytes)

    def test_an_engine_may_go_while_its_thread_logs(self):
        self.engine.finalize()
        for _ in range(20):
            engine = kedge.Engine(
                place.options(self.path, **{"pipeline.mode": "background", "persistent.every": 1, "log.level": "debug"}),
                communicator=communicators.single_process(), log=lambda _, line: None)
            with engine.checkpoint("a") as c:
                c.save("x", np.arange(100_000))
            begin = time.monotonic()
            del engine, c
            self.assertLess(time.monotonic() - begin, 5)

    def test_another_runs_checkpoint_is_the_start_of_this_one(self):
        self.saved_and_loaded(5)
        self.engine.wait("t", kedge.Level.PERSISTENT)
        with place.directory() as elsewhere:
            other = kedge.Engine(place.options(elsewhere), communicator=communicators.single_process())
            with other.restart_from(f"{self.path}/prefix") as r:
                self.assertEqual(r.load("x"), 5)
            with self.assertRaises(kedge.NotFound), other.restart_from(f"{self.path}/prefix", "none"):
                pass
            other.finalize()

    def test_files_are_routed(self):
        with self.engine.checkpoint("t") as c:
            Path(c.route_out("out/restart.bin")).write_bytes(b"file")
        with self.engine.restart() as r:
            self.assertEqual(Path(r.route_in("out/restart.bin")).read_bytes(), b"file")
            self.assertTrue(r.regions["out/restart.bin"].routed)

    def test_a_damaged_checkpoint_is_never_read_and_the_one_before_is_taken(self):
        self.engine.finalize()
        self.engine = self.start(**{"persistent.every": 0})  # finalize does not flush either
        with self.engine.checkpoint("good") as c:
            c.save("x", np.arange(1000))
        self.engine.wait("good", "persistent")
        with self.engine.checkpoint("bad") as c:
            c.save("x", np.arange(1000))
        self.engine.finalize()
        for file in Path(self.path, "store").rglob("*"):
            if file.is_file() and file.stat().st_size > 8192:
                with open(file, "r+b") as opened:
                    opened.seek(4096 * 2)
                    opened.write(b"\xff" * 64)
        self.engine = self.start(**{"persistent.every": 0})
        with self.engine.restart() as r:
            self.assertEqual(r.tag, "good")
            np.testing.assert_array_equal(r.load("x"), np.arange(1000))

    def test_errors_survive_the_way_between_processes(self):
        with self.assertRaises(kedge.InvalidArgument) as raised:
            kedge.Engine({"store.keep": "x"}, communicator=communicators.single_process())
        copy = pickle.loads(pickle.dumps(raised.exception))
        self.assertIs(type(copy), kedge.InvalidArgument)
        self.assertEqual((str(copy), vars(copy)), (str(raised.exception), vars(raised.exception)))

    def test_mistakes_are_answered_with_what_to_do(self):
        with self.engine.restart() as saved:
            with self.assertRaisesRegex(kedge.BadState, "test `if saved:` first"):
                saved.load("x")
        with self.assertRaisesRegex(kedge.InvalidArgument, "no level 'persistant': use local, protected or persistent"):
            self.engine.wait("t", "persistant")
        with self.assertRaisesRegex(kedge.InvalidArgument, "option run has no value"):
            kedge.Engine({"run": None}, communicator=communicators.single_process())
        with self.assertRaisesRegex(kedge.InvalidArgument, "names of attributes must be of type str"):
            with self.engine.checkpoint("t", {1: 2}):
                pass
        for value in (np.int64(3), 2**70, [None], {}):
            with self.assertRaisesRegex(kedge.InvalidArgument, "attribute step must be an int that fits.*int"):
                with self.engine.checkpoint("t", {"step": value}):
                    pass
        for shard in (kedge.Shard((4,), (-1,)), kedge.Shard((4.5,), (0,)), kedge.Shard(("a",), (0,))):
            with self.assertRaisesRegex(kedge.InvalidArgument, "integers of 0 or more"), self.engine.checkpoint("t") as c:
                c.save("x", np.zeros(2), shard=shard)


class Options(Case):
    def test_wrong_options_are_named(self):
        for wrong, words in (({"store.pat": "x"}, "did you mean store.path"), ({"store": {"keep": -1}}, "store.keep must"),
                             ({"redundancy.scheme": "raid"}, "redundancy.scheme must")):
            with self.assertRaisesRegex(kedge.InvalidArgument, words):
                kedge.Engine(place.options(self.path) | wrong, communicator=communicators.single_process())

    def test_the_log_goes_where_it_is_sent(self):
        lines = []
        self.engine.finalize()
        engine = kedge.Engine(place.options(self.path, **{"log.level": "info"}),
                              communicator=communicators.single_process(), log=lambda level, line: lines.append(line))
        with engine.checkpoint("t") as c:
            c.save("x", 1)
        engine.finalize()
        self.assertTrue(any("committed" in line for line in lines), lines)

    def test_a_communicator_serves_one_engine(self):
        ranks = communicators.single_process()
        self.engine.finalize()
        kedge.Engine(place.options(self.path), communicator=ranks).finalize()
        with self.assertRaises(kedge.BadState):
            kedge.Engine(place.options(self.path), communicator=ranks)

    def test_a_signal_ends_the_loop_after_a_last_checkpoint(self):
        self.engine.finalize()
        heard = []
        before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
        try:
            with kedge.Engine(place.options(self.path, **{"exit.signals": ["SIGUSR1", "SIGUSR2"], "schedule.overhead": 0}),
                              communicator=communicators.single_process()) as engine:
                self.assertFalse(engine.need_checkpoint())
                self.assertFalse(engine.should_exit())
                signal.raise_signal(signal.SIGUSR1)
                self.assertTrue(engine.need_checkpoint())
                with engine.checkpoint("last") as c:
                    c.save("x", 1)
                self.assertFalse(engine.need_checkpoint())
                self.assertTrue(engine.should_exit())
            self.assertEqual(heard, [signal.SIGUSR1], "the program's own handler was called, too")
        finally:
            signal.signal(signal.SIGUSR1, before)

    def test_a_finalized_engine_is_over(self):
        with self.engine:
            pass
        self.assertRaises(kedge.BadState, self.engine.need_checkpoint)
        self.engine = self.start()
        self.assertTrue(self.engine.finalize(timeout=60))
        self.assertRaises(kedge.BadState, self.engine.need_checkpoint)


if __name__ == "__main__":
    unittest.main()
