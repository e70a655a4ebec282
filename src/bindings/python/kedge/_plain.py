"""Plain data: values that a pickle may contain without permission, because making them runs no code that the pickle
names. Does not use PyTorch."""

from __future__ import annotations

import _compat_pickle
import collections
import enum
import functools
import importlib
import io
import pickle
import pickletools
import sys
import types
from collections.abc import Container, Iterable
from typing import Any

import numpy as np

#: Of the standard library and of NumPy, under the names that pickles give them, also in other versions of these.
_NAMES = {
    "builtins": "bool bytearray bytes complex dict float frozenset int list range set slice str tuple Ellipsis NotImplemented",
    "_codecs": "encode",  # of bytes
    "argparse": "Namespace",
    "array": "_array_reconstructor array",
    "collections": "Counter OrderedDict defaultdict deque",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "pathlib": "PosixPath PurePosixPath PureWindowsPath",
    "pathlib._local": "PosixPath PurePosixPath PureWindowsPath",
    "random": "Random",
    "time": "struct_time",
    "types": "SimpleNamespace",
    "uuid": "UUID",
    "zoneinfo": "ZoneInfo",
    "numpy.random._generator": "Generator",
    "numpy.random._mt19937": "MT19937",
    "numpy.random._pcg64": "PCG64 PCG64DXSM",
    "numpy.random._philox": "Philox",
    "numpy.random._pickle": "__bit_generator_ctor __generator_ctor __randomstate_ctor",
    "numpy.random._sfc64": "SFC64",
    "numpy.random.bit_generator": "SeedSequence __pyx_unpickle_SeedSequence",
    "numpy.random.mtrand": "RandomState",
}
#: A module that Python before 3.13 and after it has under one name.
_MOVED = {"pathlib._local": "pathlib"}


@functools.cache
def plain_globals() -> dict[str, Any]:
    """The permitted classes by name, as pickles name them."""
    known: dict[str, Any] = {}
    for module, names in _NAMES.items():
        try:
            found = importlib.import_module(_MOVED.get(module, module))
        except ImportError:
            continue  # of another version of NumPy
        known.update({f"{module}.{name}": getattr(found, name) for name in names.split() if hasattr(found, name)})
    # Objects of text, dates and structs have a dtype that is made by np.dtype: see _dtype_spec.
    for kind in {np.ndarray, np.dtype, *(type(np.dtype(code)) for code in np.typecodes["All"] if code not in "OSUVMm")}:
        known[_name_of(kind)] = kind
    scalar: Any = np.float64(0).__reduce__()[0]
    array: Any = np.zeros(0).__reduce__()[0]
    buffer: Any = np.zeros(1).__reduce_ex__(5)[0]
    for function, place in ((scalar, "multiarray"), (array, "multiarray"), (buffer, "numeric")):
        known.update({f"numpy.{core}.{place}.{function.__name__}": function for core in ("core", "_core")})
    known["builtins.getattr"] = _member_by_getattr
    return known


def _name_of(thing: Any) -> str:
    """The name of a class or function in a pickle."""
    return f"{getattr(thing, '__module__', None) or 'builtins'}.{thing.__qualname__}"


def _is_global(value: Any) -> bool:
    """Whether a pickle only stores its name."""
    return isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType))


def plain_by_name(name: str) -> Any:
    """Returns a callable that makes a member of the program's enumeration of this name, or a named tuple; None if
    there is no such class. Imports nothing and runs no code of the class."""
    module, kind = name, None
    while "." in module and kind is None:
        module = module.rpartition(".")[0]
        if module in sys.modules:
            kind = _attribute(sys.modules[module], name[len(module) + 1 :])
            break
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return functools.partial(_member, kind)
    if isinstance(kind, type) and is_named_tuple(kind):
        return functools.partial(_named_tuple, kind)
    return None


