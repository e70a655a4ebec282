"""Outputs: commits that no restart opens."""

import unittest

import numpy as np
import place

import kedge
from kedge import communicators


class Outputs(unittest.TestCase):
    def setUp(self):
        path = self.enterContext(place.directory())
        self.engine = kedge.Engine(place.options(path, **{"pipeline.mode": "inline"}), communicator=communicators.single_process())

    def test_an_output_is_flushed_and_found_by_its_tag_alone(self):
        with self.engine.checkpoint("step-1") as c:
            c.save("x", 1)
        with self.engine.output("plot-1", {"step": 1}) as c:
            c.save("picture", np.ones(3))
        self.assertEqual(self.engine.level("plot-1"), kedge.Level.PERSISTENT)
        with self.engine.restart() as r:
            self.assertEqual((r.tag, r.info.is_output), ("step-1", False))
        with self.engine.restart("plot-1") as r:
            self.assertEqual((r.tag, r.info.is_output, r.attributes), ("plot-1", True, {"step": 1}))


if __name__ == "__main__":
    unittest.main()
