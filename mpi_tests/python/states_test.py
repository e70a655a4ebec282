"""States of PyTorch programs come back as from torch.save: tensors of every kind, shared memory, views, cycles;
torch.load reads the files; a tensor that cannot be saved is named by its place, and a planted pickle is not run."""

import collections
import enum
import io
import mmap
import os
import pickle
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import place

place.need("torch")
import torch  # noqa: E402

from kedge import InvalidArgument, _torch_files  # noqa: E402
from kedge._put_together import join_state  # noqa: E402
from kedge._states import split_state  # noqa: E402


class Named:
    """Nothing that may be loaded without permission."""

    def __init__(self, value):
        self.value = value


class History(list):
    pass


class Table(dict):
    pass


class Color(enum.Enum):
    RED = 1


class ByGetattr:
    def __init__(self, *what):
        self.what = what

    def __reduce__(self):
        return getattr, self.what


def bytes_of(memory):
    return torch.empty(0, dtype=torch.uint8).set_(memory).numpy().tobytes()


def through_memory(state, map_location=None, allow_pickle=False):
    taken = split_state(state)
    held = {storage.key: bytes_of(storage.on_host()) for storage in taken.storages}

    def read(key, size):
        assert len(held[key]) == size, (key, size)
        return torch.frombuffer(bytearray(held[key]), dtype=torch.uint8).untyped_storage() if size else (
            torch.UntypedStorage(0))

    return join_state(taken.pickled, read, map_location, allow_pickle, "a.pt")


def parts_of(taken):
    return [_torch_files.Part(storage.key, storage.on_host()) for storage in taken.storages]


def through_file(state, allow_pickle=False, mmap=False):
    taken = split_state(state)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "a.pt")
        _torch_files.write(path, taken.pickled, parts_of(taken), "mark")
        assert _torch_files.mark_of(path) == "mark"
        if mmap:
            return torch.load(path, weights_only=True, mmap=True)
        return _torch_files.load(path, None, allow_pickle)


