"""leaving.py WHERE HOW WHO [torch]: what leaving_test.py starts on several ranks. Those ranks that WHO names (one: rank 1; all)
leave the program after a checkpoint, in the way HOW; the others want another one.

WHERE: block: in `with kedge.Engine()`; checkpoint: in that of a checkpoint within it; free: without a with statement;
away: in that of the engine, while the others do something else for longer than anybody should wait.
"""

import os
import signal
import sys
import time

where, how, who = sys.argv[1:4]
if "torch" in sys.argv:
    import torch.distributed as dist

    dist.init_process_group("gloo")

import numpy as np
import place

import kedge


def leave():
    if how == "error":
        raise ZeroDivisionError("a slip")
    if how == "logged":
        raise LookupError("that main logs")
    if how == "interrupt":
        signal.raise_signal(signal.SIGINT)
    if how == "os._exit":
        os._exit(3)
    sys.exit(*{"exit": [], "exit 0": [0], "exit 1": [1], "exit words": ["words"]}[how])


def save(engine, number, leaves=False):
    with engine.checkpoint(f"step-{number}", {"step": number}) as checkpoint:
        checkpoint.save("x", np.full(10, float(number)))
        if leaves and where == "checkpoint":
            leave()


def work(engine):
    with engine.restart() as saved:
        first = saved.attributes["step"] + 1 if saved else 1
    print(f"rank {engine.rank}: from {first}", flush=True)
    leaves = how != "nothing" and (who == "all" or engine.rank == 1)
    save(engine, first)
    if leaves and where != "checkpoint":
        leave()
    if where == "away":
        time.sleep(90)
    begun = time.monotonic()
    try:
        save(engine, first + 1, leaves)
    except kedge.RankFailed as error:
        print(f"rank {engine.rank}: heard after {time.monotonic() - begun:.0f} s: {error}", flush=True)
        raise
    print(f"rank {engine.rank}: to the end", flush=True)


def main():
    options = place.options(os.environ["LEAVING"], **{"open.chained": "false", "comm.timeout_s": 120, "persistent.every": 100,
                                                     "log.level": "off"})
    if where == "free":
        engine = kedge.Engine(options)
        work(engine)
        engine.finalize()
    else:
        with kedge.Engine(options) as engine:
            work(engine)


try:
    main()
except LookupError as error:
    print("logged:", error, flush=True)
