#!/usr/bin/python3
"""files_c, a C program with restart files of its own, is killed and must end as if nothing had happened; its files,
extracted from the checkpoint, are to the last bit those that it writes itself.

usage: files_c_kill_test.py FILES_C MPIEXEC KEDGE     (KEDGE_TEST_FULL, KEDGE_TEST_SEED as for heat2d_kill_test.py)
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import heat2d_kill_test as heat2d
from heat2d_kill_test import Job, check

KEDGE = sys.argv[3]
WALKERS = ("--walkers", "60000")


def files_below(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def extract(job, *words):
    output = job.directory / "extracted"
    done = subprocess.run([KEDGE, "extract", *words, "--prefix", str(job.directory / "prefix"), "-o", str(output)],
                          capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, done.stdout, done.stderr)
    return files_below(output)


def own_files(job, ranks):
    directory = job.directory / "own"
    for name in ("restart", *(f"rank-{rank}" for rank in range(ranks))):
        (directory / name).mkdir(parents=True)
    return directory


def test_extracted(directory):
    ranks, arguments = 3, (*WALKERS, "--steps", "20", "--every", "4")
    reference = Job(directory / "reference", *arguments, ranks=ranks, persistent_every=1)
    own = own_files(reference, ranks)
    check(reference.run("--files", str(own)) == 0, reference.log()[-2000:])
    expected = files_below(own)
    check(sorted(expected) == ["rank-0/history.csv", "rank-1/history.csv", "rank-2/history.csv", "restart/restart.0",
                               "restart/restart.1", "restart/restart.2", "restart/restart.base"], sorted(expected))
    check(extract(reference, "latest") == expected, "the files extracted are not those that were written")

    job = Job(directory / "killed", *arguments, ranks=ranks, persistent_every=1, persistent_plain_routed="true")
    check(job.run("--die-at", "14", "--die-rank", "1") != 0, "nobody died")
    check(list((job.directory / "store").glob("*/routed-*")) == [], "routed files of a commit stay")
    check(job.run() == 0, job.log()[-2000:])
    check(job.result() == (12, 8, reference.result()[2]), job.result(), reference.result())
    check(extract(job, "step-000020") == expected, "the files differ from those of the undisturbed run")
    check(list((job.directory / "store").glob("*/routed-*")) == [], "routed files stay")

    plain, = (job.directory / "prefix").glob("step-000020.*/files/0")
    for rank in range(ranks):
        check((plain / f"rank-{rank}/restart/restart.{rank}").read_bytes() == expected[f"restart/restart.{rank}"], rank)
        check((plain / f"rank-{rank}/history.csv").read_bytes() == expected[f"rank-{rank}/history.csv"], rank)


def test_damage(directory):
    """A routed file that is damaged is never read: the checkpoint before it is taken."""
    job = Job(directory / "damage", *WALKERS, "--steps", "10", "--every", "2", store_keep=2, open_verify="headers")
    check(job.run() == 0, job.log()[-2000:])
    newest = [file for file in (job.directory / "store").glob("*/rank-*.h5")
              if b"step-000010" in file.read_bytes()[:4096]]
    check(len(newest) == 4, newest)
    heat2d.flip(newest[2], newest[2].stat().st_size // 2)
    check(job.run("--steps", "14") == 0, job.log()[-2000:])
    check(job.result()[:2] == (8, 6), job.result())


def main():
    print("seed", heat2d.SEED, flush=True)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="kedge-files-c-", dir=memory) as name:
        for test in (test_extracted, test_damage):
            begin = time.monotonic()
            test(pathlib.Path(name))
            print(f"ok {test.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
        heat2d.test_kills(pathlib.Path(name), *WALKERS)


main()
