"""dlpack_gpu_test.py FAKE_DRIVER: arrays of GPUs that are known by DLPack only, in the order of streams, over a fake
CUDA driver (mpi_tests/unit/device/fake_cuda.cpp)."""

import ctypes
import sys
import unittest
import unittest.mock

import dlpack_arrays as dl
import numpy as np
from dlpack_arrays import SHAPES, Case, filled

from kedge import _kedge

FAKE = ctypes.CDLL(sys.argv.pop(1))
FAKE.fake_cuda_allocate.restype = ctypes.c_void_p
FAKE.fake_cuda_allocate.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_bool]
FAKE.fake_cuda_contents.restype = ctypes.c_void_p
FAKE.fake_cuda_contents.argtypes = [ctypes.c_void_p]
KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
FAKE.fake_cuda_launch.argtypes = [ctypes.c_void_p, KERNEL, ctypes.c_void_p]


class OnGpu(dl.Array):
    """``contents`` is what the GPU sees. ``late`` is work on it that is not done yet: as the standard says, it is ordered
    before the stream that ``__dlpack__`` is given, so that it is done when that stream is waited for."""

    def __init__(self, value, *, device=dl.CUDA, late=None, **told):
        self.address = FAKE.fake_cuda_allocate(max(value.nbytes, 1), 0, False)
        inside = (ctypes.c_byte * max(value.nbytes, 1)).from_address(FAKE.fake_cuda_contents(self.address))
        self.contents = np.frombuffer(inside, dtype=value.dtype, count=value.size).reshape(value.shape)
        self.contents[...] = value
        self.late = late
        super().__init__(self.contents, device=device, **{"data": self.address, **told})

    def __dlpack__(self, *, stream=None, **asked):
        if self.late is not None:
            FAKE.fake_cuda_launch(stream, self.late, None)
        return super().__dlpack__(stream=stream, **asked)


@unittest.skipUnless(_kedge.HAS_CUDA, "this Kedge was built without CUDA")
class OfGpus(Case):
    def setUp(self):
        FAKE.fake_cuda_begin()
        self.addCleanup(FAKE.fake_cuda_reset)
        super().setUp()

    def test_come_back_and_are_loaded_into(self):
        for device in (dl.CUDA, dl.CUDA_MANAGED):
            values = [filled(shape, dtype) for dtype in ("int8", "uint16", "float32", "complex128", "bool") for shape in SHAPES]
            pairs = [(OnGpu(value, device=device), value) for value in values]
            self.check(*pairs)
            with self.engine.restart() as r:
                for i, (array, value) in enumerate(pairs):
                    array.contents[...] = 0
                    self.assertIs(r.load(f"x{i}", out=array), array)
                    np.testing.assert_array_equal(array.contents, value)
                    self.assertEqual(array.released, 2)

    def test_are_read_after_what_they_were_given(self):
        for device in (dl.CUDA, dl.CUDA_MANAGED):
            others = []
            other = KERNEL(lambda _: others.append("done"))
            array = OnGpu(np.zeros(4), device=device)
            late = KERNEL(lambda _, array=array: array.contents.fill(7))
            array.late = late
            FAKE.fake_cuda_launch(2, other, None)
            self.check((array, np.full(4, 7.0)))
            self.assertEqual(array.asked[-1]["stream"], 1)
            self.assertEqual(others, [])  # what the program does besides is not waited for

    def test_are_written_after_what_they_were_given(self):
        self.save(np.full(4, 3.0))
        array = OnGpu(np.zeros(4))
        late = KERNEL(lambda _, array=array: array.contents.fill(7))
        array.late = late
        self.loaded(array)
        np.testing.assert_array_equal(array.contents, np.full(4, 3.0))

    def test_begin_behind_their_address(self):
        value = filled((6, 8))
        self.check(
            (OnGpu(value, shape=(3, 8), byte_offset=2 * 8 * 8), value[2:5]),
            (OnGpu(value, shape=(1, 8), strides=(800, 1)), value[:1]),
        )

    def test_are_refused_in_words(self):
        value = filled((6, 8))
        for told in ({"shape": (8, 6), "strides": (1, 8)}, {"shape": (6, 4), "strides": (8, 2)}):
            array = OnGpu(value, **told)
            self.assertIn("'x' is not C-contiguous", self.refused(array))
            self.assertEqual(array.released, 1)
            self.assertIn("out of 'x' is not C-contiguous", self.refused_out(OnGpu(value, **told)))
        self.assertIn("read-only", self.refused_out(OnGpu(np.zeros(3), flags=dl.READ_ONLY)))
        self.assertIn("region 'x': cannot copy", self.refused(OnGpu(np.zeros(3), shape=(4000,))))

    def test_are_converted_if_need_be(self):
        class Converted(OnGpu):
            converted = 0

            def __array__(self, dtype=None, copy=None):
                self.converted += 1
                return np.array(self.contents.T)

        value = filled((6, 8))
        near, turned, far = Converted(value), Converted(value, shape=(8, 6), strides=(1, 8)), Converted(value)
        self.check((near, value), (turned, value.T))
        with unittest.mock.patch.object(_kedge, "HAS_CUDA", False):
            self.save(far)
        np.testing.assert_array_equal(self.loaded(), value.T)
        self.assertEqual((near.converted, turned.converted, far.converted), (0, 1, 1))

    def test_are_known_by_the_cuda_array_interface_first(self):
        class Both(OnGpu):
            @property
            def __cuda_array_interface__(self):
                return {"shape": self.contents.shape, "typestr": self.contents.dtype.str, "data": (self.address, False),
                        "version": 3, "stream": 1}  # fmt: skip

            def __dlpack__(self, **asked):
                raise AssertionError("not by DLPack")

        array = Both(np.arange(5.0))
        self.save(array)
        np.testing.assert_array_equal(self.loaded(), np.arange(5.0))
        self.assertIs(self.loaded(array), array)

    def test_are_known_by_dlpack_where_that_interface_has_no_stream(self):
        """As JAX's, which may have yet to compute what it points to."""

        class Unordered(OnGpu):
            mask = {}

            @property
            def __cuda_array_interface__(self):
                return {"shape": self.contents.shape, "typestr": self.contents.dtype.str, "data": (0, False), "version": 2,
                        **self.mask}  # fmt: skip

        class Raises(OnGpu):
            @property
            def __cuda_array_interface__(self):
                raise ValueError("no, and not by an AttributeError")

        for kind in (Unordered, Raises):
            array = kind(np.arange(5.0))
            self.save(array)
            np.testing.assert_array_equal(self.loaded(), np.arange(5.0))
        array = Unordered(np.arange(5.0))
        array.mask = {"mask": np.zeros(5)}
        self.assertIn("has a mask", self.refused(array))


@unittest.skipIf(_kedge.HAS_CUDA, "this Kedge was built with CUDA")
class WithoutCuda(Case):
    def test_are_refused_in_words(self):
        FAKE.fake_cuda_begin()
        self.addCleanup(FAKE.fake_cuda_reset)
        self.assertIn("Kedge was built without CUDA", self.refused(OnGpu(np.zeros(3))))


if __name__ == "__main__":
    unittest.main()
