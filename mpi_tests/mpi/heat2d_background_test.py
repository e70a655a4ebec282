#!/usr/bin/python3
"""heat2d with pipeline.mode = background is killed at random moments, also between a commit and its protection or flush,
and loses a node now and then: the newest checkpoint of which the commit returned (or, without a node, the newest that
was protected) comes back, and the end is that of an undisturbed run.

usage: heat2d_background_test.py HEAT2D MPIEXEC [LEVEL THREAD_LEVEL]
           (KEDGE_TEST_FULL=1: 300 kills instead of 20; KEDGE_TEST_SEED=N: the same moments again)

LEVEL (funneled, serialized): that of MPI, forced upon the program by THREAD_LEVEL, which is thread_level.c as a shared
library. The background work then sends over TCP.
"""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HEAT2D, MPIEXEC = sys.argv[1:3]
LEVEL, THREAD_LEVEL = sys.argv[3:5] or (None, None)
KILLS = 300 if os.environ.get("KEDGE_TEST_FULL") == "1" else 20 if LEVEL is None else 8
SEED = int(os.environ.get("KEDGE_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
RANKS, STEPS, EVERY = 4, 400, 5
LAUNCH_LIMIT_S = 60
LOCAL = "is local; its other stages run"  # in the log, of each checkpoint


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


class Job:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.launches = 0
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
            "KEDGE_STORE_PATH": f"{directory}/store/{{node}}", "KEDGE_PERSISTENT_PATH": f"{directory}/prefix",
            "KEDGE_PERSISTENT_EVERY": "2", "KEDGE_PERSISTENT_KEEP": "3", "KEDGE_TEST_RANKS_PER_NODE": "1",
            "KEDGE_PIPELINE_MODE": "background", "KEDGE_LOG_LEVEL": "debug"}

    def launch(self):
        """The ranks write to files themselves: what the launcher forwards may be lost when they are killed."""
        self.launches += 1
        self.out, self.err = (self.directory / f"{name}-{self.launches}" for name in ("out", "err"))
        for file in (self.out, self.err):
            file.touch()
        level = [] if LEVEL is None else ["env", f"LD_PRELOAD={THREAD_LEVEL}", f"KEDGE_TEST_THREADS={LEVEL}"]
        ranks = [*level, "sh", "-c", 'out=$1 err=$2; shift 2; exec "$@" >>"$out" 2>>"$err"', "sh", str(self.out),
                 str(self.err), HEAT2D, "--steps", str(STEPS), "--every", str(EVERY)]
        return subprocess.Popen(
            ["timeout", "--kill-after=5", str(LAUNCH_LIMIT_S), MPIEXEC, "-n", str(RANKS), *ranks],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)

    def log(self):
        return self.err.read_text(errors="replace")

    def newest(self, pattern):
        """The step that the last line of this kind is about; 0 if there is none."""
        found = re.findall(pattern, self.log())
        return int(found[-1]) if found else 0

    def printed(self, key):
        lines = [line[len(key) + 1:] for line in self.out.read_text().splitlines() if line.startswith(key + " ")]
        return lines[0] if lines else None


def pids_of_ranks(job):
    """Of the processes that run heat2d for this job."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            mine = f"KEDGE_PERSISTENT_PATH={job.directory}/prefix".encode() in (entry / "environ").read_bytes()
        except (OSError, ValueError):
            continue
        if mine and words[0] == HEAT2D.encode():
            found.append(int(entry.name))
    return found


def kill_once(job, choose):
    """Kills one rank, or all, at a random moment; what the next launch must have at least."""
    launched = job.launch()
    wanted = choose.randrange(1, 12)  # checkpoints until then
    deadline = time.monotonic() + LAUNCH_LIMIT_S
    while launched.poll() is None and len(re.findall(LOCAL, job.log())) < wanted:
        check(time.monotonic() < deadline, "no checkpoint was made:", job.log())
        time.sleep(0.002)
    time.sleep(choose.random() * 0.02)
    ranks = pids_of_ranks(job)
    for pid in ranks if choose.random() < 0.5 else ranks[:1]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    launched.wait()
    while pids_of_ranks(job):
        time.sleep(0.01)
    return launched.returncode


def main():
    print("seed", SEED)
    choose = random.Random(SEED)
    with tempfile.TemporaryDirectory(prefix="kedge-background-") as directory:
        undisturbed = pathlib.Path(directory) / "undisturbed"
        undisturbed.mkdir()
        job = Job(undisturbed)
        check(job.launch().wait() == 0, job.log())
        wanted = job.printed("checksum")
        check(wanted, "no checksum was printed")
        check("protected (xor) and persistent, blocked" in job.log(), job.log())
        check(("background work sends over TCP" in job.log()) == (LEVEL is not None), job.log())

        disturbed = pathlib.Path(directory) / "disturbed"
        disturbed.mkdir()
        job, least, kills, lost, ends, protected = Job(disturbed), 0, 0, 0, 0, 0
        while kills < KILLS:
            code = kill_once(job, choose)
            resumed = job.newest(r"opened step-(\d+)")
            check(resumed >= least, "resumed", resumed, "and at least", least, "was there:", job.log())
            if code == 0:  # it had ended before
                check(job.printed("checksum") == wanted, "another result:", job.log())
                ends += 1
                check(ends <= KILLS, "the job was seldom killed before its end:", job.log())
                for name in ("store", "prefix"):
                    shutil.rmtree(disturbed / name)
                least = protected = 0
                continue
            kills += 1
            least = max(least, job.newest(rf"step-(\d+) {LOCAL}"))
            # One that was opened is protected again by the worker, which may have been killed before.
            protected = max(protected, job.newest(r"committed step-(\d+) .*, protected \("),
                            job.newest(r"step-(\d+) is protected again"))
            if choose.random() < 0.3 and protected:
                shutil.rmtree(disturbed / "store" / f"node{choose.randrange(RANKS)}", ignore_errors=True)
                least, protected = min(least, protected), job.newest(r"committed step-(\d+) .* persistent")
                lost += 1
        check(job.launch().wait() == 0, job.log())
        check(job.newest(r"opened step-(\d+)") >= least, job.log())
        check(job.printed("checksum") == wanted, "another result:", job.log())
        print(kills, "kills,", lost, "nodes lost,", ends, "ends in between")


main()
