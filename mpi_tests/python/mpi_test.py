"""mpi_test.py LAUNCHER: four ranks of MPI_COMM_WORLD, which the package initializes; a node is lost in between."""

import sys

import place
import ranks

with place.directory() as path:
    ranks.check([sys.argv[1], "-n", "4", sys.executable], path)
