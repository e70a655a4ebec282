"""Arrays that are known by DLPack only, before 1.0 and since, of every type and layout in memory of the host: released
once, after the copy, written to only if they are writable; others are refused in words."""

import unittest
from array import array as plain_array

import dlpack_arrays as dl
import numpy as np
import place
from dlpack_arrays import TYPES, Case, filled

import kedge


class OfTheHost(Case):
    def test_come_back_whatever_their_type_and_shape(self):
        values = [filled(shape, dtype) for dtype in TYPES for shape in dl.SHAPES]
        for kind in (dl.Array, dl.OldArray):
            self.check(*((kind(value), value) for value in values))

    def test_of_the_small_floats_every_bit_comes_back(self):
        for name, unsigned in (("bfloat16", "uint16"), ("float8_e4m3fn", "uint8"), ("float8_e5m2", "uint8")):
            bits = np.arange(256, dtype=unsigned) * np.dtype(unsigned).type(251)
            self.save(dl.small_floats(name, bits))
            out = dl.small_floats(name, np.zeros(256, unsigned))
            with self.engine.restart() as r:
                self.assertEqual(r.regions["x"].dtype, name)
                self.assertIs(r.load("x", out=out), out)
            np.testing.assert_array_equal(out.value, bits)

    def test_are_kept_until_they_are_copied(self):
        for flipped in (False, True):
            value = filled((50, 40))
            wanted = value.T.copy() if flipped else value.copy()
            lent = dl.Array(value.T if flipped else value, on_release=lambda value=value: value.fill(-1))
            self.check((lent, wanted))

    def test_need_not_be_contiguous(self):
        value = filled((6, 8))
        views = (value.T, value[::2, 1::3], value[::-1], value[:, ::-2], value[2:3, ::4], value[:, :0],
                 np.broadcast_to(value[0], (3, 8)))  # fmt: skip
        self.check(*((dl.Array(view), view) for view in views))
        for name, strides in (("bfloat16", (1, 3)), ("float8_e5m2", (1, 3))):
            bits = np.arange(12, dtype="uint16" if name == "bfloat16" else "uint8").reshape(4, 3)
            self.save(dl.small_floats(name, bits, shape=(3, 4), strides=strides))
            out = dl.small_floats(name, np.zeros_like(bits.T, order="C"))
            self.loaded(out)
            np.testing.assert_array_equal(out.value, bits.T)

    def test_may_begin_behind_their_address_and_have_no_strides(self):
        value = filled((6, 8))
        self.check(
            (dl.Array(value, shape=(4, 8), byte_offset=2 * 8 * 8), value[2:]),
            (dl.Array(value, strides=None), value),
            (dl.Array(value, strides=None, shape=(), ndim=0, byte_offset=24), value[0, 3]),
            (dl.Array(value, strides=(8, 2), shape=(2, 4), byte_offset=8), value[:2, 1::2]),
            (dl.Array(value[:0], data=None, strides=None), value[:0]),
        )

    def test_are_loaded_into(self):
        value = filled((6, 8))
        self.save(value)
        for memory in (np.zeros((6, 8)), np.zeros((8, 6)).T, np.zeros((6, 16))[:, 1::2], np.zeros((6, 8))[::-1]):
            when_released = []
            out = dl.Array(memory, on_release=lambda memory=memory, seen=when_released: seen.append(memory.copy()))
            self.assertIs(self.loaded(out), out)
            np.testing.assert_array_equal(when_released, [value])
            self.assertIs(out.asked[-1]["copy"], False)
        np.testing.assert_array_equal(self.loaded(out=dl.Array(np.zeros((6, 8)))).value, value)
        with self.assertRaises(kedge.Mismatch):
            self.loaded(out=dl.Array(np.zeros((8, 6))))

    def test_are_not_loaded_into_if_that_may_be_wrong(self):
        for told, why in (
            ({"flags": dl.READ_ONLY}, "out of 'x' is read-only: pass a writable array"),
            ({"flags": dl.IS_COPIED}, "a copy"),
            ({"strides": (0,)}, "overlap"),
            ({"ndim": 2, "shape": (2, 2), "strides": (1, 1)}, "overlap"),
        ):
            out = dl.Array(np.zeros(3), **told)
            self.assertIn(why, self.refused_out(out))
            self.assertEqual((out.value.tolist(), out.released), ([0, 0, 0], 1))
        out = dl.OldArray(np.zeros(3))
        self.assertIn("cannot mark memory as writable", self.refused_out(out))
        self.assertEqual((out.value.tolist(), out.released), ([0, 0, 0], 1))
        flags = (dl.READ_ONLY, dl.IS_COPIED, dl.READ_ONLY | dl.IS_COPIED)  # may be read all the same
        self.check(*((dl.Array(np.arange(3.0), flags=flag), np.arange(3.0)) for flag in flags))

    def test_are_asked_as_the_standard_says(self):
        array, old = dl.Array(np.zeros(3)), dl.OldArray(np.zeros(3))
        self.check((array, np.zeros(3)), (old, np.zeros(3)))
        self.assertEqual(array.asked, [{"stream": None, "max_version": (1, 0), "copy": None}])
        self.assertEqual(old.asked, [{"stream": None}])
        self.check((dl.Array(np.arange(3.0), version=(1, 7)), np.arange(3.0)))

    def test_may_be_older_than_asked_for_and_have_nothing_to_release(self):
        class Older(dl.Array):
            def export(self, kind):
                return super().export(dl.Managed)

        self.check((Older(np.arange(3.0)), np.arange(3.0)))
        self.assertIn("cannot mark memory as writable", self.refused_out(Older(np.zeros(3))))
        for kind in (dl.Array, dl.OldArray):
            self.save(kind(np.arange(3.0), has_deleter=False))
            np.testing.assert_array_equal(self.loaded(), np.arange(3.0))

    def test_memory_that_is_pinned_is_of_the_host(self):
        value = filled((4, 5))
        for version in (dl.Array, dl.OldArray):
            array = version(value.T, device=dl.CUDA_HOST)
            self.check((array, value.T))
            self.assertIsNone(array.asked[-1]["stream"])
        self.save(value.T)
        out = dl.Array(np.zeros((5, 4)), device=dl.CUDA_HOST)
        np.testing.assert_array_equal(self.loaded(out).value, value.T)


