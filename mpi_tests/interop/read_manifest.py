"""Reads what write_manifest wrote as other programs do (h5py, h5ls, and plain bytes by share/doc/format.md): virtual
datasets, fill values, attributes.

read_engine_commit.py uses it too.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError as missing:
    print("skipped:", missing, "(apt-get install python3-h5py)")
    sys.exit(77)

from known_values import NUMPY, crc32c, expected

RANKS = 8
PERCENT = "100%b/\u03b1 %%0b"  # HDF5 takes % in names of sources for patterns


def same(dataset, values):
    assert dataset.shape == values.shape, (dataset, values.shape)
    assert dataset.dtype == values.dtype, (dataset, values.dtype)
    assert np.array_equal(dataset[()], values), (dataset, dataset[()])


def field(name):
    return expected(name, (7, 11, 13))


def arrays():
    """Every global array as NumPy makes it."""
    holes = np.zeros((10, 10), "<f4")
    holes[2:7, 3:9] = expected("float32", (10, 10))[2:7, 3:9]
    result = {"field/" + name: field(name) for name in NUMPY}
    result.update({
        "particles": expected("int64", (140,)),
        "large": expected("float64", (400, 200)),
        PERCENT: expected("int32", (400, 200)),
        "deep": expected("uint16", (2, 1, 2, 1, 2, 1, 1, 2)),
        "holes": holes,
        "only holes": np.zeros(4, "<f4"),
        "empty": np.zeros((0, 3), "<f4"),
        "step": expected("int64", ()),
    })
    return result


def check_view(path):
    wanted = arrays()
    seen = []
    with h5py.File(path, "r") as file:
        assert file.userblock_size == 4096
        for name, values in wanted.items():
            same(file[name], values)
            is_virtual = values.ndim > 0 and values.size > 0 and name != "only holes"
            assert file[name].is_virtual == is_virtual, name
        same(file["constants/seed"], expected("uint64", (4,)))
        file.visit(seen.append)
    assert set(wanted) - {"step"} <= set(seen), seen  # visit goes past links


def check_ranks(path):
    """Each rank's regions, through its link, and how the blocks of an array lie together again."""
    with h5py.File(path, "r") as file:
        assert sorted(file["ranks"], key=int) == [str(rank) for rank in range(RANKS)]
        counted = 0
        for rank in range(RANKS):
            own = file["ranks"][str(rank)]
            same(own["own/state"], expected("uint32", (rank, 2)))
            same(own["constants/seed"], expected("uint64", (4,)))
            begin = sum(r * r for r in range(rank))
            same(own["particles"], expected("int64", (140,))[begin:begin + rank * rank])
            same(own["large"], expected("float64", (400, 200))[50 * rank:50 * rank + 50])
            block = (rank + 5) % RANKS
            x, y, z = block // 4, block // 2 % 2, block % 2
            cuts = (0, 3, 7), (0, 4 + 2 * x, 11), (0, 5 + x + 3 * y, 13)
            where = tuple(slice(cut[i], cut[i + 1]) for cut, i in zip(cuts, (x, y, z)))
            for name in NUMPY:
                same(own["field"][name], field(name)[where])
            counted += own["field/int8"].size
        assert counted == 7 * 11 * 13


def check_table(path, directory, ranks_per_directory=4):
    with h5py.File(path, "r") as file:
        table = file[".kedge/shards"][()]
        assert table.dtype.names == ("file", "size_bytes", "index_offset", "index_size", "index_crc", "crc", "row_crc")
        for rank, row in enumerate(table):
            assert row["file"].decode() == f"data/{rank // ranks_per_directory}/rank-{rank}.h5"
            data = open(os.path.join(directory, row["file"].decode()), "rb").read()
            assert row["size_bytes"] == len(data)
            assert struct.unpack_from("<QQI", data, 104) == (row["index_offset"], row["index_size"], row["index_crc"])
        assert crc32c(data) == row["crc"]  # of the last one; in Python it takes its time


ATTRIBUTES = {"time": 0.25, "cells": [7, 11, 13], "\u03b1": "\u03b2", "step": -7, "weights": [0.5, -1.5], "none": [],
              "a/../b\n.": ""}


def check_attributes(path):
    """As JSON, which is what Kedge reads, and each as an attribute of HDF5's own."""
    with h5py.File(path, "r") as file:
        attributes = file[".kedge/attributes"]
        assert attributes.shape == () and attributes.dtype.itemsize == 512
        assert json.loads(attributes[()]) == ATTRIBUTES
        assert set(file.attrs) == set(ATTRIBUTES), list(file.attrs)
        for key, wanted in ATTRIBUTES.items():
            value = file.attrs[key]
            if isinstance(wanted, str):
                assert value.decode() == wanted, (key, value)  # fixed length: h5py gives bytes
            else:
                kind = "f8" if key in ("time", "weights") else "i8"
                assert value.dtype == np.dtype(kind) and value.tolist() == wanted, (key, value)


