"""Reads what write_containers wrote as other programs do (h5py, h5ls, h5dump, and plain bytes by share/doc/format.md):
types of few bits, fill values, attributes, links."""
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

# What a reader knows these types by: bytes; sign, exponent, bits of it, mantissa, bits of it; bias.
FLOATS = (("float16", 2, (15, 10, 5, 0, 10), 15), ("bfloat16", 2, (15, 7, 8, 0, 7), 127),
          ("float8_e4m3fn", 1, (7, 3, 4, 0, 3), 7), ("float8_e5m2", 1, (7, 2, 5, 0, 2), 15))


def shape_of(dimensions):
    return tuple(d + 2 if d < 2 else 1 + d % 2 for d in range(dimensions))


def check_types(path):
    with h5py.File(path, "r") as file:
        assert file.userblock_size == 4096
        for name, dtype in NUMPY.items():
            for part in [f"d{d}" for d in range(9)] + ["empty"]:
                dataset = file[name][part]
                shape = (4, 0) if part == "empty" else shape_of(int(part[1:]))
                assert dataset.shape == shape, (dataset, shape)
                assert dataset.dtype == np.dtype(dtype), (dataset, dtype)
                assert np.array_equal(dataset[()], expected(name, shape)), (name, part, dataset[()])
        assert file[".kedge/index"].dtype == np.dtype("V1")
        for name, size, fields, bias in FLOATS:
            kind = file[name]["d1"].id.get_type()
            assert (kind.get_size(), kind.get_fields(), kind.get_ebias()) == (size, fields, bias), name


def check_patterns(path):
    """Every value of float8, as it is by definition and as HDF5 converts it."""
    signs = np.repeat([1.0, -1.0], 128)
    byte = np.arange(256) & 127
    with h5py.File(path, "r") as file:
        for name, mantissa, bias in (("float8_e4m3fn", 3, 7), ("float8_e5m2", 2, 15)):
            exponent, fraction = byte >> mantissa, (byte & (1 << mantissa) - 1) / (1 << mantissa)
            values = signs * np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
            greatest = exponent == exponent.max()
            dataset = file["patterns/" + name]
            seen = dataset[()]
            assert np.array_equal(seen[~greatest], values[~greatest]), (name, seen)
            # Of e4m3fn these are numbers up to 448, but for the last of each sign, which HDF5 cannot be told.
            wanted = np.where(fraction == 0, signs * np.inf, np.nan)
            assert np.array_equal(seen[greatest], wanted[greatest], equal_nan=True), (name, seen)
            # Read in the file's own type, nothing is converted.
            raw = np.empty(256, "u1")
            dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=dataset.id.get_type())
            assert np.array_equal(raw, np.arange(256)), (name, raw)


def check_many(path):
    with h5py.File(path, "r") as file:
        for i in range(2000):
            dataset = file[f"groep \u00eb{i % 7}/r\u20ac{i}"]
            count = 20000 + i if i % 200 == 0 else i % 50
            assert np.array_equal(dataset[()], np.arange(count, dtype="<u4")), dataset
            if i % 200 == 0:
                assert dataset.id.get_offset() % 4096 == 0


def check_superblock(path):
    """Every number as share/doc/format.md gives it."""
    data = open(path, "rb").read()
    assert data[0:8] == b"KEDGE\r\n\x1a"
    assert struct.unpack_from("<II", data, 8) == (1, 1)
    assert data[16:32] == bytes(range(1, 17)) and data[32:48] == bytes(range(101, 117)) and not any(data[48:64])
    assert struct.unpack_from("<QQIIqQ", data, 64) == (42, 3, 5, 8, 1234567890, len(data))
    index_offset, index_size, index_crc, tag_size = struct.unpack_from("<QQII", data, 104)
    assert data[128:128 + tag_size] == b"step-000042"
    for at in (512, 1024, 2048):
        assert not any(data[at:at + 8])
    assert struct.unpack_from("<I", data, 4092)[0] == crc32c(data[:4092])
    assert index_crc == crc32c(data[index_offset:index_offset + index_size])
    kinds = []
    for i in range(struct.unpack_from("<I", data, 2056)[0]):
        kind, crc, offset, length = struct.unpack_from("<IIQQ", data, 2064 + 24 * i)
        assert crc == crc32c(data[offset:offset + length]), (path, offset)
        kinds.append(kind)
    assert kinds.count(2) == 1 and set(kinds) == {1, 2}
    assert data[index_offset:index_offset + 2] == b"\x84\x01"
    with h5py.File(path, "r") as file:
        assert file[".kedge/index"].id.get_offset() == index_offset


def check_survives_writing_by_others(path):
    """HDF5 cuts the file at its own end when it is opened for writing: index and data must lie before that."""
    copy = path + ".copy"
    shutil.copy(path, copy)
    before = open(copy, "rb").read()
    index_offset, index_size = struct.unpack_from("<QQ", before, 104)
    with h5py.File(copy, "r+") as file:
        file.attrs["seen"] = 1
    after = open(copy, "rb").read()
    assert len(after) >= len(before)
    assert after[:4096] == before[:4096]
    assert after[index_offset:index_offset + index_size] == before[index_offset:index_offset + index_size]
    # The superblock may be overwritten freely.
    with open(copy, "r+b") as file:
        file.write(bytes(4096))
    check_types(copy)


def check_tools(path):
    listing = subprocess.run(["h5ls", "-r", path], check=True, capture_output=True, text=True).stdout
    for name in NUMPY:
        assert f"/{name}/d8" in listing, listing
    dump = subprocess.run(["h5dump", "-d", "/float64/d1", "-d", "/bool/d1", path], check=True, capture_output=True,
                          text=True).stdout
    assert "-1.5, -1" in dump and "FALSE, TRUE" in dump, dump
    subprocess.run(["h5dump", path], check=True, capture_output=True)


def main():
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.argv[1], directory], check=True)
        types, second, many = (os.path.join(directory, name + ".kedge") for name in ("types", "second", "many"))
        check_types(types)
        check_patterns(types)
        check_many(many)
        check_superblock(types)
        check_superblock(many)
        assert open(types, "rb").read() == open(second, "rb").read(), "prediction changed the bytes"
        check_survives_writing_by_others(types)
        if shutil.which("h5ls") and shutil.which("h5dump"):
            check_tools(types)
        else:
            print("h5ls and h5dump are missing (hdf5-tools); not tried")


main()
