"""Reads as a whole, with h5py and NumPy, what 8 ranks committed through the engine in blocks; then loads it item by item.

usage: read_engine_commit.py COMMIT_THROUGH_ENGINE MPIEXEC
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import read_manifest  # ends with 77 where h5py is missing
from known_values import expected

PROGRAM, MPIEXEC = sys.argv[1:3]
RANKS_PER_DIRECTORY = 1024


def launch(directory, what):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
        "KEDGE_PERSISTENT_EVERY": "1",
        "KEDGE_STORE_PATH": f"{directory}/store/{{node}}", "KEDGE_PERSISTENT_PATH": f"{directory}/prefix",
        "KEDGE_TEST_RANKS_PER_NODE": "2"}
    done = subprocess.run(
        ["timeout", "--kill-after=5", "60", MPIEXEC, "-n", str(read_manifest.RANKS), PROGRAM, what],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def names_of(group):
    """All data sets below it, links not followed."""
    found = []
    group.visititems(lambda name, item: found.append(name) if hasattr(item, "dtype") else None)
    return found


def all_names_of(group, within=""):
    """Links followed."""
    found = set()
    for name, item in group.items():
        found |= {within + name} if hasattr(item, "dtype") else all_names_of(item, within + name + "/")
    return found


def check_nothing_else(path):
    """What h5py sees in each rank's place is what that rank saved, and no more."""
    with read_manifest.h5py.File(path, "r") as file:
        arrays = {name for name in names_of(file) if not name.startswith(".kedge/")}
        listed = {f"ranks/{rank}/own/state" for rank in range(1, read_manifest.RANKS)}  # rank 0's is empty: a link
        wanted = set(read_manifest.arrays()) - {"step"} | {"constants/seed"} | listed  # step is a link to a rank's
        assert arrays == wanted, arrays ^ wanted
        for rank in range(read_manifest.RANKS):
            saved = all_names_of(file["ranks"][str(rank)])
            assert {"own/state", "constants/seed", "particles"} <= saved, saved
            assert ("step" in saved) == (rank == 5) and ("holes" in saved) == (rank == 4), (rank, saved)
            assert saved <= {"own/state", "constants/seed"} | set(read_manifest.arrays()), saved


def check(directory):
    path = os.path.join(directory, "checkpoint.h5")
    read_manifest.check_view(path)
    read_manifest.check_ranks(path)
    read_manifest.check_table(path, directory, RANKS_PER_DIRECTORY)
    read_manifest.check_attributes(path)
    check_nothing_else(path)
    with read_manifest.h5py.File(path, "r") as file:  # a part of the whole, across blocks of several ranks
        part = file["field/float64"][2:5, 3:10:2, ::4]
        assert (part == expected("float64", (7, 11, 13))[2:5, 3:10:2, ::4]).all()


def main():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="kedge-interop-"))
    try:
        launch(directory, "commit")
        tag, = directory.glob("prefix/step-000042.*")
        check(str(tag))
        shutil.copytree(tag, directory / "elsewhere")
        check(str(directory / "elsewhere"))
        for source in ("in place", "fetched"):
            output = launch(directory, "load")
            assert f"loaded from {source}\n" in output, output
            shutil.rmtree(directory / "store")
    finally:
        shutil.rmtree(directory)


main()
