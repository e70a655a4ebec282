#!/usr/bin/python3
"""One job in three languages, with one engine: C++ ranks save and restore a State, those of C and Fortran save and load
its variables one by one, as kedge.h and fortran.md say. Also where the newest checkpoint is found damaged by one of them
while it is loaded: all go on from the one before it.

usage: languages_test.py MPIEXEC CPP C FORTRAN
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

MPIEXEC, PROGRAMS = sys.argv[1], sys.argv[2:5]
RANKS = 2 * len(PROGRAMS)


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def start(directory, mode):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
        "KEDGE_STORE_PATH": f"{directory}/store/{{node}}", "KEDGE_PERSISTENT_PATH": f"{directory}/prefix",
        "KEDGE_TEST_RANKS_PER_NODE": "1", "KEDGE_PERSISTENT_EVERY": "0", "KEDGE_REDUNDANCY_SCHEME": "single",
        "KEDGE_STORE_KEEP": "2", "KEDGE_OPEN_VERIFY": "headers", "KEDGE_PIPELINE_MODE": mode, "KEDGE_COMM_TIMEOUT_S": "20"}
    launch = []
    for program in PROGRAMS:
        launch += [*([":"] if launch else []), "-n", "2", program]
    done = subprocess.run(["timeout", "--kill-after=5", "60", MPIEXEC, *launch], env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, "exit code", done.returncode, done.stdout)
    found = re.findall(r"^rank (\d+): step (\d+), (good|none)$", done.stdout, re.M)
    check(sorted(int(rank) for rank, _, _ in found) == list(range(RANKS)), done.stdout)
    states = {(int(step), word) for _, step, word in found}
    check(len(states) == 1, done.stdout)
    return states.pop()


def damage(directory, rank, step):
    """A byte of this rank's field of this step; each rank has a node of its own."""
    node = sorted(pathlib.Path(directory, "store").iterdir())[rank]
    field = struct.pack("d", step + rank) * 1000
    files = [file for file in node.rglob("*") if file.is_file() and field in file.read_bytes()]
    check(len(files) == 1, "not one file has step", step, "of rank", rank, files)
    with files[0].open("r+b") as file:
        at = files[0].read_bytes().index(field)
        file.seek(at + 4000)
        file.write(b"\xff")


for mode in ("inline", "background"):
    with tempfile.TemporaryDirectory(prefix="kedge-languages-") as directory:
        check(start(directory, mode) == (0, "none"), "the first start")
        check(start(directory, mode) == (2, "good"), "the second")
        for turn, rank in enumerate((1, 2, 5)):  # C++, C, Fortran
            damage(directory, rank, 4 + turn)
            check(start(directory, mode) == (3 + turn, "good"), "after damage on rank", rank)
        print("ok", mode, flush=True)
