#!/usr/bin/python3
"""heat_fortran on simulated nodes is killed, loses the store of a node, and ends as if nothing had happened; h5py sees its
field with the dimensions reversed.

usage: killed_test.py HEAT_FORTRAN LAUNCHER
"""
import pathlib
import re
import shutil
import sys
import tempfile

from launch import check, launch

HEAT, LAUNCHER = sys.argv[1:3]
ROWS, COLUMNS = 24, 40
RANKS, RANKS_PER_NODE = 8, 2
STEPS, EVERY, DEATH = 40, 10, 25
NEWEST = DEATH // EVERY * EVERY


class Job:
    def __init__(self, directory, ranks=RANKS, **variables):
        self.directory, self.ranks = directory, ranks
        self.variables = {"test_ranks_per_node": RANKS_PER_NODE, "persistent_every": 0} | variables
        (directory / "prefix").mkdir(parents=True)

    def run(self, *more):
        self.done = launch(HEAT, LAUNCHER, self.ranks, self.directory, "--rows", str(ROWS), "--columns", str(COLUMNS),
                           "--steps", str(STEPS), "--every", str(EVERY), *more, **self.variables)
        return self.done.returncode

    def printed(self, key):
        lines = [line[len(key) + 1:] for line in self.done.stdout.splitlines() if line.startswith(key + " ")]
        check(len(lines) <= 1, key, "was printed by", len(lines), "ranks")
        return lines[0] if lines else None

    def ended(self):
        return self.done.stdout[-2000:] + self.done.stderr[-4000:]


def undisturbed(directory):
    checksums = set()
    for ranks in (1, 3, RANKS):
        job = Job(directory / f"undisturbed-{ranks}", ranks, persistent_every=1)
        check(job.run() == 0, job.ended())
        check(job.printed("steps computed") == str(STEPS) and job.printed("resumed") is None, job.ended())
        checksums.add(job.printed("checksum"))
    check(len(checksums) == 1 and None not in checksums, "checksums differ between rank counts:", checksums)
    return checksums.pop()


def loses_a_node(directory, scheme, node, wanted):
    job = Job(directory / f"{scheme}-{node}", redundancy_scheme=scheme, pipeline_mode="inline")
    check(job.run("--die-at", str(DEATH), "--die-rank", str(node * RANKS_PER_NODE)) != 0, "nobody died:", job.ended())
    check(job.printed("checksum") is None, "it came to its end:", job.ended())
    shutil.rmtree(job.directory / "store" / f"node{node}")
    check(job.run() == 0, job.ended())
    resumed = job.printed("resumed") or ""
    check(resumed.startswith(f"step-{NEWEST:06} {NEWEST} rebuilt "), scheme, "resumed", resumed, job.ended())
    check(job.printed("steps computed") == str(STEPS - NEWEST), job.ended())
    check(job.printed("checksum") == wanted, "the field differs from that of the undisturbed run", job.ended())
    print(f"ok {scheme}: node {node} lost, resumed {resumed}", flush=True)


def refuses_another_plate(directory):
    job = Job(directory / "plate", 2, test_ranks_per_node=0)
    check(job.run() == 0, job.ended())
    check(job.run("--rows", "30") != 0, "it went on from another plate's checkpoints")
    check(re.search(r"^kedge: mismatch.*heat_fortran, 24 x 40", job.done.stderr, re.M), job.ended())
    for words in (("--rows",), ("--rows", "x"), ("--width", "3")):
        check(job.run(*words) != 0, words, "was taken")
        check(re.search(r"^heat_fortran: --\w+ is unknown or requires a number", job.done.stderr, re.M), job.ended())


def field_of_fortran():
    """As the program computes it, in the order of its array: the first index is the fastest."""
    import numpy
    field = numpy.zeros((ROWS, COLUMNS))
    for column in range(COLUMNS):
        for row in range(ROWS):
            x, y = 2 * column / COLUMNS - 1, 2 * row / ROWS - 1
            field[row, column] = 1.0 if x * x + y * y < 0.25 else 0.0
    for _ in range(STEPS):
        wide = numpy.pad(field, 1, mode="edge")
        field = field + 0.2 * (wide[1:-1, :-2] + wide[1:-1, 2:] + wide[:-2, 1:-1] + wide[2:, 1:-1] - 4 * field)
    return field


def h5py_reads_it(directory):
    try:
        import h5py
        import numpy
    except ImportError:
        print("skipped: h5py is missing, so no other program reads the field")
        return False
    prefix = directory / f"undisturbed-{RANKS}" / "prefix"
    tag = (prefix / "latest").read_text().strip()
    with h5py.File(prefix / tag / "checkpoint.h5", "r") as file:
        seen = file["temperature"][:]
        check(seen.shape == (COLUMNS, ROWS), "h5py sees the shape", seen.shape)
        check(numpy.allclose(seen.T, field_of_fortran(), rtol=0, atol=1e-12), "h5py sees another field")
        check(not numpy.allclose(seen.T, seen.T[::-1, ::-1].copy(), rtol=0, atol=1e-6), "the field is symmetric: it shows no order")
        check(file.attrs["step"] == STEPS and file.attrs["program"] in ("heat_fortran", b"heat_fortran"),
              dict(file.attrs))
        check(file["step"][()] == STEPS, "h5py sees another step")
    print("ok h5py reads the field", seen.shape)
    return True


def main():
    with tempfile.TemporaryDirectory(prefix="kedge-heat-fortran-") as name:
        directory = pathlib.Path(name)
        wanted = undisturbed(directory)
        read = h5py_reads_it(directory)
        for scheme, node in (("xor", 1), ("partner", 3), ("rs", 0)):
            loses_a_node(directory, scheme, node, wanted)
        refuses_another_plate(directory)
    return 0 if read else 77


if __name__ == "__main__":
    sys.exit(main())
