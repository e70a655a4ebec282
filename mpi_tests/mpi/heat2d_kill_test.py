#!/usr/bin/python3
"""heat2d is killed by another process at random moments, started again, and must end as if nothing had happened.

usage: heat2d_kill_test.py HEAT2D MPIEXEC      (KEDGE_TEST_FULL=1: ten kills, three of them between create and commit;
                                                KEDGE_TEST_SEED=N: the same moments again)
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
PROGRAM = pathlib.Path(HEAT2D).name  # heat_c_kill_test.py uses this file for its own
FULL = os.environ.get("KEDGE_TEST_FULL") == "1"
SEED = int(os.environ.get("KEDGE_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
STEPS = 40
LAUNCH_LIMIT_S = 60


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


class Job:
    """One run of heat2d with a store and a prefix of its own; may be launched several times."""

    def __init__(self, directory, *arguments, ranks=4, **variables):
        self.directory, self.arguments, self.ranks, self.launches = pathlib.Path(directory), arguments, ranks, 0
        self.directory.mkdir(parents=True)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
            "KEDGE_STORE_PATH": f"{directory}/store", "KEDGE_PERSISTENT_PATH": f"{directory}/prefix",
            "KEDGE_PERSISTENT_EVERY": "0",  # what is tried here are the stores
            "KEDGE_PIPELINE_MODE": "inline",  # the line of a checkpoint is there before the next one begins
            "KEDGE_LOG_LEVEL": "debug"} | {f"KEDGE_{k.upper()}": str(v) for k, v in variables.items()}

    def launch(self, *more):
        """The ranks write to files themselves: what mpirun forwards may be lost when they are killed."""
        self.launches += 1
        self.out, self.err = (self.directory / f"{name}-{self.launches}" for name in ("out", "err"))
        for file in (self.out, self.err):
            file.touch()
        ranks = ["sh", "-c", 'out=$1 err=$2; shift 2; exec "$@" >>"$out" 2>>"$err"', "sh", str(self.out),
                 str(self.err), HEAT2D, *self.arguments, *more]
        return subprocess.Popen(
            ["timeout", "--kill-after=5", str(LAUNCH_LIMIT_S), MPIEXEC, "-n", str(self.ranks), *ranks],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)

    def run(self, *more):
        begin = time.monotonic()
        code = self.launch(*more).wait()
        check(time.monotonic() - begin < LAUNCH_LIMIT_S, "a launch did not end within its time limit")
        return code

    def printed(self, key):
        lines = [line[len(key) + 1:] for line in self.out.read_text().splitlines() if line.startswith(key + " ")]
        check(len(lines) <= 1, key, "was printed by", len(lines), "ranks")
        return lines[0] if lines else None

    def log(self):
        return self.err.read_text(errors="replace")

    def steps_logged(self, word):
        return [int(step) for step in re.findall(rf"{word} step-(\d+) \(generation", self.log())]

    def result(self):
        """(resumed step or None, steps computed, checksum)"""
        resumed = self.printed("resumed")
        computed, checksum = self.printed("steps computed"), self.printed("checksum")
        check(computed is not None and checksum is not None, PROGRAM, "did not come to its end:", self.log()[-2000:])
        if resumed is None:
            return None, int(computed), checksum
        tag, step, rest = re.fullmatch(r"(step-\d+) (\d+) (in place \d+)", resumed).groups()
        check(tag == f"step-{int(step):06}", "the tag", tag, "is not that of the step that was loaded,", step)
        return int(step), int(computed), checksum


def processes_of(launcher):
    """The program's processes below this launcher, and no others."""
    parents, found = {}, []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, fields = re.fullmatch(r"\d+ \((.*)\) (.*)", (entry / "stat").read_text(), re.S).groups()
        except (OSError, AttributeError):
            continue  # gone meanwhile
        parents[int(entry.name)] = (int(fields.split()[1]), name)
    for pid, (_, name) in parents.items():
        above = pid
        while name == PROGRAM and above in parents and above != launcher:
            above = parents[above][0]
        if name == PROGRAM and above == launcher:
            found.append(pid)
    return found


