#!/usr/bin/python3
"""Ranks in a real memory cgroup: what does not fit is refused in words, pages that the kernel would drop count as free,
and nobody is killed.

usage: cgroup_test.py MEMORY_JOB MPIEXEC DIRECTORY

The prefix lies below DIRECTORY, the store in /dev/shm. Exit status 77: this machine gives no cgroup.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import cgroup
import testbed

RANKS = 4
MIB = 1 << 20
LIMIT_S = 60


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


class Node:
    """A cgroup, a store in memory and a prefix, for one test."""

    def __init__(self, program, mpiexec, below, limit_bytes):
        self.program, self.mpiexec = program, mpiexec
        self.group = cgroup.Group(limit_bytes)
        self.prefix = tempfile.mkdtemp(prefix="kedge-cgroup-", dir=below)
        self.store = tempfile.mkdtemp(prefix="kedge-cgroup-", dir="/dev/shm")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.store)  # its pages are the group's
        shutil.rmtree(self.prefix)
        self.group.__exit__()

    def run(self, *steps, ranks=RANKS):
        """{tag: how its checkpoint ended}"""
        environment = testbed.environment() | {
            "KEDGE_STORE_PATH": self.store, "KEDGE_PERSISTENT_PATH": self.prefix, "KEDGE_PERSISTENT_EVERY": "0",
            "OMPI_MCA_btl": "self,vader"}
        command = ["timeout", "--kill-after=5", str(LIMIT_S), self.mpiexec, "-n", str(ranks), self.program, *steps]
        result = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, preexec_fn=self.group.enter, cwd=self.prefix,
                                timeout=LIMIT_S + 20)
        killed = self.group.killed()
        check(killed == 0, killed, "processes were killed for want of memory:", result.stdout)
        check(result.returncode == 0, "the job failed:", result.stdout)
        found = dict(re.findall(r"^(\w+): (.*)$", result.stdout, re.M))
        check(set(found) == {step.split(":")[0] for step in steps}, result.stdout)
        return found


def refused_by(ending, group):
    """The free bytes that a refusal tells of, after checking its words."""
    check(ending.startswith("no_space on rank "), ending)
    check(str(group.directory) in ending, "it does not name the cgroup:", ending)
    check(re.search(r"needs? [\d.]+ [KMG]iB more", ending), "it does not say what is needed:", ending)
    return re.search(r"but ([\d.]+ \w+) is free", ending)[1]


def overhead_bytes(program, mpiexec, below):
    """What the ranks themselves and mpirun need at most, with a checkpoint of nearly nothing."""
    with Node(program, mpiexec, below, 4 << 30) as node:
        check(node.run("tiny:1")["tiny"] == "committed", "a tiny checkpoint failed")
        return node.group.peak_bytes() or 200 * MIB


def test_four_ranks_that_do_not_fit(program, mpiexec, below, base):
    """300 MiB beside the ranks themselves: 4 of 128 MiB do not fit, two would."""
    with Node(program, mpiexec, below, base + 300 * MIB) as node:
        found = node.run("first:16", "large:128", "small:24", "again:128", "last:8")
        for tag in ("first", "small", "last"):
            check(found[tag] == "committed", tag, found)
        for tag in ("large", "again"):
            print(f"   {tag}: {found[tag]}", flush=True)
            refused_by(found[tag], node.group)
        check((node.group.peak_bytes() or 0) <= base + 300 * MIB, "the limit was exceeded")


def test_up_to_the_limit(program, mpiexec, below, base):
    """Whatever the size, a checkpoint is committed or refused."""
    with Node(program, mpiexec, below, base + 200 * MIB) as node:
        sizes = range(12, 60, 4)
        found = node.run(*(f"step{size}:{size}" for size in sizes))
        endings = [found[f"step{size}"] for size in sizes]
        check(endings[0] == "committed" and endings[-1] != "committed", found)
        for ending in endings:
            if ending != "committed":
                refused_by(ending, node.group)


def test_dropped_cache_is_free(program, mpiexec, below, base):
    """250 MiB of file pages, read twice so that they count as active, do not keep a checkpoint from being made."""
    with Node(program, mpiexec, below, base + 300 * MIB) as node:
        big = pathlib.Path(node.prefix, "read-before")
        with big.open("wb") as file:
            for _ in range(250):
                file.write(os.urandom(MIB))
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        for _ in range(3):
            subprocess.run(["cat", big], stdout=subprocess.DEVNULL, preexec_fn=node.group.enter, check=True,
                           timeout=LIMIT_S)
        cached = node.group.stat("active_file") + node.group.stat("inactive_file")
        check(cached > 200 * MIB, "the kernel keeps only", cached // MIB, "MiB of the file")
        print(f"   {node.group.stat('active_file') // MIB} MiB active, "
              f"{node.group.stat('inactive_file') // MIB} MiB inactive", flush=True)
        check(node.run("beside:32")["beside"] == "committed", "it was refused beside pages that can be dropped")


def main():
    program, mpiexec, directory = sys.argv[1:]
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    testbed.end_on_signals()
    try:
        base = overhead_bytes(program, mpiexec, directory)
    except cgroup.Unavailable as reason:
        print("skipped:", reason)
        return 77
    print(f"   the ranks themselves take {base // MIB} MiB", flush=True)
    for test in (test_four_ranks_that_do_not_fit, test_up_to_the_limit, test_dropped_cache_is_free):
        begin = time.monotonic()
        test(program, mpiexec, directory, base)
        print(f"ok {test.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
