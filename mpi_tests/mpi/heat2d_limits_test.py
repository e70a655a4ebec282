#!/usr/bin/python3
"""heat2d under limits on files, ulimit -f and -n, from tiny ones to those that suffice, on one rank, on all, or on mpirun,
too: it comes to its end or says in words what to raise, and without the limit it goes on from the newest checkpoint.

usage: heat2d_limits_test.py HEAT2D MPIEXEC   (KEDGE_TEST_FULL=1: many more limits, with and without redundancy)

Open MPI's shared memory is files, too: with ulimit -f it does without. What it cannot start under is not judged.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HEAT2D, MPIEXEC = sys.argv[1:3]
FULL = os.environ.get("KEDGE_TEST_FULL") == "1"
RANKS, EVERY = 4, 10
LAUNCH_LIMIT_S = 30
DIED = re.compile(r"process received signal|exited on signal|terminate called|core dumped", re.I)


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


class Job:
    """One run, whose steps go on from launch to launch."""

    def __init__(self, directory, is_protected):
        self.directory, self.step, self.newest = directory, 0, None
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
            "PMIX_MCA_gds": "hash",  # not files
            "KEDGE_STORE_PATH": f"{directory}/store/{{node}}", "KEDGE_PERSISTENT_PATH": f"{directory}/prefix",
            "KEDGE_PERSISTENT_EVERY": "1" if is_protected else "0",
            "KEDGE_TEST_RANKS_PER_NODE": "1" if is_protected else "0"}

    def launch(self, steps, limit=None, limited=None, every=EVERY):
        """(exit code, what was printed) so many steps later, with a limit such as "-n 20"."""
        self.step += steps
        program = [HEAT2D, "--steps", str(self.step), "--every", str(every)]
        under_limit = ["bash", "-c", f'ulimit {limit}; exec "$@"', "bash"]
        ranks = {None: ["-n", str(RANKS), *program], "mpirun": ["-n", str(RANKS), *program],
                 "all ranks": ["-n", str(RANKS), *under_limit, *program],
                 "one rank": ["-n", "1", *under_limit, *program, ":", "-n", str(RANKS - 1), *program]}[limited]
        without_files = ["--mca", "btl", "self,tcp"] if "-f" in (limit or "") else []
        begin = time.monotonic()
        done = subprocess.run(
            ["timeout", "--kill-after=5", str(LAUNCH_LIMIT_S), *(under_limit if limited == "mpirun" else []), MPIEXEC,
             *without_files, *ranks],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(time.monotonic() - begin < LAUNCH_LIMIT_S, limit, "a launch did not end in time:", done.stdout)
        committed = [int(step) for step in re.findall(r"committed step-(\d+) \(generation", done.stdout)]
        self.newest = max(committed, default=self.newest)
        return done.returncode, done.stdout


def printed(output, key):
    return next((line[len(key) + 1:] for line in output.splitlines() if line.startswith(key + " ")), None)


def goes_on(job):
    """Without a limit; returns the checksum."""
    wanted = job.newest
    code, output = job.launch(EVERY)
    check(code == 0, output)
    resumed = re.match(r"step-\d+ (\d+) in place ", printed(output, "resumed") or "")
    check((int(resumed[1]) if resumed else None) == wanted, "newest was", wanted, "but:", output)
    return printed(output, "checksum")


def sweep(job, option, limits, limited):
    """How each limit ended, up to the first under which MPI itself does not start."""
    ends = {}
    for limit in limits:
        code, output = job.launch(2 * EVERY, f"{option} {limit}", limited)
        if "[kedge]" not in output and "heat2d: " not in output:
            check(code != 0, output)
            ends[limit] = "MPI does not start"
            job.step -= 2 * EVERY
            break
        check(not DIED.search(output), option, limit, "a signal:", output)
        words = re.search(rf"^heat2d: no_space on rank \d+: (.*)raise the limit \(ulimit {option}\)", output, re.M)
        check(code == 0 or (code == 75 and words), option, limit, "ended with", code, output)
        check(code != 0 or job.newest == job.step, "the last step is missing:", output)
        check("/proc" not in output, output)
        ends[limit] = "its end" if code == 0 else words[1]
        if code != 0:
            goes_on(job)
    for limit, end in ends.items():
        print(f"   {option} {limit} on {limited}: {end}", flush=True)
    check("its end" in ends.values(), "no limit sufficed:", ends)
    return set(ends.values()) - {"its end", "MPI does not start"}


def sweeps():
    """(name, where, whether there are redundancy and flush, [(option, limits, who has them)])"""
    disk, memory = tempfile.gettempdir(), "/dev/shm"
    if not FULL:
        return [("disk", disk, True, [("-f", (500, 300), "mpirun"), ("-n", (64, 25, 22), "one rank")]),
                ("memory", memory, True, [("-f", (0, 500), "all ranks")])]
    sizes, numbers = (0, 16, 100, 300, 407, 408, 409, 500, 408, 100), (64, *range(30, 16, -1))
    series = [("-f", (500, 300, 100), "mpirun"), ("-f", sizes, "one rank"), ("-f", sizes, "all ranks"),
              ("-n", numbers, "one rank"), ("-n", numbers, "all ranks")]
    return [(f"{name}, {'protected' if is_protected else 'single'}", place, is_protected, series)
            for name, place in (("disk", disk), ("memory", memory)) for is_protected in (True, False)]


def main():
    for name, place, is_protected, series in sweeps():
        if not os.access(place, os.W_OK):
            print("not tried:", place, "cannot be written to", flush=True)
            continue
        directory = pathlib.Path(tempfile.mkdtemp(prefix="kedge-limits-", dir=place))
        try:
            job = Job(directory / name, is_protected)
            too_small = {option: set() for option, _, _ in series}
            for option, limits, limited in series:
                too_small[option] |= sweep(job, option, limits, limited)
            # Not each time: files that have their size already need no more.
            check(all(too_small.values()), "no limit was too small:", too_small)
            checksum = goes_on(job)
            undisturbed = Job(directory / "undisturbed", False)
            code, output = undisturbed.launch(job.step, every=0)
            check(code == 0 and printed(output, "checksum") == checksum, "the field differs:", output)
        finally:
            shutil.rmtree(directory)
        print("ok", name, flush=True)


if __name__ == "__main__":
    main()
