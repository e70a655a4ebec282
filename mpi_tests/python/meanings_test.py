"""Arrays that mean more than their numbers, such as masked ones, are refused: they would come back as their numbers alone."""

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
        for value, words in ((masked, "a masked array: save its data and its mask"), (np.zeros(3).view(Unit), "Unit"),
                             (np.matrix([[1.0]]), "matrix"), (Labelled(), "Labelled")):
            with self.subTest(words), self.assertRaisesRegex(kedge.InvalidArgument, words):
                with self.engine.checkpoint("t") as c:
                    c.save("x", value)
        self.saved_and_loaded(np.zeros(3))
        for out in (masked.copy(), np.zeros(3).view(Unit)):
            with self.engine.restart() as r, self.assertRaisesRegex(kedge.InvalidArgument, "as two arrays|the numbers alone"):
                r.load("x", out=out)

    def test_arrays_that_are_their_numbers_come_back(self):
        mapped = np.memmap(f"{self.path}/mapped", dtype=np.float64, mode="w+", shape=(3,))
        for value in (mapped, np.float32(2.5), [1, 2, 3], range(4), 7.5):
            np.testing.assert_array_equal(self.saved_and_loaded(value), value)


if __name__ == "__main__":
    unittest.main()