# Beside NaN of floating point.
MISSING = {"bool": -1, "opaque": 255} | {
    f"int{bits}": -2 ** (bits - 1) for bits in (8, 16, 32, 64)} | {f"uint{bits}": 2 ** bits - 1 for bits in (8, 16, 32, 64)}


def stands_out(name, values):
    """Which elements are none that anybody saved."""
    if name not in MISSING:
        return np.isnan(values.real) & np.isnan(values.imag if values.dtype.kind == "c" else values)
    if name in ("bool", "opaque"):
        values = values.view("i1" if name == "bool" else "u1")
    return values == MISSING[name]


def check_missing(directory):
    """What a container that is not there would have shown is nothing that looks like data, and the rest is as it was."""
    copy = directory + "-missing"
    shutil.copytree(directory, copy)
    os.remove(os.path.join(copy, "data/0/rank-3.h5"))
    os.rename(os.path.join(copy, "data/0/rank-2.h5"), os.path.join(copy, "data/moved.h5"))
    blocks = np.zeros((7, 11, 13), bool)
    for block in ((rank + 5) % RANKS for rank in (2, 3)):
        x, y, z = block // 4, block // 2 % 2, block % 2
        blocks[3 * x:3 + 4 * x, (4 + 2 * x) * y:(11 if y else 4 + 2 * x), (5 + x + 3 * y) * z:(13 if z else 5 + x + 3 * y)] = 1
    with h5py.File(os.path.join(copy, "checkpoint.h5"), "r") as file:
        for name in NUMPY:
            values = file["field/" + name][()]
            assert stands_out(name, values[blocks]).all(), (name, values[blocks])
            assert np.array_equal(values[~blocks], field(name)[~blocks]), name
        assert (file["large"][100:200] != file["large"][100:200]).all()
        assert (file["holes"][()] == arrays()["holes"]).all(), "rank 4 is there"
        assert (file["constants/seed"][()] == 2 ** 64 - 1).all(), "it is rank 2's"
        assert (file["ranks/3/own/state"][()] == 2 ** 32 - 1).all()
        same(file["ranks/1/own/state"], expected("uint32", (1, 2)))
    os.remove(os.path.join(copy, "data/1/rank-4.h5"))
    with h5py.File(os.path.join(copy, "checkpoint.h5"), "r") as file:
        assert not file["holes"][()].any(), "zero where holes are expected"
    if shutil.which("h5dump"):
        dump = subprocess.run(["h5dump", "-d", "/field/float16", "-d", "/field/bfloat16", "-d", "/field/complex64",
                               "-d", "/field/float8_e4m3fn", "-d", "/field/float8_e5m2",
                               os.path.join(copy, "checkpoint.h5")], check=True, capture_output=True, text=True).stdout
        assert dump.count("nan") >= 6 * blocks.sum(), dump
    shutil.rmtree(copy)


def check_h5diff(directory):
    """What differs in a container is found by h5diff alone, but for scalars: HDF5 has no virtual ones."""
    copy = directory + "-other"
    shutil.copytree(directory, copy)
    for rank, name in ((2, "constants/seed"), (3, "own/state"), (5, "step"), (6, "large")):
        with h5py.File(os.path.join(copy, f"data/{rank // 4}/rank-{rank}.h5"), "r+") as file:
            file[name][...] = 99
    paths = [os.path.join(where, "checkpoint.h5") for where in (directory, copy)]

    def differing(*options):
        done = subprocess.run(["h5diff", *options, *paths], capture_output=True, text=True)
        assert done.returncode == 1, done
        return {line.split("<")[1].split(">")[0] for line in done.stdout.splitlines() if line.startswith("dataset: ")}

    assert differing() == {"/constants/seed", "/ranks/3/own/state", "/large"}, differing()
    # It compares what two links lead to once, under the name that it meets first.
    assert differing("--follow-symlinks") & {"/step", "/ranks/5/step"}, differing("--follow-symlinks")
    shutil.rmtree(copy)


