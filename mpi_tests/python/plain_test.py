"""What programs put into a state: plain data comes back by default, from states, objects and files; of anything else
save warns with the class, the place and the option that allows it, and only what is allowed is made."""

import argparse
import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import os
import pathlib
import pickle
import random
import time
import types
import typing
import unittest
import uuid
import warnings
import zoneinfo

import numpy as np
import place

import kedge
from kedge import communicators
from kedge._plain import restricted_loads

if place.has("torch"):
    import torch

Point = collections.namedtuple("Point", "x y")


class Sized(Point):  # with a __dict__
    def size(self):
        return abs(self.x) + abs(self.y)


class Typed(typing.NamedTuple):
    name: str
    at: Point = Point(0, 0)


class Color(enum.Enum):
    RED = 1
    PAIR = (1, 2)


class Grade(enum.IntEnum):
    A = 1


class Word(str, enum.Enum):
    YES = "yes"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Makes(enum.Enum):
    DIRECTORIES = 1

    def __call__(self, path):
        os.mkdir(path)


@dataclasses.dataclass
class Config:
    rate: float = 0.1
    inner: object = None


class History(list):
    pass


class Table(dict):
    pass


class Name(str):
    pass


def half(value):
    return value / 2


def looped():
    held = np.array([None, 1], dtype=object)
    held[0] = [held]
    return held


