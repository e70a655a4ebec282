"""Arrays of PyTorch and CuPy in the memory of GPUs, in each way of copying, over a fake CUDA driver
(mpi_tests/unit/device/fake_cuda.cpp): saved after what their stream was given, and free to change when commit has
returned."""

import ctypes
import sys
import unittest

import numpy as np
import place

import kedge
from kedge import _kedge, communicators

FAKE = ctypes.CDLL(sys.argv.pop(1))
FAKE.fake_cuda_allocate.restype = ctypes.c_void_p
FAKE.fake_cuda_allocate.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_bool]
FAKE.fake_cuda_contents.restype = ctypes.c_void_p
FAKE.fake_cuda_contents.argtypes = [ctypes.c_void_p]
KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
FAKE.fake_cuda_launch.argtypes = [ctypes.c_void_p, KERNEL, ctypes.c_void_p]


class OnGpu:
    """An array as CuPy's or Numba's: says where it is, and nothing else. ``contents`` is what the GPU sees."""

    def __init__(self, value, **told):
        value = np.asarray(value)
        self.address = FAKE.fake_cuda_allocate(max(value.nbytes, 1), 0, False)
        inside = (ctypes.c_byte * max(value.nbytes, 1)).from_address(FAKE.fake_cuda_contents(self.address))
        self.contents = np.frombuffer(inside, dtype=value.dtype, count=value.size).reshape(value.shape)
        self.contents[...] = value
        self.__cuda_array_interface__ = {
            "shape": value.shape, "typestr": value.dtype.str, "data": (self.address, False), "version": 3, "strides": None,
            "stream": 1, **told,
        }  # fmt: skip


class Case(unittest.TestCase):
    def setUp(self):
        FAKE.fake_cuda_begin()
        self.addCleanup(FAKE.fake_cuda_reset)
        self.path = self.enterContext(place.directory())
        self.engine = kedge.Engine(place.options(self.path), communicator=communicators.single_process())

    def refused(self, value):
        with self.assertRaises(kedge.InvalidArgument) as caught, self.engine.checkpoint("refused") as c:
            c.save("x", value)
        return str(caught.exception)


@unittest.skipUnless(_kedge.HAS_CUDA, "this Kedge was built without CUDA")
class Arrays(Case):
    def test_come_back_whatever_their_type_and_shape(self):
        for dtype in ("int8", "uint16", "float32", "float64", "complex128", "bool"):
            for shape in [(), (0,), (7,), (3, 4), (100, 1000)]:
                value = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
                array = OnGpu(value)
                with self.engine.checkpoint("t") as c:
                    c.save("x", array)
                array.contents[...] = 0
                with self.engine.restart() as r:
                    loaded = r.load("x")
                    self.assertEqual((loaded.dtype, loaded.shape), (value.dtype, value.shape))
                    np.testing.assert_array_equal(loaded, value)
                    self.assertIs(r.load("x", out=array), array)
                np.testing.assert_array_equal(array.contents, value)

    def test_are_saved_after_what_their_stream_was_given(self):
        for stream in (1, 2, None):
            array = OnGpu(np.zeros(4), stream=stream)

            @KERNEL
            def kernel(_, array=array):
                array.contents[...] = 7

            FAKE.fake_cuda_launch(stream or 2, kernel, None)
            with self.engine.checkpoint("t") as c:
                c.save("x", array)
            with self.engine.restart() as r:
                np.testing.assert_array_equal(r.load("x"), np.full(4, 7.0))

    def test_rows_of_a_larger_array_are_contiguous_and_columns_are_not(self):
        array = OnGpu(np.arange(12.0).reshape(3, 4), shape=(1, 4), strides=(800, 8))
        with self.engine.checkpoint("t") as c:
            c.save("x", array)
        with self.engine.restart() as r:
            np.testing.assert_array_equal(r.load("x"), np.arange(4.0).reshape(1, 4))
        self.assertIn("is not C-contiguous", self.refused(OnGpu(np.zeros((3, 4)), strides=(8, 24))))

    def test_what_cannot_be_saved_is_refused_in_words(self):
        self.assertIn("has a mask", self.refused(OnGpu(np.zeros(3), mask=OnGpu(np.zeros(3, dtype=bool)))))
        self.assertIn("for which Kedge has no type", self.refused(OnGpu(np.zeros(3), typestr=">f8")))
        self.assertIn("region 'x': cannot copy", self.refused(OnGpu(np.zeros(3), shape=(4000,))))
        self.assertIn("stream", self.refused(OnGpu(np.zeros(3), stream=12345)))
        with self.engine.checkpoint("t") as c:
            c.save("x", np.zeros(3))
        with self.engine.restart() as r, self.assertRaises(kedge.InvalidArgument) as caught:
            array = OnGpu(np.zeros(3))
            array.__cuda_array_interface__["data"] = (array.address, True)
            r.load("x", out=array)
        self.assertIn("read-only", str(caught.exception))


@unittest.skipIf(_kedge.HAS_CUDA, "this Kedge was built with CUDA")
class WithoutCuda(Case):
    def test_are_refused_in_words(self):
        self.assertIn("Kedge was built without CUDA", self.refused(OnGpu(np.zeros(3))))


if __name__ == "__main__":
    unittest.main()
