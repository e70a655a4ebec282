"""PyTorch tensors of every type come back with every bit, float8 too; conjugates and negated views are saved as they
look; one that cannot be saved is named."""

import importlib.util
import types
import unittest

import numpy as np
import place

place.need("torch")
import torch  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

import kedge  # noqa: E402
from kedge import communicators  # noqa: E402
from kedge._transport import Transport  # noqa: E402


class Given(str):
    pass


class Tensors(unittest.TestCase):
    def setUp(self):
        self.path = self.enterContext(place.directory())
        self.engine = kedge.Engine(place.options(self.path), communicator=communicators.single_process())

    def save(self, **tensors):
        with self.engine.checkpoint("t") as c:
            for name, tensor in tensors.items():
                c.save(name, tensor)

    def check(self, tensor):
        self.save(x=tensor)
        with self.engine.restart() as r:
            loaded = r.load_tensor("x")
            out = torch.empty_like(tensor.detach())
            self.assertIs(r.load("x", out=out), out)
        for found in (loaded, out):
            self.assertEqual((found.dtype, found.shape), (tensor.dtype, tensor.shape))
            self.assertTrue(torch.equal(found, tensor.detach()), tensor.dtype)

    def test_every_dtype_comes_back(self):
        for dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32,
                      torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
                      torch.complex128, torch.bool):
            for shape in ((), (0,), (5,), (2, 3, 4)):
                self.check(torch.randint(0, 2, shape).to(dtype))

    def test_every_bit_of_the_types_of_eight_bits_comes_back(self):
        bits = torch.arange(256, dtype=torch.int16).to(torch.uint8)  # NaN in all its forms among them
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            every = bits.view(dtype)
            for tensor in (every, every[7], every[:0], every[:0].reshape(3, 0),
                           every.reshape(4, 8, 8), every.reshape(16, 16).t(), every[3::5]):
                self.check_bits(tensor)

    def check_bits(self, tensor):
        """PyTorch compares no float8, and NaN with nothing."""
        wanted = tensor.contiguous().view(torch.uint8)
        self.save(x=tensor)
        strided = torch.zeros((*tensor.shape, 2), dtype=torch.uint8).view(tensor.dtype)[..., 1]
        with self.engine.restart() as r:
            self.assertEqual(r.regions["x"].dtype, str(tensor.dtype).removeprefix("torch."))
            loaded = [r.load_tensor("x"), r.load("x", out=torch.empty_like(tensor)), r.load("x", out=strided)]
        for found in loaded:
            self.assertEqual((found.dtype, found.shape), (tensor.dtype, tensor.shape))
            self.assertTrue(torch.equal(found.contiguous().view(torch.uint8), wanted), tensor.dtype)

    def test_numpy_has_small_floats_with_ml_dtypes_only(self):
        self.save(x=torch.ones(3).to(torch.float8_e5m2))
        if importlib.util.find_spec("ml_dtypes") is None:
            with self.assertRaisesRegex(kedge.InvalidArgument, "float8_e5m2.*load_tensor"), self.engine.restart() as r:
                r.load("x")
            return
        import ml_dtypes

        for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
            value = np.arange(256, dtype=np.uint8).view(dtype)
            for array in (value, value[9:10].reshape(()), value[:0], value[::3]):
                self.save(x=array)
                with self.engine.restart() as r:
                    loaded, tensor = r.load("x"), r.load_tensor("x")
                self.assertEqual((loaded.dtype, loaded.shape), (array.dtype, array.shape))
                self.assertEqual(loaded.tobytes(), array.tobytes())
                self.assertEqual(bytes(tensor.reshape(-1).view(torch.uint8).tolist()), array.tobytes())

    def test_views_conjugates_and_gradients(self):
        base = torch.randn(6, 8)
        for tensor in (base.t(), base[::2, ::3], base[1:], base.expand(3, 6, 8), base.requires_grad_().t(),
                       torch.nn.Parameter(torch.randn(3))):
            self.check(tensor)
        self.check(torch.randn(4, dtype=torch.complex64).conj())
        self.check(torch.randn(4, dtype=torch.complex64).conj().imag)  # negated

    def test_conjugates_are_loaded_into_as_they_look(self):
        value = torch.randn(4, dtype=torch.complex64)
        self.save(x=value)
        memory = torch.zeros(4, dtype=torch.complex64)
        with self.engine.restart() as r:
            r.load("x", out=memory.conj())
        self.assertTrue(torch.equal(memory.conj().resolve_conj(), value))

    def test_what_holds_no_plain_memory_is_refused_in_words(self):
        for tensor, words in ((torch.empty(3, device="meta"), "meta"), (torch.eye(3).to_sparse(), "to_dense"),
                              (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), "int_repr"),
                              (torch.zeros(2, dtype=torch.uint8).view(torch.float8_e4m3fnuz), "uint8")):
            with self.assertRaisesRegex(kedge.InvalidArgument, words):
                self.save(x=tensor)

    def test_a_tensor_that_cannot_be_saved_is_named(self):
        with FakeTensorMode():
            fake = torch.empty(3)
        lazy = torch.nn.LazyLinear(3).weight
        for tensor, words in ((torch.ones(3).to_mkldnn(), "MKL-DNN.*to_dense"), (lazy, "not initialized"), (fake, "fake tensor")):
            with self.assertRaisesRegex(kedge.InvalidArgument, f"'decoder.embedding' is .*{words}"):
                self.save(**{"decoder.embedding": tensor})
            for state in ({"model": {"first": torch.ones(1), "decoder.embedding": tensor}, "step": 1},
                          {"model": types.SimpleNamespace(embedding=[0, tensor])}):
                place = r"\['decoder.embedding'\]" if "step" in state else r"\.embedding\[1\]"
                with self.assertRaisesRegex(kedge.InvalidArgument, rf"training\['model'\]{place} is .*{words}"):
                    with self.engine.checkpoint("t") as c:
                        c.save_state("training", state)
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        with self.assertRaisesRegex(kedge.InvalidArgument, r"'x' is a nested tensor: save those of its unbind\(\)"):
            self.save(x=nested)
        memory = torch.ones(4)
        both = r"state\['a'\] of torch.float32 and state\['b'\]\[0\] of torch.int32 share memory"
        with self.assertRaisesRegex(kedge.InvalidArgument, both), self.engine.checkpoint("t") as c:
            c.save_state("state", {"a": memory, "b": [memory.view(torch.int32)]})

    def test_tensors_and_arrays_are_the_same_regions(self):
        self.save(x=torch.arange(6.0, dtype=torch.float64))
        with self.engine.restart() as r:
            self.assertEqual(r.load("x").tolist(), [0, 1, 2, 3, 4, 5])
            self.assertEqual(r.regions["x"].dtype, "float64")

    def test_a_state_comes_back_as_it_was(self):
        model = torch.nn.Linear(4, 3)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 7, "tied": model.weight}
        with self.engine.checkpoint("t") as c:
            c.save_state("training", state)
            c.save("beside", 1)
        with self.engine.restart() as r:
            self.assertEqual((r.regions["training/model/weight"].dtype, r.regions["training/model/weight"].shape),
                             ("float32", (3, 4)))
            self.assertNotIn("training/tied", r.regions)  # the same memory
            found = r.load_state("training")
            on_meta = r.load_state("training", map_location="meta")
        self.assertEqual(str(found), str(state))
        self.assertEqual(found["tied"].data_ptr(), found["model"]["weight"].data_ptr())
        self.assertTrue(on_meta["model"]["weight"].is_meta)

    def test_a_state_that_is_not_there_or_not_allowed(self):
        with self.engine.checkpoint("t") as c:
            c.save_state("training", {"path": Given("x")}, allow_pickle=True)
            c.save("beside", 1)
        with self.engine.restart() as r:
            for name in ("trainin", "beside", ""):
                with self.assertRaisesRegex(kedge.NotFound, f"no state '{name}'"):
                    r.load_state(name)
            with self.assertRaisesRegex(kedge.InvalidArgument, "training holds __main__.Given.*allow_pickle"):
                r.load_state("training")
            self.assertEqual(str(r.load_state("training", allow_pickle=True)["path"]), "x")

    def test_a_state_that_cannot_be_pickled_drops_the_checkpoint(self):
        with self.assertRaisesRegex(kedge.InvalidArgument, "cannot be pickled"), self.engine.checkpoint("t") as c:
            c.save_state("training", {"f": lambda: 0})
        with self.engine.restart() as r:
            self.assertFalse(r)


class Group:
    """As much of a process group as a transport asks for before it sends."""

    def rank(self):
        return 0

    def size(self):
        return 2


class Channels(unittest.TestCase):
    def test_channels_of_one_group_have_tags_of_their_own(self):
        transport = Transport(Group())
        channels = [transport.open_channel(1), transport.open_channel(1)]
        channels += [channels[0].open_channel(1), Transport(transport._group).open_channel(1)]
        first_tags = sorted(channel._first_tag for channel in channels)
        self.assertTrue(all(b - a >= 4096 for a, b in zip(first_tags, first_tags[1:])), first_tags)


if __name__ == "__main__":
    unittest.main()