def through_torch(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


def equal(found, wanted):
    """Also of the same type, shape, strides and place in a storage of the same size."""
    if isinstance(wanted, torch.Tensor):
        assert type(found) is type(wanted), (type(found), type(wanted))
        assert (found.dtype, found.shape, found.layout) == (wanted.dtype, wanted.shape, wanted.layout)
        assert found.requires_grad == wanted.requires_grad and found.__dict__ == wanted.__dict__
        if wanted.is_meta:
            assert found.is_meta
        elif wanted.layout is torch.strided and not wanted.is_quantized and not wanted.is_nested:
            assert found.stride() == wanted.stride()
            def raw(tensor):
                plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
                return bytes_of(plain.clone().untyped_storage())
            assert raw(found) == raw(wanted)
        else:
            assert str(found) == str(wanted)
    elif isinstance(wanted, dict):
        assert type(found) is type(wanted) and list(found) == list(wanted)
        for key in wanted:
            equal(found[key], wanted[key])
    elif isinstance(wanted, (list, tuple)):
        assert type(found) is type(wanted) and len(found) == len(wanted)
        for mine, other in zip(found, wanted):
            equal(mine, other)
    else:
        assert type(found) is type(wanted) and found == wanted, (found, wanted)


class States(unittest.TestCase):
    def check(self, state):
        wanted = through_torch(state)
        for found in (through_memory(state), through_file(state), through_memory(state, allow_pickle=True)):
            equal(found, wanted)
        return found

    def test_tensors_of_every_kind(self):
        base = torch.arange(24, dtype=torch.float32)
        complexes = torch.randn(4, dtype=torch.complex64)
        attributed = torch.ones(3)
        attributed.told = "by the user"
        states = {
            "dtypes": [torch.randint(0, 2, (5,)).to(kind) for kind in (
                torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64,
                torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.bool,
                torch.float8_e4m3fn, torch.float8_e5m2)],
            "shapes": [torch.tensor(3.0), torch.empty(0), torch.empty(3, 0), base.reshape(2, 3, 4)],
            "strides": [base.reshape(4, 6).t(), base[::5], base[7:9], base[3], torch.ones(1).expand(4, 5)],
            "views": [complexes.conj(), complexes.clone().imag, torch._neg_view(base)],
            "others": [torch.empty(3, device="meta"), base.to_sparse(), base.reshape(4, 6).to_sparse_csr(),
                       torch.quantize_per_tensor(base, 0.5, 0, torch.qint8), attributed],
            "parameters": [torch.nn.Parameter(base), torch.nn.Parameter(base[:2], requires_grad=False),
                           torch.ones(2, requires_grad=True)],
            "storages": [torch.nn.Buffer(torch.ones(3))],
        }
        for name, state in states.items():
            with self.subTest(name):
                self.check(state)

    def test_what_is_no_tensor(self):
        state = collections.OrderedDict({
            1: "a key that is no text", (2, "b"): None, "c/d": [1.5, True, 2**70, b"bytes", "\u00fc"], "": {"": ()},
            "set": {1, 2}, "size": torch.Size([2, 3]), "device": torch.device("cpu"), "dtype": torch.float16,
            "counted": collections.Counter("aab")})
        self.check(state)

    def test_a_state_that_holds_itself(self):
        state = {"t": torch.ones(2)}
        state["self"] = state
        for found in (through_memory(state), through_file(state)):
            self.assertIs(found["self"], found)
            equal(found["t"], state["t"])

    def test_shared_storages_are_stored_once_and_stay_shared(self):
        base = torch.arange(100, dtype=torch.float32)
        state = {"all": base, "part": base[10:20], "again": base, "weight": torch.nn.Parameter(base)}
        self.assertEqual([s.on_host().nbytes() for s in split_state(state).storages], [400])
        for found in (through_memory(state), through_file(state)):
            found["part"][0] = -1
            self.assertEqual(float(found["all"].detach()[10]), -1)
            self.assertEqual(float(found["weight"].detach()[10]), -1)

    def test_of_a_storage_only_what_is_needed_is_stored(self):
        base = torch.arange(1000, dtype=torch.float64)
        state = {"one": base[100:110], "other": base[105:130], "column": torch.arange(36.0).reshape(6, 6)[:, 2],
                 "nothing": base[500:500], "nothing before": base[50:50], "within": base[101:103]}
        taken = split_state(state)
        self.assertEqual([s.on_host().nbytes() for s in taken.storages], [30 * 8, 31 * 4])
        for found in (through_memory(state), through_file(state)):
            for name, tensor in state.items():
                self.assertTrue(torch.equal(found[name], tensor), name)
            self.assertEqual(found["one"].untyped_storage().nbytes(), 240)
            found["one"][5] = -1  # still one memory
            self.assertEqual(float(found["other"][0]), -1)

    def test_an_object_that_makes_tensors_when_it_is_pickled(self):
        class Making:
            def __reduce__(self):
                return tuple, ([torch.full((3,), 7.0)],)

        for found in (through_memory({"view": torch.arange(10.0)[2:4], "made": Making()}, allow_pickle=True),):
            self.assertTrue(torch.equal(found["view"], torch.tensor([2.0, 3.0])))
            self.assertTrue(torch.equal(found["made"][0], torch.full((3,), 7.0)))

    def test_an_object_that_is_pickled_in_another_way_each_time(self):
        base = torch.arange(10.0)

        class Rotating:
            turn = 0

            def __reduce__(self):
                Rotating.turn += 5
                return tuple, ([base[Rotating.turn - 5 : Rotating.turn - 3]],)

        found = through_memory({"turning": Rotating()}, allow_pickle=True)
        self.assertTrue(torch.equal(found["turning"][0], torch.tensor([0.0, 1.0])))

    def test_a_storage_that_is_saved_itself_is_whole(self):
        for base in (torch.arange(10, dtype=torch.float32), torch.arange(10, dtype=torch.uint8)):
            storage = base.untyped_storage() if base.dtype == torch.uint8 else base._typed_storage()
            found = through_memory({"view": base[2:4], "storage": storage})
            self.assertTrue(torch.equal(found["view"], base[2:4]))
            self.assertEqual(found["storage"].nbytes(), base.nbytes)

    def test_regions_are_named_by_the_way_to_them(self):
        shared = torch.ones(4)
        state = {"module": {"fc.weight": shared, "tied": shared}, "list": [torch.ones(1), {"x": torch.ones(1)}],
                 1: {"b": torch.ones(1)}, "1": torch.ones(1), "a/b": torch.ones(1), "..": torch.ones(1), "": torch.ones(1)}
        names = [storage.name for storage in split_state(state).storages]
        self.assertEqual(names, ["module/fc.weight", "list/0", "list/1/x", "1/b", "1~", "a_b", "_..", "_"])
        names = [storage.name for storage in split_state({"1": torch.ones(1), 1: {"b": torch.ones(1)}}).storages]
        self.assertEqual(names, ["1", "1~/b"])
        hidden = {"n": Named(torch.ones(3))}
        self.assertEqual([storage.name for storage in split_state(hidden).storages], ["storages/0"])

    def test_the_shape_of_a_tensor_is_kept_where_it_is_all_there_is(self):
        base = torch.ones(4, 5)
        self.assertEqual([s.shape for s in split_state([base]).storages], [(4, 5)])
        self.assertEqual([s.shape for s in split_state([base, base[1]]).storages], [(4, 5)])
        self.assertEqual([s.shape for s in split_state([base[1], base]).storages], [(20,)])

    def test_two_types_in_one_memory_are_refused_as_by_torch(self):
        base = torch.ones(4)
        with self.assertRaisesRegex(RuntimeError, "view the same data as different types"):
            through_torch([base, base.view(torch.int32)])
        with self.assertRaisesRegex(InvalidArgument, r"state\[0\] of torch.float32 and state\[1\] of torch.int32 share memory"):
            split_state([base, base.view(torch.int32)])
        memory = np.ones(4, dtype=np.float32)  # two storages of one memory
        with self.assertRaisesRegex(InvalidArgument, "share memory"):
            split_state([torch.from_numpy(memory), torch.from_numpy(memory.view(np.int32))])

    def test_what_cannot_be_pickled_raises(self):
        for value in (lambda: 0, self.enterContext(open(os.devnull))):
            with self.assertRaisesRegex(InvalidArgument, r"state\['value'\] is a .* cannot be pickled"):
                split_state({"value": value})

    def test_nothing_is_made_that_is_not_allowed(self):
        marker = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "planted")

        class Planted:
            def __reduce__(self):
                return os.mkdir, (marker,)

        for state, named in (({"x": Planted()}, r"posix\.mkdir|os\.mkdir"), ({"x": Named(1)}, r"Named")):
            for load in (through_memory, through_file):
                with self.assertRaisesRegex(InvalidArgument, rf"a\.pt holds \S*({named}).*allow_pickle"):
                    load(state)
        self.assertFalse(os.path.exists(marker))
        with torch.serialization.safe_globals([Named]):
            self.assertEqual(through_memory({"x": Named(1)})["x"].value, 1)
            self.assertEqual(through_file({"x": Named(1)})["x"].value, 1)
        self.assertEqual(through_memory({"x": Named(1)}, allow_pickle=True)["x"].value, 1)
        through_memory({"x": Planted()}, allow_pickle=True)
        self.assertTrue(os.path.exists(marker))

    def test_arrays_are_allowed_and_what_the_program_allowed_stays_so(self):
        state = {"loss": np.float64(2.5), "counts": np.arange(3), "random": np.random.RandomState(1).get_state()}
        with torch.serialization.safe_globals([np.ndarray]):
            self.assertEqual(str(through_memory(state)), str(state))
            self.assertIn(np.ndarray, torch.serialization.get_safe_globals())
        self.assertNotIn(np.ndarray, torch.serialization.get_safe_globals())

    def test_members_of_enumerations(self):
        with torch.serialization.safe_globals([Color]):
            for load in (through_memory, through_file):
                self.assertIs(load({"x": Color.RED})["x"], Color.RED)
        # As Python 3.11.2 pickles them; getattr itself is not allowed.
        for owner, name, found in ((Color, "RED", Color.RED), (Color, "__class__", None), (Named, "__init__", None)):
            pickled = pickle.dumps({"x": ByGetattr(owner, name)}, protocol=2)
            with torch.serialization.safe_globals([Color, Named]):
                if found is not None:
                    self.assertIs(join_state(pickled, None, None, False, "a.pt")["x"], found)
                else:
                    with self.assertRaisesRegex(InvalidArgument, "getattr"):
                        join_state(pickled, None, None, False, "a.pt")

    def test_subclasses_of_containers_are_refused_with_what_to_do(self):
        for value in (History([1]), Table(a=1)):
            with torch.serialization.safe_globals([History, Table]):
                for load in (through_memory, through_file):
                    with self.assertRaisesRegex(InvalidArgument, "subclass of list or dict.*plain list or dict"):
                        load({"x": value})

    def test_map_location(self):
        state = {"x": torch.ones(3)}
        for where in ("cpu", torch.device("cpu"), lambda storage, location: storage, {"cpu": "cpu"}, None):
            equal(through_memory(state, where), state)
        self.assertTrue(through_memory(state, "meta")["x"].is_meta)

    def test_files_can_be_mapped_and_unzipped(self):
        import zipfile

        equal(through_file({"x": torch.arange(100000)}, mmap=True), {"x": torch.arange(100000)})
        taken = split_state([torch.arange(5)])
        path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "\u00fc.pt")
        _torch_files.write(path, taken.pickled, parts_of(taken), "m")
        with zipfile.ZipFile(path) as file:
            self.assertIsNone(file.testzip())

    def test_a_large_file_where_no_thread_can_be_had(self):
        """As at the end of the interpreter, when executors take nothing any more."""
        large = {name: torch.frombuffer(mmap.mmap(-1, 4 << 20), dtype=torch.int32).fill_(value)  # aligned to pages
                 for name, value in (("x", 3), ("y", 4))}
        taken = split_state(large)
        with tempfile.TemporaryDirectory(dir=os.getcwd()) as directory:
            refused = mock.patch.object(ThreadPoolExecutor, "submit", side_effect=RuntimeError("after shutdown"))
            with refused as submit:
                _torch_files.write(f"{directory}/a.pt", taken.pickled, parts_of(taken), "m")
            found = torch.load(f"{directory}/a.pt")
            self.assertTrue(all(torch.equal(large[name], found[name]) for name in large))
            if not submit.called:
                self.skipTest("this directory's file system has no O_DIRECT")

    def test_a_file_that_cannot_be_written_says_why(self):
        taken = split_state([torch.zeros(1 << 20)])
        with self.assertRaises(OSError) as raised:
            _torch_files.write("/dev/full", taken.pickled, parts_of(taken), "m")
        self.assertEqual(raised.exception.errno, 28)
        with self.assertRaises(FileNotFoundError):
            _torch_files.write("/nowhere/at/all.pt", taken.pickled, [], "m")


if __name__ == "__main__":
    unittest.main()