class OfOtherLibraries(Case):
    def test_come_back_from_numpy(self):
        values = [filled((4, 6), dtype) for dtype in TYPES]
        views = [view for value in values for view in (value, value.T, value[::2, ::-1], value[1, 2:3].reshape(()))]
        self.check(*((dl.Wrapped(view), view) for view in views))
        out = np.zeros((3, 4)).T
        self.save(np.ones((4, 3)))
        if np.lib.NumpyVersion(np.__version__) < "2.1.0":
            self.assertIn("cannot mark memory as writable", self.refused_out(dl.Wrapped(out)))
            return
        self.loaded(dl.Wrapped(out))
        np.testing.assert_array_equal(out, np.ones((4, 3)))
        out.flags.writeable = False
        self.assertIn("read-only", self.refused_out(dl.Wrapped(out)))

    @unittest.skipUnless(place.has("torch"), "PyTorch is not installed")
    def test_come_back_from_pytorch(self):
        import torch

        for dtype in (torch.bfloat16, torch.float32, torch.complex64, torch.bool, torch.int16):
            tensor = torch.randint(0, 2, (4, 6)).to(dtype)
            for view in (tensor, tensor.T, tensor[::2, 1:], tensor[0, 0], tensor[:, :0]):
                self.save(dl.Wrapped(view))
                with self.engine.restart() as r:
                    found = r.load_tensor("x")
                self.assertEqual((found.dtype, found.shape), (view.dtype, view.shape))
                self.assertTrue(torch.equal(found, view))


class Preferred(Case):
    """What else an array may be known by."""

    class Never(dl.Array):
        def __dlpack__(self, **asked):
            raise AssertionError("not by DLPack")

    def test_a_buffer_and_the_array_interface(self):
        class Interface(self.Never):
            @property
            def __array_interface__(self):
                return self.value.__array_interface__

        class Struct(self.Never):
            @property
            def __array_struct__(self):
                return self.value.__array_struct__

        class Buffer(plain_array):
            def __dlpack_device__(self):
                return (dl.CPU, 0)

            def __dlpack__(self, **asked):
                raise AssertionError("not by DLPack")

        for value in (Interface(np.arange(3)), Struct(np.arange(3)), Buffer("q", (0, 1, 2))):
            self.save(value)
            np.testing.assert_array_equal(self.loaded(), np.arange(3))

    def test_a_conversion_to_numpy_only_where_dlpack_does_not_lead(self):
        class Converted(dl.Array):
            converted = 0

            def __array__(self, dtype=None, copy=None):
                self.converted += 1
                return np.array(self.value)

        class Sharded(Converted):
            def __dlpack_device__(self):
                raise BufferError("is on several devices")

        class NotNow(Converted):
            def __dlpack__(self, **asked):
                raise BufferError("not now")

        class Rare(Converted):
            def __dlpack__(self, **asked):
                raise RuntimeError("no type of DLPack")

        near, far = Converted(np.arange(3)), Converted(np.arange(3), device=dl.METAL)
        for array, count in ((near, 0), (far, 1), (Sharded(np.arange(3)), 1), (NotNow(np.arange(3)), 1),
                             (Rare(np.arange(3)), 1)):  # fmt: skip
            self.save(array)
            np.testing.assert_array_equal(self.loaded(), np.arange(3))
            self.assertEqual(array.converted, count)
        self.assertEqual((near.released, far.released), (1, 0))