def kill_at_random(job, moment, mid_checkpoint):
    """SIGKILL to all ranks after a random number of commits; True if the log ends between create and commit, None if
    the program came to its end first, which a busy machine may let happen."""
    launched = job.launch()
    wanted, pause_s = moment.randrange(1, STEPS * 3 // 4), moment.uniform(0, 0.03)
    pids, deadline = [], time.monotonic() + LAUNCH_LIMIT_S
    while launched.poll() is None and time.monotonic() < deadline:
        committed = len(job.steps_logged("committed"))
        if len(pids) < job.ranks:
            pids = processes_of(launched.pid)
        elif committed >= wanted and not (mid_checkpoint and len(job.steps_logged("began")) == committed):
            break
        time.sleep(0.001)
    if not mid_checkpoint:
        time.sleep(pause_s)
    if launched.poll() is not None:
        return None
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    check(launched.wait() != 0, "the launcher did not notice that its ranks were killed")
    return len(job.steps_logged("began")) > len(job.steps_logged("committed"))


def test_kills(directory, *plate):
    undisturbed = Job(directory / "undisturbed", *plate, "--steps", str(STEPS), "--every", "1")
    check(undisturbed.run() == 0, undisturbed.log()[-2000:])
    _, computed, checksum = undisturbed.result()
    check(computed == STEPS, computed)
    moment, kills, between = random.Random(SEED), (10 if FULL else 4), 0
    attempt = missed = 0
    while attempt < kills or (FULL and between < 3 and attempt < 3 * kills):
        job = Job(directory / f"kill-{attempt}", *plate, "--steps", str(STEPS), "--every", "1")
        in_flight = kill_at_random(job, moment, mid_checkpoint=attempt % 2 == 1)
        if in_flight is None:
            missed += 1
            check(missed <= kills, PROGRAM, "ends before it can be killed; let it compute more steps")
            shutil.rmtree(job.directory)
            continue
        between += in_flight
        committed, began = max(job.steps_logged("committed"), default=0), max(job.steps_logged("began"), default=0)
        check(job.run() == 0, job.log()[-2000:])
        resumed, computed, field = job.result()
        print(f"kill {attempt}: newest commit {committed}, began {began}, resumed {resumed}, computed {computed}")
        check((resumed or 0) in (committed, began), "resumed", resumed, "after commit of", committed, "and", began)
        check(computed == STEPS - (resumed or 0), "computed", computed, "steps after", resumed)
        check(field == checksum, "the field differs from that of the undisturbed run")
        shutil.rmtree(job.directory)
        attempt += 1
    print(f"{attempt} kills, {between} of them between create and commit")
    check(not FULL or between >= 3, "too few kills fell between create and commit")


def test_rank_counts(directory, _picture):
    checksums = set()
    for ranks in (1, 2, 4, 8):
        job = Job(directory / f"ranks-{ranks}", "--steps", "20", "--every", "5", ranks=ranks)
        check(job.run() == 0, job.log()[-2000:])
        checksums.add(job.result()[2])
    check(len(checksums) == 1, "checksums differ between rank counts:", checksums)


def test_die_options(directory, _picture):
    reference = Job(directory / "reference", "--steps", "20", "--every", "4")
    check(reference.run() == 0, reference.log()[-2000:])
    for name, die, ranks_per_node in (("rank", ("--die-rank", "3"), 0), ("node", ("--die-node", "1"), 2)):
        job = Job(directory / f"die-{name}", "--steps", "20", "--every", "4", test_ranks_per_node=ranks_per_node,
                  store_path=f"{directory}/die-{name}/{{node}}", persistent_path=f"{directory}/die-{name}/prefix")
        check(job.run("--die-at", "14", *die) != 0, "nobody died")
        check(job.steps_logged("committed")[-1] == 12, job.log()[-2000:])
        check(job.run() == 0, job.log()[-2000:])
        check(job.result() == (12, 8, reference.result()[2]), job.result(), reference.result())


def flip(file, offset):
    content = bytearray(file.read_bytes())
    content[offset] ^= 1
    file.write_bytes(content)


def test_damage(directory, _picture):
    job = Job(directory / "damage", "--steps", "10", "--every", "2", store_keep=2)
    check(job.run() == 0, job.log()[-2000:])
    containers = sorted((directory / "damage/store").glob("*/rank-*.h5"))
    newest = [file for file in containers
              if file.name.startswith("rank-2.") and b"step-000010" in file.read_bytes()[:4096]]
    check(len(newest) == 1, containers)
    flip(newest[0], newest[0].stat().st_size // 2)
    check(job.run("--steps", "14") == 0, job.log()[-2000:])
    check(job.result()[:2] == (8, 6), job.result())
    check(re.search(r"skipped step-000010 .*rank 2 is damaged", job.log()), "it did not say why:", job.log()[-2000:])

    for file in (directory / "damage/store").glob("*/rank-*.h5"):
        flip(file, file.stat().st_size // 2)
    check(job.run("--steps", "20") != 0, "it began although every container is damaged")
    check("unrecoverable" in job.log(), job.log()[-2000:])
    check("damaged" in job.log(), "it did not say why:", job.log()[-2000:])
    check(job.printed("steps") is None and job.printed("resumed") is None, "it began from zero")


def main():
    print("seed", SEED, flush=True)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="kedge-heat2d-", dir=memory) as name:
        directory = pathlib.Path(name)
        picture, width = directory / "picture.pgm", 1536
        row = bytes((x * x // 64) % 256 for x in range(width))
        picture.write_bytes(f"P5\n{width} {width}\n255\n".encode() + b"".join(row[y:] + row[:y] for y in range(width)))
        for test in (test_rank_counts, test_die_options, test_damage, test_kills):
            begin = time.monotonic()
            test(directory, str(picture))
            print(f"ok {test.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
