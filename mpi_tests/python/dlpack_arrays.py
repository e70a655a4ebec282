"""Arrays of a library that is known by DLPack only, made by hand: any device, type, layout and version; and what tests do
with them."""

import ctypes
import unittest

import numpy as np
import place

import kedge
from kedge import communicators

CPU, CUDA, CUDA_HOST, METAL, ROCM, CUDA_MANAGED = 1, 2, 3, 8, 10, 13
READ_ONLY, IS_COPIED = 1, 2
#: DLPack's codes of NumPy's kinds; code and bits of types that NumPy does not have.
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
SMALL_FLOATS = {"bfloat16": (4, 16), "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8)}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


NAMES = {Managed: b"dltensor", Versioned: b"dltensor_versioned"}
API = ctypes.pythonapi
API.PyCapsule_New.restype = ctypes.py_object
API.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
API.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
API.PyCapsule_GetPointer.restype = ctypes.c_void_p
API.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]

#: What was exported, for good: an address is never used again, so that a second call of the deleter is seen.
exported = {}


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def deleter(address):
    array, _ = exported[address]
    array.released += 1
    if array.on_release is not None:
        array.on_release()


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def destructor(capsule):
    """As the standard wants it: of a capsule that nobody took."""
    for name in NAMES.values():
        if API.PyCapsule_IsValid(capsule, name):
            deleter(API.PyCapsule_GetPointer(capsule, name))


class Array:
    """Has ``__dlpack__`` and ``__dlpack_device__`` as of the standard's version of 2023, and nothing else. ``value`` is an
    array of NumPy whose memory it exports; ``told`` replaces what it says of that. ``released`` counts how often the
    deleter was called, ``asked`` lists the arguments of the calls of ``__dlpack__``."""

    def __init__(self, value, *, device=CPU, capsule_device=None, version=(1, 0), flags=0, on_release=None,
                 has_deleter=True, **told):  # fmt: skip
        self.value = value
        self.device = device
        self.version = version
        self.flags = flags
        self.on_release = on_release
        self.has_deleter = has_deleter
        self.released = 0
        self.asked = []
        step = value.itemsize
        self.told = {
            "data": value.ctypes.data, "device_type": capsule_device or device, "ndim": value.ndim, "code": CODES[value.dtype.kind],
            "bits": 8 * step, "lanes": 1, "shape": value.shape, "strides": [s // step for s in value.strides],
            "byte_offset": 0, **told,
        }  # fmt: skip

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked.append({"stream": stream, "max_version": max_version, "copy": copy})
        return self.export(Versioned if max_version is not None else Managed)

    def export(self, kind):
        tensor = Tensor()
        for field, value in self.told.items():
            if field in ("shape", "strides"):
                value = None if value is None else (ctypes.c_int64 * len(value))(*value)
            setattr(tensor, field, value)
        managed = kind(tensor=tensor, deleter=ctypes.cast(deleter, ctypes.c_void_p) if self.has_deleter else None)
        if kind is Versioned:
            managed.major, managed.minor = self.version
            managed.flags = self.flags
        exported[ctypes.addressof(managed)] = self, managed
        return API.PyCapsule_New(ctypes.addressof(managed), NAMES[kind], ctypes.cast(destructor, ctypes.c_void_p))


class OldArray(Array):
    """As of the standard's first version: without versions."""

    def __dlpack__(self, *, stream=None):
        self.asked.append({"stream": stream})
        return self.export(Managed)


def small_floats(name, bits, **more):
    """An array of a type that NumPy does not have, over one of unsigned integers."""
    code, size = SMALL_FLOATS[name]
    assert bits.itemsize * 8 == size
    return Array(bits, code=code, **more)


class Wrapped:
    """An array of NumPy or a tensor of PyTorch, of which only DLPack is to be seen."""

    def __init__(self, array):
        self.array = array
        self.released = 1  # not counted

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **asked):
        return self.array.__dlpack__(**asked)


def bytes_of(value):
    return np.ascontiguousarray(value).tobytes()


TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         "complex64", "complex128", "bool")  # fmt: skip
SHAPES = ((), (0,), (3, 0), (7,), (3, 4), (2, 3, 5))


def filled(shape, dtype="float64"):
    return np.random.default_rng(1).integers(0, 100, shape).astype(dtype)


class Case(unittest.TestCase):
    def setUp(self):
        self.path = self.enterContext(place.directory())
        self.engine = kedge.Engine(place.options(self.path), communicator=communicators.single_process())

    def save(self, value):
        with self.engine.checkpoint("t") as c:
            c.save("x", value)

    def loaded(self, out=None):
        with self.engine.restart() as r:
            return r.load("x", out=out)

    def check(self, *pairs):
        """Each array is saved as what is wanted of it, and given back exactly once."""
        with self.engine.checkpoint("t") as c:
            for i, (array, _) in enumerate(pairs):
                c.save(f"x{i}", array)
                self.assertEqual(array.released, 1)
        with self.engine.restart() as r:
            for i, (array, wanted) in enumerate(pairs):
                found = r.load(f"x{i}")
                self.assertEqual((found.dtype, found.shape), (wanted.dtype, wanted.shape))
                self.assertEqual(bytes_of(found), bytes_of(wanted))
                self.assertEqual(array.released, 1)

    def refused(self, value):
        with self.assertRaises(kedge.InvalidArgument) as caught, self.engine.checkpoint("refused") as c:
            c.save("x", value)
        return str(caught.exception)

    def refused_out(self, out):
        self.save(np.zeros(3))
        with self.assertRaises(kedge.InvalidArgument) as caught:
            self.loaded(out)
        return str(caught.exception)
