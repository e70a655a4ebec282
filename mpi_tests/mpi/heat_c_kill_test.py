#!/usr/bin/python3
"""heat_c, which knows Kedge by its C interface alone, is killed as heat2d is and must end as if nothing had happened.

usage: heat_c_kill_test.py HEAT_C MPIEXEC      (KEDGE_TEST_FULL, KEDGE_TEST_SEED as for heat2d_kill_test.py)
"""
import os
import pathlib
import re
import tempfile
import time

import heat2d_kill_test as heat2d
from heat2d_kill_test import Job, check

PLATE = ("--rows", "1024", "--columns", "1024")


def test_rank_counts(directory):
    checksums = set()
    for ranks in (1, 2, 3, 4):
        job = Job(directory / f"ranks-{ranks}", "--steps", "20", "--every", "5", ranks=ranks)
        check(job.run() == 0, job.log()[-2000:])
        checksums.add(job.result()[2])
    check(len(checksums) == 1, "checksums differ between rank counts:", checksums)


def test_a_rank_dies(directory):
    reference = Job(directory / "reference", "--steps", "20", "--every", "4")
    check(reference.run() == 0, reference.log()[-2000:])
    job = Job(directory / "dies", "--steps", "20", "--every", "4")
    check(job.run("--die-at", "14", "--die-rank", "3") != 0, "nobody died")
    check(job.run() == 0, job.log()[-2000:])
    check(job.result() == (12, 8, reference.result()[2]), job.result(), reference.result())


def test_damage(directory):
    job = Job(directory / "damage", "--steps", "10", "--every", "2", store_keep=2)
    check(job.run() == 0, job.log()[-2000:])
    containers = list((job.directory / "store").glob("*/rank-*.h5"))
    newest = [file for file in containers if b"step-000010" in file.read_bytes()[:4096]]
    check(len(newest) == 4, containers)
    heat2d.flip(newest[2], newest[2].stat().st_size // 2)
    check(job.run("--steps", "14") == 0, job.log()[-2000:])
    check(job.result()[:2] == (8, 6), job.result())
    for file in containers:
        heat2d.flip(file, file.stat().st_size // 2)
    check(job.run("--steps", "20") == 1, "it began although every container is damaged")
    last_words = re.findall(r"^heat_c: (.*)", job.log(), re.M)
    check(len(last_words) == 1 and last_words[0].startswith("unrecoverable: "), job.log()[-2000:])


def test_another_plate(directory):
    job = Job(directory / "plate", "--steps", "10", "--every", "5")
    check(job.run() == 0, job.log()[-2000:])
    checksum = job.result()[2]
    for rows, columns in (("512", "384"), ("384", "500")):
        check(job.run("--rows", rows, "--columns", columns) == 1, "it went on from another plate's checkpoints")
        words = rf"^heat_c: mismatch.*heat_c, 384 x 512.*heat_c, {rows} x {columns}.*KEDGE_START=accept"
        check(len(re.findall(words, job.log(), re.M)) == 1, job.log()[-2000:])
    check(job.run() == 0 and job.result() == (10, 0, checksum), job.log()[-2000:])


def test_options_that_cannot_be(directory):
    for name, arguments, variables, words in (
            ("number", ("--every", "99999999999999999999999"), {}, "schedule.every must be a whole number"),
            ("variable", (), {"stor_path": "/tmp"}, "unknown environment variable KEDGE_STOR_PATH; did you mean KEDGE_STORE_PATH?")):
        job = Job(directory / name, *arguments, **variables)
        check(job.run() == 1, name, "was taken")
        check(re.search(rf"^heat_c: invalid_argument on rank 0: .*{re.escape(words)}", job.log(), re.M), job.log()[-2000:])


def main():
    print("seed", heat2d.SEED, flush=True)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="kedge-heat-c-", dir=memory) as name:
        for test in (test_rank_counts, test_a_rank_dies, test_damage, test_another_plate, test_options_that_cannot_be):
            begin = time.monotonic()
            test(pathlib.Path(name))
            print(f"ok {test.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
        heat2d.test_kills(pathlib.Path(name), *PLATE)


main()
