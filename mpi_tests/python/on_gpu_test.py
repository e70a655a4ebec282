"""Arrays of PyTorch, CuPy and JAX in the memory of a real GPU, in each way that Kedge copies them. Where PyTorch finds no
GPU it says so and exits with 77; with the argument `cpu` it does with tensors of the host what it can."""

import os
import sys
import tempfile
import unittest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX leaves memory to the others

import numpy as np  # noqa: E402
import place  # noqa: E402

place.need("torch")
import torch  # noqa: E402

import kedge  # noqa: E402
from kedge import _kedge, communicators  # noqa: E402

DEVICE = sys.argv.pop(1) if sys.argv[1:2] == ["cpu"] else "cuda"
WAYS = {"Direct": {"device.path": "auto"}, "ByBuffers": {"device.path": "buffers"}, "Snapshot": {"device.snapshot": True}}
DTYPES = (torch.int8, torch.int32, torch.int64, torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64,
          torch.complex64, torch.bool)
MIB = 1 << 20


class Case(unittest.TestCase):
    def setUp(self):
        path = self.enterContext(tempfile.TemporaryDirectory(dir=os.environ.get("KEDGE_TEST_GPU_STORE", "/dev/shm")))
        options = {"store.path": f"{path}/store", "persistent.path": f"{path}/prefix", "persistent.every": 0,
                   "log.level": "warning", **self.way}
        try:
            self.engine = self.enterContext(kedge.Engine(options, communicator=communicators.single_process()))
        except kedge.InvalidArgument as error:
            self.assertIn("there is no option", str(error))
            self.skipTest(f"this Kedge has no option {', '.join(self.way)}")

    def save(self, **arrays):
        with self.engine.checkpoint("t") as c:
            for name, array in arrays.items():
                c.save(name, array)

    def loaded(self, out=None):
        with self.engine.restart() as r:
            return r.load("x", out=out) if out is not None else r.load("x")

    def check(self, **tensors):
        """Three times, as the same structure is copied in other ways than a new one."""
        for turn in range(3):
            self.save(**tensors)
            with self.engine.restart() as r:
                for name, tensor in tensors.items():
                    out = torch.empty_like(tensor)
                    self.assertIs(r.load(name, out=out), out)
                    self.assertTrue(torch.equal(out, tensor), (name, turn))
                    self.assertTrue(torch.equal(r.load_tensor(name), tensor.cpu()), (name, turn))


class Tensors:
    def test_come_back_whatever_their_type_and_shape(self):
        tensors = {f"{str(dtype)[6:]}-{len(shape)}-{shape[:1]}": torch.randint(0, 2, shape, device=DEVICE).to(dtype)
                   for dtype in DTYPES for shape in ((), (0,), (5,), (2, 3, 4))}
        self.check(**tensors)

    def test_large_ones_come_back_beside_small_and_those_of_the_host(self):
        large = torch.randn(64 * MIB // 4 + 1, device=DEVICE)
        tensors = {"large": large, "behind": large[1:], "halves": large.to(torch.bfloat16), "small": torch.ones(3, device=DEVICE),
                   "host": torch.randn(MIB), "pinned": torch.empty(MIB, pin_memory=DEVICE == "cuda").fill_(7)}
        self.check(**tensors)

    def test_that_are_not_contiguous_come_back(self):
        tensor = torch.randn(300, 400, device=DEVICE)
        self.check(turned=tensor.t(), rows=tensor[::2], columns=tensor[:, 3:7])
        self.save(x=tensor)
        out = torch.zeros(400, 300, device=DEVICE).t()
        self.assertTrue(torch.equal(self.loaded(out), tensor))

    def test_may_be_changed_when_commit_has_returned(self):
        tensor = torch.empty(16 * MIB, device=DEVICE)
        for number in range(1, 6):
            tensor.fill_(number)
            self.save(x=tensor)
            tensor.zero_()
            self.engine.wait("t", "local")
            self.assertTrue(torch.equal(self.loaded(tensor), torch.full_like(tensor, number)), number)

    def test_of_a_state_come_back_with_what_they_share(self):
        weight = torch.randn(1000, 100, device=DEVICE)
        state = {"weight": weight, "tied": weight, "row": weight[3], "step": 7, "host": torch.arange(5)}
        with self.engine.checkpoint("t") as c:
            c.save_state("training", state)
        with self.engine.restart() as r:
            found = r.load_state("training", map_location=DEVICE)
        self.assertEqual((found["step"], found["weight"].device.type), (7, DEVICE))
        self.assertTrue(torch.equal(found["weight"], weight) and torch.equal(found["row"], weight[3]))
        self.assertEqual(found["tied"].data_ptr(), found["weight"].data_ptr())

    @unittest.skipIf(DEVICE == "cpu", "streams are of GPUs")
    def test_are_saved_and_loaded_after_what_the_stream_was_given(self):
        stream = torch.cuda.Stream()
        tensor = torch.zeros(4 * MIB, device=DEVICE)
        torch.cuda.synchronize()
        for number in range(1, 4):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(200_000_000)  # cycles
                tensor.fill_(number)
                self.save(x=tensor)
                torch.cuda._sleep(200_000_000)
                tensor.fill_(99)
                self.loaded(tensor)
                self.assertTrue(torch.equal(tensor, torch.full_like(tensor, number)), number)


class OtherLibraries:
    def test_cupy(self):
        try:
            import cupy
        except ImportError as error:
            self.skipTest(f"no CuPy: {error}")
        managed = cupy.ndarray((MIB,), dtype=np.float32, memptr=cupy.cuda.malloc_managed(4 * MIB))
        managed[...] = 3
        arrays = [cupy.arange(12.0).reshape(3, 4), cupy.arange(8 * MIB, dtype=cupy.int32), managed, cupy.zeros((0, 3))]
        for array in arrays * 2:
            self.save(x=array)
            np.testing.assert_array_equal(self.loaded(), cupy.asnumpy(array))
            out = cupy.zeros_like(array)
            self.assertIs(self.loaded(out), out)
            np.testing.assert_array_equal(cupy.asnumpy(out), cupy.asnumpy(array))
        with cupy.cuda.Stream(non_blocking=True):
            self.save(x=cupy.arange(8 * MIB) * 2 + 1)
        np.testing.assert_array_equal(self.loaded(), np.arange(8 * MIB) * 2 + 1)

    def test_jax(self):
        try:
            import jax
        except ImportError as error:
            self.skipTest(f"no JAX: {error}")
        if jax.default_backend() != "gpu":
            self.skipTest(f"JAX computes on {jax.default_backend()}")
        for number in range(3):
            array = jax.numpy.arange(float(4 * MIB)) * 2 + number  # which may have yet to be computed
            self.save(x=array)
            np.testing.assert_array_equal(self.loaded(), np.asarray(array))
        self.save(x=jax.numpy.ones((3, 4), dtype="bfloat16"))
        with self.engine.restart() as r, self.assertRaises(kedge.InvalidArgument):
            r.load("x", out=array)


for name, way in WAYS.items():
    for kind in (Tensors, OtherLibraries) if DEVICE == "cuda" else (Tensors,):
        globals()[f"{kind.__name__}{name}"] = type(f"{kind.__name__}{name}", (kind, Case), {"way": way})

if __name__ == "__main__":
    if DEVICE == "cuda" and not (torch.cuda.is_available() and _kedge.HAS_CUDA):
        print("skipped: PyTorch finds no CUDA device" if _kedge.HAS_CUDA else "skipped: this Kedge was built without CUDA")
        sys.exit(77)
    unittest.main()
