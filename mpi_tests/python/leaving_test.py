"""leaving_test.py [LAUNCHER]: every way out of a program, on one rank and on all: nobody waits for comm.timeout_s (120
s here), over MPI the others get the reason in their next call, and the next start goes on. Without a launcher of MPI,
one process: a notebook, and threads at the end of the interpreter."""

import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import numpy as np
import place

import kedge
from kedge import communicators

PROGRAM = Path(__file__).with_name("leaving.py")
LAUNCHER = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith(("-", "Cells", "Leaving")) else None
#: What the other rank is told in its next call.
HEARD = {
    "exit 1": r"rank 0: heard after [0-4] s: .*rank 1 has left its engine \(it exits with status 1\)",
    "logged": r"rank 0: heard after [0-4] s: .*rank 1 has left its engine \(LookupError: that main logs\)",
    "interrupt": r"rank 0: heard after [0-4] s: .*rank 1 has left its engine \(KeyboardInterrupt",
    "error": r"rank 0: heard after [0-4] s: .*rank 1 has left its engine \(ZeroDivisionError: a slip\)",
    "exit": "different collective calls|rank 0: heard",  # it waits to end in order, and meets another call
}
AT_ONCE_S = 40.0  # far below comm.timeout_s, and enough for a start of two interpreters on a machine at work

THREAD = """
import sys, threading, time
import numpy as np, place, kedge

engine = kedge.Engine(place.options(sys.argv[1], **{"open.chained": "false"}),
                      log=(lambda level, line: None) if "log" in sys.argv else None)
with engine.restart() as saved:
    first = saved.attributes["step"] if saved else 0
    print("from", first, flush=True)


def save():
    number, x = first, np.ones(200000)
    while True:
        number += 1
        with engine.checkpoint(f"step-{number}", {"step": number}) as checkpoint:
            checkpoint.save("x", x)


class Large:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)


large = Large()
threading.Thread(target=save, daemon=True).start()
time.sleep(0.3)
print("ends", flush=True)
"""


def run(*command, **environment):
    begun = time.monotonic()
    done = subprocess.run(command, text=True, timeout=100, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout, time.monotonic() - begun


class Leaving(unittest.TestCase):
    @unittest.skipUnless(LAUNCHER, "needs a launcher of MPI")
    def test_every_way_out_under_mpi(self):
        ends_well = ("exit", "exit 0", "logged")
        ways = [("block", how, who) for how in ("exit", "exit 1", "logged", "interrupt", "os._exit", "error") for who in ("one", "all")]
        ways += [(where, how, "one") for where in ("free", "checkpoint") for how in ("exit", "exit 1", "logged")]
        ways += [("away", how, "one") for how in ("exit", "exit 1", "logged")]
        ways += [("free", "exit 0", "all"), ("checkpoint", "exit", "all"), ("block", "exit words", "all")]
        for where, how, who in ways:
            with self.subTest(where=where, how=how, who=who), place.directory() as path:
                launch = (LAUNCHER, "-n", "2", sys.executable, str(PROGRAM))
                code, printed, seconds = run(*launch, where, how, who, LEAVING=path)
                self.assertLess(seconds, AT_ONCE_S, printed)
                self.assertEqual(code == 0, who == "all" and how in ends_well, printed)
                if (where, who) == ("block", "one") and how != "os._exit":
                    self.assertRegex(printed, HEARD[how])
                if who == "all":
                    self.assertNotIn("heard", printed)  # nobody asks anything of one who has left
                code, printed, _ = run(*launch, "block", "nothing", "all", LEAVING=path)
                # Another launch goes on from the checkpoint, however the first one was left.
                self.assertEqual((code, printed.count("from 2")), (0, 2), printed)

    @unittest.skipUnless(place.has("torch") and LAUNCHER is None, "once is enough")
    def test_one_rank_of_torchrun(self):
        for how in ("exit", "exit 1"):
            with self.subTest(how), place.directory() as path:
                launch = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(PROGRAM))
                code, printed, seconds = run(*launch, "block", how, "one", "torch", LEAVING=path, OMP_NUM_THREADS="1")
                self.assertLess(seconds, AT_ONCE_S, printed)
                self.assertNotEqual(code, 0, printed)
                code, printed, _ = run(*launch, "block", "nothing", "all", "torch", LEAVING=path, OMP_NUM_THREADS="1")
                self.assertEqual((code, printed.count("from 2")), (0, 2), printed)

    @unittest.skipIf(LAUNCHER, "once is enough")
    def test_a_daemon_thread_that_saves_while_the_interpreter_ends(self):
        for log in ((), ("log",)):
            with place.directory() as path:
                for number in range(4):
                    code, printed, _ = run(sys.executable, "-c", THREAD, path, *log, PYTHONPATH=os.pathsep.join(sys.path))
                    self.assertEqual((code, "ends" in printed), (0, True), printed)
                    self.assertEqual("from 0" in printed, number == 0, printed)


    @unittest.skipIf(LAUNCHER, "once is enough")
    def test_a_forked_child_ends_by_itself(self):
        text = "import kedge.communicators as c\nc._LAST_CALLS_S = 80.0\n" + THREAD
        text = text.replace('print("ends"', 'child = __import__("os").fork()\nprint("ends"')
        with place.directory() as path:
            code, printed, seconds = run(sys.executable, "-W", "ignore", "-c", text, path, PYTHONPATH=os.pathsep.join(sys.path))
        self.assertEqual((code, printed.count("ends")), (0, 2), printed)
        self.assertLess(seconds, AT_ONCE_S)  # the calls that its end would wait for are the parent's