PLAIN = {
    "None": None, "ellipsis": ..., "int": 2**70, "complex": 1 + 2j, "range": range(1, 9, 2), "slice": slice(1, None),
    "set": {1, "a"}, "frozenset": frozenset((1, 2)), "bytes": b"\0\xff", "bytearray": bytearray(b"ab"), "text": "a\0\udce4",
    "nested": {"a": [(1, {"b": {2.5}})], 3: None}, "OrderedDict": collections.OrderedDict(b=1, a=2),
    "Counter": collections.Counter("aab"), "deque": collections.deque([1, [2]], maxlen=3),
    "defaultdict": collections.defaultdict(list, a=[1]), "defaultdict without": collections.defaultdict(None, a=1),
    "Namespace": argparse.Namespace(rate=0.1, path=pathlib.Path("a"), inner=argparse.Namespace(x=[1])),
    "SimpleNamespace": types.SimpleNamespace(a=1), "namedtuple": Point(1, [2.5]), "with a dict": Sized(1, 2),
    "NamedTuple": Typed("a"), "Enum": Color.RED, "of a tuple": Color.PAIR, "IntEnum": Grade.A, "mixed": Word.YES,
    "Flag": Access.READ, "flags": Access.READ | Access.WRITE, "key": {Color.RED: 1},
    "Path": pathlib.Path("/data/\u00fc"), "PurePosixPath": pathlib.PurePosixPath("a"),
    "date": datetime.date(2026, 1, 2), "datetime": datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.timezone.utc),
    "time": datetime.time(3), "timedelta": datetime.timedelta(days=1), "struct_time": time.gmtime(0),
    "Decimal": decimal.Decimal("1.10"), "Fraction": fractions.Fraction(1, 3), "UUID": uuid.UUID(int=7),
    "array": array.array("d", [1.5]), "getstate": random.getstate(), "Random": random.Random(3),
    "Generator": np.random.default_rng(1), "Philox": np.random.Generator(np.random.Philox(5)),
    "SFC64": np.random.Generator(np.random.SFC64(5)), "DXSM": np.random.Generator(np.random.PCG64DXSM(5)),
    "RandomState": np.random.RandomState(1), "BitGenerator": np.random.MT19937(2), "SeedSequence": np.random.SeedSequence(3),
    "Generator's state": np.random.default_rng(1).bit_generator.state,
    "scalars": [np.float32(1.5), np.bool_(True), np.str_("a"), np.bytes_(b"a"), np.datetime64("2026-01-01"), np.complex64(1j)],
    "dtypes": [np.dtype(code) for code in ("f4", ">i8", "U3", "S2", "M8[25s]", "m8[ms]", "O", "V4", "?")],
    "struct dtype": np.dtype([("a", "U2"), ("b", [("c", "f4", (2,))])], align=True),
    "numbers": np.arange(6.0).reshape(2, 3), "column-major": np.asfortranarray(np.ones((2, 3), dtype="U2")),
    "text array": np.array([["a", "b\u00e4c"]]), "bytes array": np.array([b"a", b"bc"]), "empty": np.array([], dtype="U4"),
    "dates": np.array(["2026-01-01"], dtype="M8[D]"), "foreign": np.array(["a"], dtype=">U1"), "scalar text": np.array("a"),
    "structs": np.array([(1, 2.5, "a")], dtype=[("id", "i4"), ("mass", "f8"), ("name", "U3")]),
    "struct": np.array([(1, 2.5)], dtype=[("id", "i4"), ("mass", "f8")])[0],
    "objects": np.array([{"a": 1}, None, [Point(1, 2)]], dtype=object), "structs of objects": np.array([(1, "a")], dtype="i4,O"),
}
if place.has("torch"):
    PLAIN |= {
        "Size": torch.Size([2, 3]), "device": torch.device("cpu"), "dtype": torch.bfloat16, "tensors": {"w": torch.ones(3)},
        "torch Generator": torch.Generator().manual_seed(3), "torch state": torch.Generator().manual_seed(3).get_state(),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
OF_TORCH_ALONE = ("tensors", "torch Generator", "torch state", "parameter", "device", "dtype", "Size")


def picture(value):
    """To compare by: also types."""
    if isinstance(value, np.ndarray):
        dtype = value.dtype.newbyteorder("=")  # NumPy's pickles make some arrays native
        return type(value), dtype.descr if dtype.names else dtype, value.shape, value.tolist(), value.flags.fnc
    if isinstance(value, np.random.Generator):
        return "Generator", picture(value.bit_generator)
    if isinstance(value, np.random.SeedSequence):
        return value.state
    if isinstance(value, (np.random.BitGenerator, np.random.RandomState)):
        state = value.state if isinstance(value, np.random.BitGenerator) else value.get_state(legacy=False)
        return type(value), str(state)
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, dict):
        return type(value), getattr(value, "default_factory", 0), [(picture(key), picture(one)) for key, one in value.items()]
    if isinstance(value, (list, tuple)) and not isinstance(value, np.void):
        return type(value), [picture(one) for one in value]
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "get_state"):
        return value.get_state().tolist()
    if hasattr(value, "untyped_storage"):
        return type(value), value.dtype, value.tolist()
    return type(value), getattr(value, "maxlen", 0), getattr(value, "dtype", 0), str(value) if value is ... else value


class Ways:
    """Of saving and loading a value."""

    @staticmethod
    def state(engine, value, saves=None, **loads):
        with engine.checkpoint("t") as c:
            c.save_state("held", {"in": [value]}, **saves or {})
        with engine.restart() as r:
            return r.load_state("held", **loads)["in"][0]

    @staticmethod
    def object(engine, value, saves=None, **loads):
        with engine.checkpoint("t") as c:
            c.save_object("held", {"in": [value]}, **saves or {})
        with engine.restart() as r:
            return r.load_object("held", **loads)["in"][0]


WAYS = (*((Ways.state,) if place.has("torch") else ()), Ways.object)


