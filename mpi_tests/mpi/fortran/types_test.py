#!/usr/bin/python3
"""What h5py sees of what fortran_round_trip saves: the types that share/doc/fortran.md names, dimensions reversed.

usage: types_test.py FORTRAN_ROUND_TRIP LAUNCHER
"""
import pathlib
import sys
import tempfile

from launch import check, launch

try:
    import h5py
    import numpy
except ImportError:
    print("skipped: h5py is missing")
    sys.exit(77)

PROGRAM, LAUNCHER = sys.argv[1:3]
TYPES = {"int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "real32": "float32", "real64": "float64",
         "complex32": "complex64", "complex64": "complex128", "logical8": "bool", "logical16": "bool",
         "logical32": "bool", "logical64": "bool", "text": "uint8"}
EXTENTS = (5, 7, 5, 3, 5, 7, 5)  # of rank 7, as Fortran has them


def value(label, i):
    """As round_trip.cmake makes it."""
    if label.startswith("int"):
        return {"int8": i % 120, "int16": i % 32000, "int32": i * 10007, "int64": i * 1000000000007}[label]
    if label.startswith("logical"):
        return i % 3 != 0
    if label == "text":
        return [33 + i % 90, 33 + i // 90 % 90, 32]
    if label.startswith("complex"):
        return complex(i, float(numpy.float32(1) / numpy.float32(i)))
    return (numpy.float32 if label == "real32" else numpy.float64)(i) / 7


def checks_type(group, label):
    inner = (3,) if label == "text" else ()
    for rank in range(1, 8):
        seen = group[f"{label}/{rank}/whole"][:]
        check(seen.dtype == numpy.dtype(TYPES[label]), label, "is seen as", seen.dtype)
        wanted = tuple(reversed(EXTENTS[:rank])) + inner
        check(seen.shape == wanted, label, "of rank", rank, "has the shape", seen.shape)
        flat = seen.reshape(-1, *inner)
        for i in (1, 2, len(flat) // 2, len(flat)):
            check(numpy.array_equal(flat[i - 1], numpy.array(value(label, i)).astype(TYPES[label])), label, rank, i,
                  flat[i - 1], value(label, i))
    # Fortran's section 2:4:2, 2:6:2 is the last two dimensions, in reverse, for h5py.
    whole, section = group[f"{label}/2/whole"][:], group[f"{label}/2/section"][:]
    check(numpy.array_equal(section, whole[1:6:2, 1:4:2]), label, "has another section")


def main():
    with tempfile.TemporaryDirectory(prefix="kedge-fortran-types-") as directory:
        pathlib.Path(directory, "prefix").mkdir()
        done = launch(PROGRAM, LAUNCHER, 2, directory)
        check(done.returncode == 0, done.stdout, done.stderr)
        prefix = pathlib.Path(directory, "prefix")
        with h5py.File(prefix / (prefix / "latest").read_text().strip() / "checkpoint.h5", "r") as file:
            for label in TYPES:
                checks_type(file["ranks/1"], label)
                print("ok", label)


if __name__ == "__main__":
    main()
