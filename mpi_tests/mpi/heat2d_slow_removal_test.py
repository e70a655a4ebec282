#!/usr/bin/python3
"""heat2d with a prefix where every removal takes long, and a long history of which most may go at once: no call times
out, the job ends well, and later starts remove the rest.

usage: heat2d_slow_removal_test.py HEAT2D MPIEXEC SLOW_REMOVAL   (SLOW_REMOVAL: slow_removal.c as a shared library;
                                                                  KEDGE_TEST_FULL=1: slower removals, longer timeouts)
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HEAT2D, MPIEXEC, SLOW_REMOVAL = sys.argv[1:4]
FULL = os.environ.get("KEDGE_TEST_FULL") == "1"
RANKS, HISTORY, KEEP = 4, 50, 5
LAUNCH_LIMIT_S = 60


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


class Job:
    def __init__(self, directory):
        # Its real name: the slow library compares names.
        self.directory = pathlib.Path(os.path.realpath(directory))
        self.directory.mkdir()
        self.prefix = self.directory / "prefix"

    def launch(self, steps, removal_s=None, every=1, **variables):
        """What was printed by a launch that ended well."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
            "KEDGE_STORE_PATH": f"{self.directory}/store", "KEDGE_PERSISTENT_PATH": str(self.prefix),
            "KEDGE_PERSISTENT_EVERY": "1"} | {f"KEDGE_{k.upper()}": str(v) for k, v in variables.items()}
        slow = []
        if removal_s is not None:
            slow = ["env", f"LD_PRELOAD={SLOW_REMOVAL}", f"SLOW_REMOVAL_BELOW={self.prefix}", f"SLOW_REMOVAL_S={removal_s}"]
        begin = time.monotonic()
        done = subprocess.run(
            ["timeout", "--kill-after=5", str(LAUNCH_LIMIT_S), MPIEXEC,
             "-n", str(RANKS), *slow, HEAT2D, "--steps", str(steps),
             "--every", str(every)],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(time.monotonic() - begin < LAUNCH_LIMIT_S, "a launch did not end within its time limit:", done.stdout)
        check(done.returncode == 0, done.stdout)
        return done.stdout

    def on_prefix(self):
        """(steps of the checkpoints there, oldest first, and how many directories hold no checkpoint any more)"""
        directories = sorted(self.prefix.glob("step-*"))
        steps = [int(one.name[5:11]) for one in directories if (one / "checkpoint.h5").exists()]
        return steps, len(directories) - len(steps)


def printed(output, key):
    return next((line[len(key) + 1:] for line in output.splitlines() if line.startswith(key + " ")), None)


def most_of_a_history_may_go(directory, removal_s, timeout_s):
    job = Job(directory)
    job.launch(HISTORY)
    check(job.on_prefix() == (list(range(1, HISTORY + 1)), 0), job.on_prefix())
    step = HISTORY
    for _ in range(2):  # the second start finds what the first left
        output = job.launch(step + 1, removal_s, persistent_keep=KEEP, comm_timeout_s=timeout_s)
        check((printed(output, "resumed") or "").startswith(f"step-{step:06} "), output)
        check(re.search(r"warning: remov.* from the prefix.* in [\d.]+ s", output), "it does not say how slow:", output)
        step += 1
        check(re.search(rf"committed step-{step:06} .* persistent, ", output), output)
        steps, halves = job.on_prefix()
        print(f"   removals of {removal_s} s: {len(steps)} checkpoints and {halves} halves left", flush=True)
        check(len(steps) + halves > KEEP, "all was removed: the removals are not slow")
        check(steps[-KEEP:] == list(range(step - KEEP + 1, step + 1)), "not the newest were kept:", steps)
    for _ in range(4):  # each goes on for about as long as a removal may take
        step += 1
        output = job.launch(step, persistent_keep=KEEP)
        if job.on_prefix() == (list(range(step - KEEP + 1, step + 1)), 0):
            return step, printed(output, "checksum")
    raise AssertionError(f"later starts did not remove the rest: {job.on_prefix()}\n{output}")


def main():
    with tempfile.TemporaryDirectory(prefix="kedge-slow-removal-") as name:
        directory = pathlib.Path(name)
        for removal_s, timeout_s in [(0.1, 3)] + ([(0.5, 6), (1, 12)] if FULL else []):
            steps, checksum = most_of_a_history_may_go(directory / f"slow-{removal_s}", removal_s, timeout_s)
            undisturbed = Job(directory / f"undisturbed-{removal_s}").launch(steps, every=0)
            check(checksum == printed(undisturbed, "checksum"), "the field differs from that of the undisturbed run")
            print(f"ok removals of {removal_s} s with a timeout of {timeout_s} s", flush=True)


if __name__ == "__main__":
    main()