class Plain(unittest.TestCase):
    def setUp(self):
        self.path = self.enterContext(place.directory())
        self.restart()

        self.addCleanup(lambda: self.engine.finalize())

    def restart(self):
        if hasattr(self, "engine"):
            self.engine.finalize()
        self.engine = kedge.Engine(place.options(self.path), communicator=communicators.single_process())

    def test_what_is_plain_comes_back_by_default(self):
        for way in WAYS:
            held = {name: value for name, value in PLAIN.items() if way is not Ways.object or name not in OF_TORCH_ALONE}
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found, trusted = way(self.engine, held), way(self.engine, held, allow_pickle=True)
            for name, value in held.items():
                with self.subTest(name, way=way.__name__):
                    self.assertEqual(picture(found[name]), picture(value))
                    self.assertEqual(picture(trusted[name]), picture(value))

    @unittest.skipUnless(place.has("torch"), "of PyTorch's files")
    def test_it_comes_back_from_files_as_well(self):
        from kedge import _torch_files
        from kedge._put_together import allowing, plain_classes
        from kedge._states import split_state

        taken = split_state(PLAIN)
        parts = [_torch_files.Part(storage.key, storage.on_host()) for storage in taken.storages]
        _torch_files.write(f"{self.path}/a.pt", taken.pickled, parts, "mark")
        with allowing(plain_classes()):
            found = _torch_files.load(f"{self.path}/a.pt", None, False)
        for name, value in PLAIN.items():
            with self.subTest(name):
                self.assertEqual(picture(found[name]), picture(value))

    def test_what_holds_itself_comes_back(self):
        for way in WAYS:
            found = way(self.engine, looped())
            self.assertIs(found[0][0], found)

    def test_a_time_zone(self):
        try:
            zone = zoneinfo.ZoneInfo("Europe/Berlin")
        except zoneinfo.ZoneInfoNotFoundError:
            self.skipTest("no time zones here")
        for way in WAYS:
            self.assertEqual(way(self.engine, datetime.datetime(2026, 7, 1, tzinfo=zone)).tzinfo.key, "Europe/Berlin")

    def test_a_mapped_array_comes_back_as_an_array(self):
        mapped = np.memmap(f"{self.path}/mapped", dtype="f8", mode="w+", shape=(3,))
        for way in WAYS:
            self.assertIs(type(way(self.engine, mapped)), np.ndarray)

    def test_what_load_would_refuse_is_told_by_the_first_save(self):
        values = {"Config": Config(), "History": History([1]), "Table": Table(a=1), "Name": Name("a"), "half": half,
                  "partial": collections.ChainMap({}), "masked": np.ma.masked_array([1.0], [1])}
        for way in WAYS:
            for name, value in values.items():
                with self.subTest(name, way=way.__name__):
                    self.restart()
                    said = rf"holds \S+ \(held\['in'\]\[0\]\S*\).*load_{way.__name__} refuses.*allow=\[.*allow_pickle=True"
                    with self.assertWarnsRegex(UserWarning, said) as told:
                        with self.assertRaisesRegex(kedge.InvalidArgument, "allow="
                                                    if name not in ("History", "Table") or way is Ways.object else "allow"):
                            way(self.engine, value)
                    self.assertEqual(told.filename, __file__)  # the line of the program that saves
                    with warnings.catch_warnings():
                        warnings.simplefilter("error")  # once is enough; nor is it told to those who know
                        self.assertEqual(str(way(self.engine, value, allow_pickle=True)), str(value))
                        self.restart()
                        self.assertEqual(str(way(self.engine, value, {"allow_pickle": True}, allow_pickle=True)), str(value))

    def test_who_says_what_he_will_allow_is_not_warned_of_it(self):
        for way in WAYS:
            for value, given in ((Config(), [Config]), (Name("a"), (Name,)), (half, iter([half])), ([Config(), half], [half, Config])):
                with self.subTest(way=way.__name__, value=str(value)), warnings.catch_warnings():
                    self.restart()
                    warnings.simplefilter("error")
                    self.assertIsNotNone(way(self.engine, value, {"allow": given}, allow=[Config, Name, half]))
            self.restart()
            with self.assertWarnsRegex(UserWarning, r"holds \S+half \(.*allow=\[half\].*pass the same here"):
                way(self.engine, [Config(), half], {"allow": [Config]}, allow=[Config, half])  # what it does not name, it is told
            with self.assertWarnsRegex(UserWarning, r"allow=\[Config, half\]"):
                way(self.engine, [Config(), half], allow=[Config, half])
        if Ways.state in WAYS:  # nothing but allow_pickle helps there
            with self.assertWarnsRegex(UserWarning, "History"), self.engine.checkpoint("t") as c:
                c.save_state("held", History([1]), allow=[History])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(Ways.object(self.engine, History([1]), {"allow": [History]}, allow=[History]), [1])

    def test_these_names_are_allowed_and_no_others(self):
        for way in WAYS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertEqual(way(self.engine, Config(0.5), allow=[Config]), Config(0.5))
                self.assertEqual(way(self.engine, Name("b"), allow=[Name]), "b")
                self.assertEqual(way(self.engine, half, allow=[half]), half)
                with self.assertRaisesRegex(kedge.InvalidArgument, "Config"):
                    way(self.engine, [Name("b"), Config(0.5)], allow=[Name])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual(Ways.object(self.engine, History([1]), allow=[History]), [1])
            self.assertEqual(Ways.object(self.engine, Table(a=1), allow=[Table]), {"a": 1})

    def test_the_place_is_named_however_deep(self):
        deep = {"model": {"fc": 1}, "run": argparse.Namespace(steps=(1, Point(2, Config())))}
        for save in ("save_object", *(("save_state",) if place.has("torch") else ())):
            self.restart()
            with self.assertWarnsRegex(UserWarning, r"Config \(training\['run'\]\.steps\[1\]\.y\)"):
                with self.engine.checkpoint("t") as c:
                    getattr(c, save)("training", deep)
            bad = {"run": {"callbacks": [1, {"f": lambda: 1}]}}
            with self.assertRaisesRegex(kedge.InvalidArgument, r"training\['run'\]\['callbacks'\]\[1\]\['f'\] is a .*function"):
                with self.engine.checkpoint("t") as c:
                    getattr(c, save)("training", bad)

    def test_a_class_that_changed_says_so(self):
        global Point
        before = Point
        for way in WAYS:
            with self.engine.checkpoint("t") as c:
                getattr(c, f"save_{way.__name__}")("held", Point(1, 2))
            Point = collections.namedtuple("Point", "x y z")
            try:
                with self.engine.restart() as r, self.assertRaisesRegex(kedge.InvalidArgument, "3 fields, and 2 were saved"):
                    getattr(r, f"load_{way.__name__}")("held")
            finally:
                Point = before