@unittest.skipIf(LAUNCHER, "once is enough")
class Cells(unittest.TestCase):
    """Of a notebook, which keeps the traceback of what failed, and the names that a cell has made."""

    def setUp(self):
        self.path = self.enterContext(place.directory())

    def start(self, **more):
        options = place.options(self.path, **{"open.chained": "false", "store.lock_timeout_s": 0.5, "persistent.every": 1, **more})
        return kedge.Engine(options, communicator=communicators.single_process())

    def cell(self, fails=None, where="block"):
        with self.start() as engine:
            self.kept = engine
            with engine.restart() as saved:
                first = saved.attributes["step"] if saved else 0
            if fails is not None and where == "restart":
                with engine.restart() as self.kept_too:
                    raise fails
            with engine.checkpoint(f"step-{first + 1}", {"step": first + 1}) as checkpoint:
                self.kept_too = checkpoint
                checkpoint.save("x", np.zeros(1000))
                if fails is not None and where == "checkpoint":
                    raise fails
            if fails is not None:
                raise fails
        return first

    def test_a_cell_that_failed_can_be_run_again(self):
        kept, steps = [], 0
        for where in ("block", "checkpoint", "restart"):
            for error in (NameError("slip"), KeyboardInterrupt(), SystemExit(1), SystemExit("words")):
                with self.subTest(where, error=type(error).__name__):
                    try:
                        self.cell(error, where)
                    except BaseException as raised:
                        kept.append((raised, self.kept, self.kept_too))
                    steps += where == "block"
                    if where == "block":
                        self.assertRaisesRegex(kedge.BadState, "this engine has ended.*make another", self.kept.level, "a")
                        self.assertRaises(kedge.BadState, self.kept.finalize)
                        self.assertRaises(kedge.BadState, self.kept_too.save, "x", 1)
                    with self.assertRaises(ZeroDivisionError):  # or it would be finished, and not be begun again
                        with self.start() as engine, engine.restart() as saved:
                            self.assertEqual(saved.attributes["step"] if saved else 0, steps)
                            1 // 0
        self.assertEqual(self.cell(), steps)
        with self.assertRaisesRegex(kedge.Mismatch, "already finished in this process"):
            self.start()

    def test_an_exit_in_order_is_an_end(self):
        for code in (None, 0):
            with self.subTest(code), place.directory() as self.path:
                with self.assertRaises(SystemExit):
                    self.cell(SystemExit(code))
                with self.assertRaisesRegex(kedge.Mismatch, "already finished in this process"):
                    self.start()

    def test_an_interrupt_in_a_checkpoint_leaves_an_engine_that_goes_on(self):
        engine = self.start()
        for _ in range(2):
            with self.assertRaises(KeyboardInterrupt), engine.checkpoint("t") as checkpoint:
                checkpoint.save("x", 1)
                signal.raise_signal(signal.SIGINT)
            with self.assertRaises(KeyboardInterrupt), engine.restart():
                signal.raise_signal(signal.SIGINT)
        with engine.checkpoint("u") as checkpoint:
            checkpoint.save("x", 2)
        with engine.restart() as saved:
            self.assertEqual(saved.tag, "u")


if __name__ == "__main__":
    unittest.main()
