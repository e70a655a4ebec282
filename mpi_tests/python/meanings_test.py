"""Arrays that mean more than their numbers, such as masked ones, are refused: they would come back as their numbers
alone. A second engine in a process does not continue from one that finished."""

import shutil
import unittest

import numpy as np
import place

import kedge
from kedge import communicators


class Unit(np.ndarray):
    """As astropy's and unyt's are."""


class Labelled:
    """As those of pandas and xarray are."""

    index = (1, 2, 3)

    def __array__(self, dtype=None, copy=None):
        return np.zeros(3)


class Meanings(unittest.TestCase):
    def setUp(self):
        self.path = self.enterContext(place.directory())
        self.engine = kedge.Engine(place.options(self.path), communicator=communicators.single_process())

    def saved_and_loaded(self, value):
        with self.engine.checkpoint("t") as c:
            c.save("x", value)
        with self.engine.restart() as r:
            return r.load("x")

    def test_arrays_that_mean_more_than_their_numbers_are_refused(self):
        masked = np.ma.masked_array([1.5, 1e20, 3.0], [0, 1, 0])
        for value, words in ((masked, "a masked array, of which Kedge would save only the values"), (np.zeros(3).view(Unit), "Unit"),
                             (np.matrix([[1.0]]), "matrix"), (Labelled(), "Labelled")):
            with self.subTest(words), self.assertRaisesRegex(kedge.InvalidArgument, words):
                with self.engine.checkpoint("t") as c:
                    c.save("x", value)
        self.saved_and_loaded(np.zeros(3))
        for out in (masked.copy(), np.zeros(3).view(Unit)):
            with self.engine.restart() as r, self.assertRaisesRegex(kedge.InvalidArgument, "load into a plain array"):
                r.load("x", out=out)

    def test_arrays_that_are_their_numbers_come_back(self):
        mapped = np.memmap(f"{self.path}/mapped", dtype=np.float64, mode="w+", shape=(3,))
        for value in (mapped, np.float32(2.5), [1, 2, 3], range(4), 7.5):
            np.testing.assert_array_equal(self.saved_and_loaded(value), value)


class Again(unittest.TestCase):
    """As in a loop that tries again, and in a sweep."""

    def setUp(self):
        self.path = self.enterContext(place.directory())

    def start(self):
        options = {**place.options(self.path), "open.chained": "false"}
        return kedge.Engine(options, communicator=communicators.single_process())

    def test_an_engine_that_an_exception_left_is_continued(self):
        with self.assertRaises(ZeroDivisionError), self.start() as engine:
            with engine.checkpoint("t") as c:
                c.save("x", 7)
            1 // 0
        del engine, c
        with self.start() as engine, engine.restart() as r:
            self.assertEqual(r.load("x"), 7)

    def test_one_that_has_finished_is_not(self):
        for ends in ("finalize", "del"):
            with self.subTest(ends):
                shutil.rmtree(self.path)
                engine = self.start()
                with engine.checkpoint("t") as c:
                    c.save("x", 7)
                if ends == "finalize":
                    engine.finalize()
                del engine, c
                with self.assertRaisesRegex(kedge.Mismatch, "already finished in this process"):
                    self.start()


if __name__ == "__main__":
    unittest.main()
