"""mpi_test.py LAUNCHER: four ranks of MPI_COMM_WORLD, which the package initializes: an exception on one rank drops the
checkpoint on all, different calls are an error on all; a node is lost in between."""

import importlib.util
import sys

import place
import ranks

with place.directory() as path:
    ranks.check([sys.argv[1], "-n", "4", sys.executable], path)
if importlib.util.find_spec("mpi4py") is None:
    print(f"left out: communicators of mpi4py, which {sys.executable} does not have")
else:
    with place.directory() as path:
        ranks.check([sys.argv[1], "-n", "4", sys.executable], path, "mpi4py")