class Planted(unittest.TestCase):
    """No pickle makes the reader of plain data run what it chooses."""

    def test_what_a_pickle_does_is_looked_at(self):
        marker = os.path.join(self.enterContext(place.directory()), "planted")
        call = f"(V{marker}\ntR"
        for name, text in {
            "a function": f"cos\nmkdir\n{call}.", "by getattr": "c__builtin__\ngetattr\n(cargparse\nNamespace\nV__init__\ntR.",
            "an instance": f"(V{marker}\nios\nmkdir\n.", "an object": f"(cos\nmkdir\nV{marker}\no.",
            "the result of a call": f"c__main__\nMakes\n(I1\ntR{call}.",
            "a class is changed": "cargparse\nNamespace\n(N(dV__init__\nI1\nstb.",
            "a member is changed": "c__main__\nColor\n(I1\ntR(dV_value_\nI2\nsb.",
            "a module": "c__main__\nos\n.", "within": "c__main__\nos.mkdir\n.", "no class": "c__main__\nhalf\n(I4\ntR.",
            "appending to what is no list": "cargparse\nNamespace\n)\x81I1\na.",
        }.items():
            with self.subTest(name), self.assertRaises(pickle.UnpicklingError):
                restricted_loads(text.encode("latin1"), ())
        self.assertFalse(os.path.exists(marker))
        self.assertEqual(Color.RED.value, 1)
        self.assertEqual(restricted_loads(b"c__main__\nColor\n(I1\ntR.", ()), Color.RED)  # the mark can be met


if __name__ == "__main__":
    unittest.main()