def _attribute(owner: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        owner = vars(owner).get(part) if hasattr(owner, "__dict__") else None  # unlike getattr, runs no code
    return owner


def _member(kind: Any, value: Any) -> Any:
    for member in kind.__members__.values():
        if type(member._value_) is type(value) and member._value_ == value:
            return member
    if issubclass(kind, enum.Flag) and isinstance(value, int):
        return kind(value)  # several flags at once
    raise pickle.UnpicklingError(f"{_name_of(kind)} has no member of value {value!r:.60}")


def _named_tuple(kind: Any, *values: Any) -> Any:
    if len(values) != len(kind._fields):
        raise pickle.UnpicklingError(f"{_name_of(kind)} has {len(kind._fields)} fields, and {len(values)} were saved")
    return tuple.__new__(kind, values)


def _member_by_getattr(owner: Any, name: str) -> Any:
    """A getattr limited to enumerations, which some Pythons (3.11.2) use to pickle their members."""
    kind = owner.args[0] if isinstance(owner, functools.partial) and owner.func is _member else owner
    if isinstance(kind, type) and issubclass(kind, enum.Enum) and name in kind.__members__:
        return kind[name]
    raise pickle.UnpicklingError("GLOBAL builtins.getattr, used for more than members of enumerations")


def is_named_tuple(kind: type) -> bool:
    """Whether objects of this class consist only of their values."""
    return (
        issubclass(kind, tuple)
        and isinstance(getattr(kind, "_fields", None), tuple)
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and not hasattr(kind, "__setstate__")
    )


def reduce_plain(value: Any) -> Any:
    """Pickles plain values that Python or NumPy pickle in a way that the reader of plain data does not accept;
    NotImplemented for others."""
    kind = type(value)
    if isinstance(value, enum.Enum):
        own: Any = kind.__reduce_ex__
        if own in (enum.Enum.__reduce_ex__, enum.Flag.__reduce_ex__):
            return kind, (value._value_,)  # some Pythons name getattr here
    elif isinstance(value, tuple):
        if is_named_tuple(kind) and not getattr(value, "__dict__", None):
            return kind, tuple(value)
    elif kind is collections.deque:
        return kind, (list(value), value.maxlen)
    elif kind is collections.defaultdict:
        return kind, (value.default_factory, dict(value))
    elif isinstance(value, np.dtype):
        spec = _dtype_spec(value) if value.kind in "OSUVMm" else None
        if spec is not None:
            return np.dtype, (spec,)
    elif kind is np.memmap:
        return value.view(np.ndarray).__reduce_ex__(2)  # of which another process has not this memory
    elif kind.__module__ == "zoneinfo" and getattr(value, "key", None) and kind.__name__ == "ZoneInfo":
        return kind, (value.key,)
    return NotImplemented


def _dtype_spec(dtype: Any) -> Any:
    """A plain argument from which np.dtype makes this type; None if there is none."""
    spec = _spec(dtype)
    try:
        return spec if spec is not None and np.dtype(spec) == dtype else None
    except (TypeError, ValueError):
        return None


def _spec(dtype: Any) -> Any:
    if dtype.metadata is not None:
        return None
    if dtype.subdtype is not None:
        base = _spec(dtype.subdtype[0])
        return None if base is None else (base, tuple(dtype.subdtype[1]))
    if dtype.names is None:
        return str(dtype.str)
    fields = [dtype.fields[name] for name in dtype.names]
    formats = [_spec(field[0]) for field in fields]
    if dtype.type is not np.void or None in formats or any(len(field) > 2 for field in fields):
        return None
    offsets = [int(field[1]) for field in fields]
    return {"names": list(dtype.names), "formats": formats, "offsets": offsets, "itemsize": int(dtype.itemsize),
            "aligned": bool(dtype.isalignedstruct)}  # fmt: skip


def global_names(pickled: bytes) -> list[str]:
    """The classes and functions that a pickle of protocol 2 names, in order, each once."""
    found: dict[str, None] = {}
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "GLOBAL":
            module, _, name = str(argument).partition(" ")
            found[_name_now(module, name)] = None
    return list(found)


def _name_now(module: str, name: str) -> str:
    """Converts Python 2's names, which protocol 2 uses."""
    module, name = _compat_pickle.NAME_MAPPING.get((module, name), (module, name))
    return f"{_compat_pickle.IMPORT_MAPPING.get(module, module)}.{name}"


class RestrictedPickler(pickle.Pickler):
    """Pickles plain values in a form that is loaded as plain data."""

    def __init__(self, file: Any, protocol: int, known: Container[str] | None = None) -> None:
        super().__init__(file, protocol=protocol)
        self._defaults = known if known is not None else plain_globals()
        self.unusual: set[Any] = set()  #: kinds that may not be plain: classes, and functions themselves

    def reducer_override(self, value: Any) -> Any:
        reduced = reduce_plain(value)
        if reduced is NotImplemented:
            self.note(value)
        return reduced

    def note(self, value: Any) -> None:
        """Records values that are pickled as their class decides."""
        kind = value if _is_global(value) else type(value)
        if kind not in self.unusual and _name_of(kind) not in self._defaults:
            self.unusual.add(kind)


#: The one in Python: what a pickle does with objects has to be looked at, too.
_InPython: Any = pickle._Unpickler


class _RestrictedUnpickler(_InPython):  # type: ignore[misc]
    """Makes only permitted objects."""

    dispatch = dict(_InPython.dispatch)

    def __init__(self, file: Any, allowed: dict[str, Any]) -> None:
        super().__init__(file)
        self._allowed = allowed
        self._made: list[Any] = []  # keeps objects alive while their ids are used
        self._numbers = {id(one) for one in allowed.values()}

    def find_class(self, module: str, name: str) -> Any:
        name = _name_now(module, name) if self.proto < 3 else f"{module}.{name}"
        found = self._allowed.get(name)
        if found is None:
            found = plain_by_name(name)
            if found is None:
                raise pickle.UnpicklingError(f"GLOBAL {name} is not allowed")
            self._made.append(found)
            self._numbers.add(id(found))
        return found

    def get_extension(self, code: int) -> None:
        raise pickle.UnpicklingError("it names a class by a number of copyreg")

    def refuse(self) -> None:
        """Refuses operations of the oldest protocols."""
        raise pickle.UnpicklingError("it is of protocol 0 and makes an instance")

    def require(self, thing: Any) -> None:
        """Requires an object that may be called or changed by its own methods."""
        if id(thing) not in self._numbers:
            raise pickle.UnpicklingError(f"it uses {thing!r:.60}, which is not allowed")


def _guarded(opcode: bytes, depth: int, exact: type | None) -> None:
    """Checks the object at this depth of the stack, which the next operation calls or changes."""
    original = _InPython.dispatch[opcode[0]]

    def load(self: _RestrictedUnpickler) -> None:
        # Below a mark lies what was there before it.
        place = self.metastack[-1][-1] if depth == 0 else self.stack[-depth]
        if exact is None:
            self.require(place)
        elif type(place) is not exact:
            self.require(type(place))
        original(self)

    _RestrictedUnpickler.dispatch[opcode[0]] = load


for _opcode, _depth in ((pickle.REDUCE, 2), (pickle.NEWOBJ, 2), (pickle.NEWOBJ_EX, 3)):
    _guarded(_opcode, _depth, None)
for _opcode, _depth, _exact in ((pickle.APPEND, 2, list), (pickle.APPENDS, 0, list), (pickle.SETITEM, 3, dict),
                                (pickle.SETITEMS, 0, dict), (pickle.ADDITEMS, 0, set), (pickle.BUILD, 2, object)):  # fmt: skip
    _guarded(_opcode, _depth, _exact)
for _opcode in (pickle.INST, pickle.OBJ):
    _RestrictedUnpickler.dispatch[_opcode[0]] = _RestrictedUnpickler.refuse


def by_name(allow: Iterable[Any]) -> dict[str, Any]:
    """The named classes and functions."""
    return {_name_of(one): one for one in allow}


def restricted_loads(data: bytes, allow: Iterable[Any]) -> Any:
    """Loads a pickle that contains only plain data and allowed classes. Raises UnpicklingError."""
    unpickler = _RestrictedUnpickler(io.BytesIO(data), {**plain_globals(), **by_name(allow)})
    try:
        return unpickler.load()
    except (pickle.UnpicklingError, MemoryError):
        raise
    except Exception as error:  # hand-made and foreign pickles may raise anything
        raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from error