def check_bytes(path):
    """Every number as share/doc/format.md gives it."""
    data = open(path, "rb").read()
    assert data[0:8] == b"KMAIN\r\n\x1a"
    assert struct.unpack_from("<II", data, 8) == (1, 1)
    commit_id = data[32:48]
    assert data[16:32] == bytes(range(1, 17)) and commit_id == bytes(range(101, 117)) and not any(data[48:64])
    assert struct.unpack_from("<QQI", data, 64) == (42, 3, RANKS)
    has_view, time_ns, file_size, total = struct.unpack_from("<IqQQ", data, 84)
    assert (time_ns, file_size) == (1234567890, len(data))
    shards, attributes, attributes_size, tag_size, run_size = struct.unpack_from("<QQQII", data, 112)
    assert data[144:144 + tag_size] == b"step-000042" and data[272:272 + run_size] == b"heat"
    assert not any(data[336:2056])
    assert struct.unpack_from("<I", data, 4092)[0] == crc32c(data[:4092])
    end, kinds = 4096, []
    for i in range(struct.unpack_from("<I", data, 2056)[0]):
        kind, crc, offset, length = struct.unpack_from("<IIQQ", data, 2064 + 24 * i)
        assert offset == end and crc == crc32c(data[offset:offset + length]), (path, offset)
        assert kind != 4 or (offset, length) == (shards, 64 * RANKS)
        assert kind != 5 or offset == attributes
        kinds.append(kind)
        end += length
    assert end == len(data) and kinds.count(4) == 1 and kinds.count(5) == has_view  # plain.h5 has neither
    sizes = 0
    for rank in range(RANKS):
        row = data[shards + 64 * rank:shards + 64 * rank + 64]
        sizes += struct.unpack_from("<Q", row, 32)[0]
        assert struct.unpack_from("<I", row, 60)[0] == crc32c(commit_id + struct.pack("<I", rank) + row[:60])
    assert sizes == total
    if attributes:
        assert json.loads(data[attributes:attributes + attributes_size])["time"] == 0.25
        assert data[attributes + attributes_size:attributes + 512].strip(b" ") == b""


def check_plain(path):
    """Without a view there are the ranks still."""
    with h5py.File(path, "r") as file:
        assert sorted(file) == [".kedge", "ranks"] and list(file[".kedge"]) == ["shards"]
    check_ranks(path)
    check_bytes(path)


def check_survives_writing_by_others(path):
    """HDF5 cuts a file at its own end when it is opened for writing: nothing may lie behind that."""
    copy = os.path.join(os.path.dirname(path), "copy.h5")
    shutil.copy(path, copy)
    with h5py.File(copy, "r+") as file:
        file.attrs["seen"] = 1
    assert os.path.getsize(copy) >= os.path.getsize(path)
    assert open(copy, "rb").read(4096) == open(path, "rb").read(4096)
    check_view(copy)


def check_tools(path):
    listing = subprocess.run(["h5ls", "-r", path], check=True, capture_output=True, text=True).stdout
    lines = [" ".join(line.split()) for line in listing.splitlines()]
    for line in ("/field/float64 Dataset {7, 11, 13}", "/large Dataset {400, 200}", "/.kedge/shards Dataset {8}",
                 "/ranks/7/own/state Dataset {7, 2}", "/ranks/7/large External Link {data/1/rank-7.h5//large}"):
        assert line in lines, listing
    dump = subprocess.run(["h5dump", "-d", "/field/int8", path], check=True, capture_output=True, text=True).stdout
    assert "(0,0,0): -3, -2, -1, 0, 1" in dump, dump


def check_all(directory):
    path = os.path.join(directory, "checkpoint.h5")
    check_view(path)
    check_ranks(path)
    check_table(path, directory)
    check_attributes(path)
    check_plain(os.path.join(directory, "plain.h5"))


def main():
    with tempfile.TemporaryDirectory() as base:
        directory, moved = os.path.join(base, "tag"), os.path.join(base, "elsewhere")
        for part in ("0", "1"):
            os.makedirs(os.path.join(directory, "data", part))
        subprocess.run([sys.argv[1], directory], check=True)
        path = os.path.join(directory, "checkpoint.h5")
        check_all(directory)
        check_bytes(path)
        check_missing(directory)
        if shutil.which("h5diff"):
            check_h5diff(directory)
        else:
            print("h5diff is missing (hdf5-tools); not tried")
        check_survives_writing_by_others(path)
        if shutil.which("h5ls") and shutil.which("h5dump"):
            check_tools(path)
        else:
            print("h5ls and h5dump are missing (hdf5-tools); not tried")
        assert base.encode() not in open(path, "rb").read(), "an absolute path"
        os.rename(directory, moved)
        check_all(moved)


if __name__ == "__main__":
    main()