class Refused(Case):
    def test_memory_of_other_devices(self):
        for device, word in ((dl.ROCM, "ROCm"), (dl.METAL, "Metal"), (14, "oneAPI"), (77, "device type 77")):
            said = self.refused(dl.Array(np.zeros(3), device=device))
            self.assertIn("'x' is in memory of " + word, said)
            self.assertIn("copy it to host memory", said)
            self.assertIn("out of 'x' is in memory of " + word, self.refused_out(dl.Array(np.zeros(3), device=device)))

    def test_memory_that_is_not_where_it_was_said_to_be(self):
        for said, device in ((dl.CPU, dl.CUDA), (dl.CUDA, dl.CPU), (dl.CPU, dl.ROCM)):
            array = dl.Array(np.zeros(3), device=said, capsule_device=device)
            self.assertIn("__dlpack_device__", self.refused(array))
            self.assertEqual(array.released, 1)

    def test_types_that_kedge_does_not_have(self):
        for told, word in (
            ({"code": 0, "bits": 4}, "int4"), ({"code": 17, "bits": 4}, "float4_e2m1fn"), ({"code": 5, "bits": 32}, "complex32"),
            ({"code": 3, "bits": 64}, "DLPack type code 3 (64 bits)"), ({"code": 99, "bits": 8}, "DLPack type code 99 (8 bits)"),
            ({"bits": 32, "lanes": 2}, "float32x2"),
        ):  # fmt: skip
            array = dl.Array(np.zeros(3), **told)
            said = self.refused(array)
            self.assertIn(f"has elements of {word}, for which Kedge has no type", said)
            self.assertEqual(array.released, 1)
            self.assertIn(word, self.refused_out(dl.Array(np.zeros(3), **told)))

    def test_versions_that_kedge_does_not_know_are_not_looked_into(self):
        newer = dl.Array(np.zeros(3), version=(2, 0), ndim=-1)
        self.assertIn("DLPack 2.0", self.refused(newer))
        self.assertEqual(newer.released, 1)

    def test_what_is_not_taken_is_released_at_once(self):
        newer = dl.Array(np.zeros(3), version=(2, 0))
        with self.assertRaises(kedge.InvalidArgument), self.engine.checkpoint("refused") as c:
            try:
                c.save("x", newer)
            finally:
                self.assertEqual(newer.released, 1)

    def test_what_is_not_a_capsule_or_was_taken_already(self):
        class Nothing(dl.Array):
            def __dlpack__(self, **asked):
                return "nothing"

        class Again(dl.Array):
            capsule = None

            def __dlpack__(self, **asked):
                self.capsule = self.capsule or super().__dlpack__(**asked)
                return self.capsule

        self.assertIn("capsule", self.refused(Nothing(np.zeros(3))))
        again = Again(np.zeros(3))
        self.check((again, np.zeros(3)))
        self.assertIn("capsule", self.refused(again))
        again.capsule = None
        self.assertEqual(again.released, 1)

    def test_what_its_library_does_not_export(self):
        class Unwilling(dl.Array):
            error = BufferError("it is a dream")

            def __dlpack__(self, **asked):
                raise self.error

        class Nowhere(dl.Array):
            def __dlpack_device__(self):
                raise BufferError("it is a dream")

        class Confused(Unwilling):
            error = TypeError("it is a dream")

        for kind in (Unwilling, Nowhere, Confused):
            said = self.refused(kind(np.zeros(3)))
            self.assertIn("'x' could not be exported through DLPack", said)
            self.assertIn("it is a dream): copy it to a NumPy array", said)
            self.assertIn("out of 'x' could not be exported", self.refused_out(kind(np.zeros(3))))


if __name__ == "__main__":
    unittest.main()
