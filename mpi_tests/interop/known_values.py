"""What the elements are that plain_file.cpp appends, and CRC32C, for the scripts that read what other programs wrote."""
import numpy as np

NUMPY = {
    "int8": "i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "uint8": "u1", "uint16": "<u2", "uint32": "<u4", "uint64": "<u8",
    "float16": "<f2", "bfloat16": "<f4", "float32": "<f4", "float64": "<f8",
    "complex64": "<c8", "complex128": "<c16", "bool": "?", "opaque": "V1",
    "float8_e4m3fn": "<f2", "float8_e5m2": "<f2",
}
DISTINCT = {"bfloat16": 127, "float8_e4m3fn": 20, "float8_e5m2": 12}  # how many elements so few bits tell apart


def expected(name, shape):
    i = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64)
    i %= DISTINCT.get(name, 2 ** 62)
    if name == "opaque":
        return (7 * i).astype("u1").view("V1").reshape(shape)
    if name == "bool":
        values = i % 2 == 1
    elif name.startswith("complex"):
        values = i / 2 - 1j * i
    elif "float" in name:
        values = (i - 3) / 2
    elif name.startswith("u"):
        values = i
    else:
        values = i - 3
    return values.astype(NUMPY[name]).reshape(shape)


CRC_TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    CRC_TABLE.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF
