"""exiting.py DIRECTORY: what exits_test.py starts. The interpreter exits while the engine's thread is at work, and logs."""

import builtins
import sys
import time

import numpy as np
import place

import kedge


class Last:
    """Goes after all modules are gone, and takes longer than what is left of the flush."""

    def __init__(self, engine):
        self.engine = engine

    def __del__(self, sleep=time.sleep, tell=print):
        sleep(2)
        tell("the last of it", flush=True)


engine = kedge.Engine(
    place.options(sys.argv[1], **{"pipeline.mode": "background", "persistent.every": 1, "log.level": "debug",
                                  "persistent.bandwidth_limit": 8 << 20}), log=lambda _, line: print(line, flush=True))
# Its thread has logged before.
with engine.checkpoint("a") as c:
    c.save("x", np.zeros(1 << 17))
engine.wait("a", "persistent")
with engine.checkpoint("b") as c:
    c.save("x", np.zeros(1 << 20))
builtins.last = Last(engine)
