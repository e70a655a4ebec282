"""Threads that call one engine at the same time: BadState in the one that comes second, and the other goes on; several
save and load in one checkpoint; an engine that is left in a call ends with it."""

import threading
import time
import unittest

import numpy as np
import place

import kedge
from kedge import communicators

WORDS = "one thread at a time may call an engine"
FEW, MANY = 1000, 8 << 20  # bytes; a commit of many takes long enough to be met


class Threads(unittest.TestCase):
    def setUp(self):
        self.path = self.enterContext(place.directory())
        self.engine = self.start()

    def start(self, **more):
        options = place.options(self.path, **{"store.lock_timeout_s": 5, "log.level": "error", **more})
        return kedge.Engine(options, communicator=communicators.single_process())

    def run_in_threads(self, *bodies):
        """What each has raised."""
        raised = []

        def run(body):
            try:
                body()
            except BaseException as error:
                raised.append(error)

        threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        return raised

    def save(self, engine, tag, size=FEW):
        with engine.checkpoint(tag) as checkpoint:
            checkpoint.save("x", np.full(size, len(tag), np.uint8))

    def test_checkpoints_at_the_same_time_are_refused_and_none_is_harmed(self):
        made, refused, until = [], [], time.monotonic() + 2.0

        def work(name):
            number = 0
            while time.monotonic() < until:
                number += 1
                tag = f"{name}-{number}"
                try:
                    self.save(self.engine, tag)
                    made.append(tag)
                except kedge.Error as error:
                    self.assertEqual(error.code, "bad_state")
                    self.assertIn(WORDS, str(error))
                    refused.append(tag)

        errors = self.run_in_threads(lambda: work("a"), lambda: work("b"), lambda: work("c"))
        self.assertEqual(errors, [])
        self.assertTrue(made and refused)
        with self.engine.restart() as saved:
            self.assertEqual(saved.tag, made[-1])
            np.testing.assert_array_equal(saved.load("x"), np.full(FEW, len(made[-1]), np.uint8))

    def met(self, meet, seconds=20.0):
        """Calls `meet` again and again while another thread makes checkpoints, until the two have met; what was raised."""
        until, raised = time.monotonic() + seconds, set()

        def is_over():
            return time.monotonic() > until or any(WORDS in error for error in raised)

        def work():
            number = 0
            while not is_over():
                number += 1
                try:
                    self.save(self.engine, f"a-{number}", MANY)
                except kedge.BadState as error:  # the other one came first
                    raised.add(str(error))
                    self.assertIn(WORDS, str(error))

        def other():
            while not is_over():
                try:
                    meet()
                except (kedge.BadState, kedge.NotFound) as error:
                    raised.add(str(error))

        self.assertEqual(self.run_in_threads(work, other), [])
        return raised

    def test_every_other_call_beside_a_checkpoint(self):
        engine = self.engine
        calls = {
            "open": lambda: engine.restart("none").__enter__(),
            "pin": lambda: engine.pin("none"),
            "wait": lambda: engine.wait("a-1", "local"),
            "create": lambda: self.save(engine, "a-2"),
            "on_complete": lambda: engine.on_complete("a-1", "local", lambda failure: None),
            "regions": lambda: engine._engine.regions(),
            "info": lambda: engine._engine.info(),
            "committed": lambda: engine._engine.committed("x"),
            "should_exit": engine.should_exit,
        }
        for name, call in calls.items():
            with self.subTest(name):
                self.assertIn(WORDS, " ".join(self.met(call)))
        self.assertEqual(self.met(lambda: (engine.level("a-1"), engine.counters), seconds=1.0), set())  # from any thread
        with engine.restart() as saved:
            self.assertRegex(saved.tag, "^a-")

    def test_regions_of_one_checkpoint_may_be_saved_and_loaded_by_several_threads(self):
        values = {f"x{number}": np.full(1 << 20, number) for number in range(4)}
        with self.engine.checkpoint("t") as checkpoint:
            errors = self.run_in_threads(*(lambda n=name: checkpoint.save(n, values[n]) for name in values))
        self.assertEqual(errors, [])
        loaded = {}
        with self.engine.restart() as saved:
            errors = self.run_in_threads(*(lambda n=name: loaded.update({n: saved.load(n)}) for name in values))
        self.assertEqual(errors, [])
        for name, value in values.items():
            np.testing.assert_array_equal(loaded[name], value)

    def test_threads_that_take_turns_need_not_be_the_same(self):
        def hand_over(tag):
            checkpoint = self.engine.checkpoint(tag)
            self.assertEqual(self.run_in_threads(checkpoint.__enter__), [])
            checkpoint.save("x", 1)
            self.assertEqual(self.run_in_threads(lambda: checkpoint.__exit__(None, None, None)), [])

        hand_over("one"), hand_over("two")
        with self.engine.restart() as saved:
            self.assertEqual(saved.tag, "two")

    def test_an_engine_that_is_let_go_or_left_in_a_call_ends_after_it(self):
        for how in ("deleted", "left", "finalized"):
            with self.subTest(how):
                begun, harmed = threading.Event(), []

                def work(checkpoint):
                    with checkpoint:
                        begun.set()
                        checkpoint.save("x", np.zeros(MANY * 4, np.uint8))

                self.engine = None
                engine = self.start()
                checkpoint = engine.checkpoint(how)

                def end():
                    nonlocal engine
                    begun.wait(30)
                    kept = engine
                    engine = None
                    if how == "left":
                        kept.__exit__(ValueError, ValueError(), None)
                    if how == "finalized":
                        try:
                            kept.finalize()
                        except kedge.BadState as error:
                            self.assertIn(WORDS, str(error))
                            harmed.append(error)

                errors = self.run_in_threads(lambda: work(checkpoint), end)
                del checkpoint
                self.assertTrue(all(isinstance(error, kedge.BadState) for error in errors), errors)
                self.assertEqual(len(errors), {"deleted": 0, "left": 1, "finalized": 1 - len(harmed)}[how], errors)
                with self.start() as after, after.restart() as saved:
                    self.assertEqual(saved.tag if saved else None, how if not errors else "deleted")


if __name__ == "__main__":
    unittest.main()
