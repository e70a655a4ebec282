"""A program that exits without `finalize` while the engine is at work behind it: no crash, and the next start has all."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import place

import kedge

with place.directory() as path:
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("exiting.py")), path], text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ)
    assert done.returncode == 0 and "b is local; its other stages run in the background" in done.stdout, done
    assert done.stdout.endswith("the last of it\n"), done  # and nothing that the thread logs goes to an interpreter that exits
    with kedge.Engine(place.options(path)).restart() as saved:
        assert saved.info.tag == "b", saved.info
        np.testing.assert_array_equal(saved.load("x"), np.zeros(1 << 20))
