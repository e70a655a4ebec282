"""State of PyTorch programs (nested containers, tensors, any objects) taken apart into a pickle and the tensors' bytes, as
torch.save does it, and put together again."""

from __future__ import annotations

import enum
import io
import pickle
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch

from ._errors import Corrupt, InvalidArgument

#: torch.save's protocol, and the only one that torch's restricted unpickler reads.
_PROTOCOL = 2
#: Data types whose tensors torch.save writes by typed storage, with that storage's class.
_STORAGE_TYPES = {
    dtype: getattr(torch, name) for dtype, name in torch.storage._dtype_to_storage_type_map().items()
}
_DTYPES = {storage_type: dtype for dtype, storage_type in _STORAGE_TYPES.items()}
#: What persistent_id sees most and needs no closer look.
_PLAIN = frozenset((str, int, float, bool, type(None), dict, list, tuple, OrderedDict, torch.Tensor, bytes))


class Storage:
    """One storage among those of a state: the part of it, in elements, that the state's tensors need."""

    __slots__ = ("dtype", "elements", "first", "high", "is_whole", "key", "location", "low", "memory", "name")

    def __init__(self, memory: torch.UntypedStorage, dtype: torch.dtype, key: str) -> None:
        self.memory = memory
        self.dtype = dtype
        self.key = key
        self.name = ""
        self.location: str = torch.serialization.location_tag(memory)
        self.elements = memory.nbytes() // dtype.itemsize
        self.low = self.elements
        self.high = 0
        self.is_whole = False  #: someone needs it as it is
        self.first: tuple[int, ...] | None = None  #: shape of the first tensor, if it is contiguous

    def need(self, tensor: torch.Tensor) -> None:
        """This tensor's elements are among those that are needed."""
        if tensor.numel() == 0:
            return
        low = int(tensor.storage_offset())
        shape = tuple(int(extent) for extent in tensor.shape)
        high = _end(tensor)
        if self.high == 0 and tensor.is_contiguous():
            self.first = shape
        self.low = min(self.low, low)
        self.high = max(self.high, high)

    def end(self) -> None:
        """All needs are known."""
        if self.is_whole:
            self.low, self.high = 0, self.elements
        elif self.high == 0:
            self.low = 0

    @property
    def is_trimmed(self) -> bool:
        return self.high - self.low < self.elements

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the tensor, if one tensor is all; else one-dimensional."""
        count = self.high - self.low
        if self.first is not None:
            elements = 1
            for extent in self.first:
                elements *= extent
            if elements == count:
                return self.first
        return (count,)

    def needed(self) -> torch.UntypedStorage:
        """The part that is needed, where it lies."""
        if not self.is_trimmed:
            return self.memory
        size = self.dtype.itemsize
        part: torch.UntypedStorage = self.memory[self.low * size : self.high * size]
        return part

    def on_host(self) -> torch.UntypedStorage:
        """The same in host memory."""
        part = self.needed()
        return part if part.device.type == "cpu" else part.cpu()  # type: ignore[no-untyped-call]


def _end(tensor: torch.Tensor) -> int:
    """Behind its last element, in its storage."""
    steps = ((int(extent) - 1) * int(stride) for extent, stride in zip(tensor.shape, tensor.stride()))
    return int(tensor.storage_offset()) + 1 + sum(steps)


class TakenApart:
    """A pickle that torch.load reads, and the storages that it names."""

    def __init__(self, pickled: bytes, storages: list[Storage]) -> None:
        self.pickled = pickled
        self.storages = storages


class _NewStorageError(Exception):
    """An object of the state makes tensors anew each time it is pickled, so that a second pickle would name others."""


class _Pickler(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO, known: dict[int, Storage], is_trimming: bool) -> None:
        super().__init__(buffer, protocol=_PROTOCOL)
        self._known = known
        self._is_trimming = is_trimming
        self._dtypes: dict[int, torch.dtype] = {}  # by address, as torch.save compares them

    def persistent_id(self, obj: Any) -> Any:
        kind = type(obj)
        if kind in _PLAIN:
            return None
        if kind is Storage:
            elements = obj.high - obj.low if self._is_trimming else obj.elements
            return ("storage", _STORAGE_TYPES[obj.dtype], obj.key, obj.location, elements)
        if isinstance(obj, torch.storage.TypedStorage):
            storage = self._storage(obj._untyped_storage, obj.dtype)
            storage.is_whole = True
            elements = obj._untyped_storage.nbytes() // obj.dtype.itemsize
            return ("storage", _STORAGE_TYPES[obj.dtype], storage.key, storage.location, elements)
        if isinstance(obj, torch.storage.UntypedStorage):
            storage = self._storage(obj, torch.uint8)
            storage.is_whole = True
            kind = torch.storage.UntypedStorage
            return ("storage", kind, storage.key, storage.location, obj.nbytes())
        return None

    def reducer_override(self, obj: Any) -> Any:
        """Plain tensors, which are nearly all: as torch.Tensor.__reduce_ex__, faster, and without what no tensor of the
        state needs of a storage."""
        if type(obj) is not torch.Tensor or not _is_plain(obj):
            if isinstance(obj, enum.Enum) and type(obj).__reduce_ex__ is enum.Enum.__reduce_ex__:
                return (type(obj), (obj._value_,))  # some Pythons name getattr here, which no loader can allow
            return NotImplemented
        storage = self._storage(obj.untyped_storage(), obj.dtype)
        offset = obj.storage_offset()
        if self._is_trimming:
            if obj.numel() == 0:
                offset = 0
            elif offset < storage.low or _end(obj) > storage.high:
                raise _NewStorageError  # not the tensor of the first time
            else:
                offset -= storage.low
        else:
            storage.need(obj)
        where: tuple[Any, ...] = (storage, offset, tuple(obj.shape), obj.stride(), obj.requires_grad, OrderedDict())
        return (torch._utils._rebuild_tensor_v2, where)

    def _storage(self, memory: torch.UntypedStorage, dtype: torch.dtype) -> Storage:
        storage = self._known.get(memory._cdata)
        if storage is None:
            if self._is_trimming:
                raise _NewStorageError
            storage = self._known[memory._cdata] = Storage(memory, dtype, str(len(self._known)))
            address = memory.data_ptr() if memory.device.type != "meta" else 0
            if address and self._dtypes.setdefault(address, dtype) != dtype:
                raise _two_types(dtype, self._dtypes[address])
        elif storage.dtype != dtype:
            raise _two_types(dtype, storage.dtype)
        return storage


def _two_types(one: torch.dtype, other: torch.dtype) -> InvalidArgument:
    return InvalidArgument(
        f"tensors of {one} and {other} share memory, which neither torch.save nor Kedge can keep: clone one of them"
    )


def _is_plain(tensor: torch.Tensor) -> bool:
    return (
        tensor.device.type in ("cpu", "cuda")
        and tensor.layout is torch.strided
        and tensor.dtype in _STORAGE_TYPES
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
        and not tensor.is_nested
        and not tensor.__dict__
        and not tensor._backward_hooks
    )


def take_apart(state: Any) -> TakenApart:
    """What cannot be pickled raises as with torch.save."""
    known: dict[int, Storage] = {}
    pickled = _pickle(state, known, is_trimming=False)
    storages = list(known.values())
    for storage in storages:
        storage.end()
    if any(storage.is_trimmed for storage in storages):
        try:
            pickled = _pickle(state, known, is_trimming=True)
        except _NewStorageError:
            for storage in storages:
                storage.is_whole = True
                storage.end()
    _give_names(state, known)
    return TakenApart(pickled, storages)


def _pickle(state: Any, known: dict[int, Storage], is_trimming: bool) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, known, is_trimming).dump(state)
    return buffer.getvalue()


def _children(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, (list, tuple)):
        return enumerate(value)
    return ()


def _part(key: Any) -> str:
    text = re.sub(r"[^\w.+-]", "_", str(key))[:120]
    return text if text and not text.startswith(".") else f"_{text}"


def _give_names(state: Any, known: dict[int, Storage]) -> None:
    """Names each storage by its path through the containers to the first tensor on it."""
    names = _Names()
    seen: set[int] = set()
    left: list[tuple[str, Any]] = [("", state)]
    while left:
        name, value = left.pop()
        if isinstance(value, torch.Tensor):
            if not torch._C._has_storage(value):
                continue
            storage = known.get(value.untyped_storage()._cdata)
            if storage is not None and not storage.name:
                storage.name = names.take(name or "tensor")
            continue
        if id(value) in seen:
            continue
        children = list(_children(value))
        if children:
            seen.add(id(value))
            left.extend((f"{name}/{_part(key)}" if name else _part(key), child) for key, child in reversed(children))
    for storage in known.values():
        storage.name = storage.name or names.take(f"storages/{storage.key}")


class _Names:
    """Names of regions. None is another's group: a region cannot hold regions."""

    def __init__(self) -> None:
        self._regions: set[str] = set()
        self._groups: set[str] = set()

    def take(self, wanted: str) -> str:
        """A name that is free, as much like this one as can be."""
        *groups, last = wanted.encode()[-700:].decode(errors="ignore").strip("/").split("/")  # of 1024 bytes
        before = ""
        for part in groups:
            name = before + part
            while name in self._regions:
                name += "~"
            self._groups.add(name)
            before = f"{name}/"
        name = before + last
        while name in self._regions or name in self._groups:
            name += "~"
        self._regions.add(name)
        return name


def _member(owner: Any, name: str) -> Any:
    """What getattr may do in a pickle: some Pythons (3.11.2) pickle members of an enumeration by it."""
    if isinstance(owner, type) and issubclass(owner, enum.Enum) and name in owner.__members__:
        return owner[name]
    raise pickle.UnpicklingError("GLOBAL builtins.getattr, used for more than members of enumerations")


def plain_classes() -> list[Any]:
    """NumPy's arrays and scalars, in losses and states of random generators, under the names that NumPy 1 and 2 pickle them
    by; and members of enumerations that are allowed."""
    made: list[Any] = [np.ndarray, np.dtype, *{type(np.dtype(code)) for code in np.typecodes["All"] if code not in "OSUVMm"}]
    scalar: Any = np.float64(0).__reduce__()[0]
    array: Any = np.zeros(0).__reduce__()[0]
    for function in (scalar, array):
        made += [(function, f"numpy.{module}.multiarray.{function.__name__}") for module in ("core", "_core")]
    return [*made, (_member, "builtins.getattr")]


def allowing(classes: list[Any]) -> Any:
    """A context in which these may be loaded too. PyTorch's own forgets at its end even what the program had allowed."""
    known = torch.serialization.get_safe_globals()
    return torch.serialization.safe_globals([one for one in classes if one not in known])


def put_together(
    pickled: bytes, read: Callable[[str, int], torch.UntypedStorage], map_location: Any, allow_pickle: bool, what: str
) -> Any:
    """The reverse of take_apart. ``read(key, size)`` gives a storage's bytes; ``map_location`` as torch.load takes it.
    Without ``allow_pickle`` only tensors, NumPy's arrays and numbers, plain values, and what
    torch.serialization.add_safe_globals was given are made."""
    serialization: Any = torch.serialization  # parts of it are not typed
    restore = serialization._get_restore_location(map_location)
    typed: Any = torch.storage.TypedStorage
    loaded: dict[str, Any] = {}

    def persistent_load(saved: Any) -> Any:
        kind, storage_type, key, location, elements = saved
        dtype = torch.uint8 if storage_type is torch.UntypedStorage else storage_type.dtype
        if key not in loaded:
            memory = restore(read(key, elements * dtype.itemsize), location)
            loaded[key] = typed(wrap_storage=memory, dtype=dtype, _internal=True)
        return loaded[key]

    kind: Any = _Unpickler if allow_pickle else torch._weights_only_unpickler.Unpickler
    unpickler = kind(io.BytesIO(pickled), encoding="utf-8")
    unpickler.persistent_load = persistent_load
    with explained(what, allow_pickle), allowing(plain_classes()):
        state = unpickler.load()
    utils: Any = torch._utils
    utils._validate_loaded_sparse_tensors()
    return state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name.endswith("Storage"):
            storage_type: Any = torch.serialization.StorageType
            return storage_type(name)
        return super().find_class(module, name)


class explained:  # noqa: N801: reads as a word
    """Says what to do where a state holds what is not allowed."""

    def __init__(self, what: str, allow_pickle: bool) -> None:
        self._what = what
        self._allow_pickle = allow_pickle

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._allow_pickle or not isinstance(error, pickle.UnpicklingError):
            return
        text = str(error)
        found = re.search(r"GLOBAL (\S+)", text)
        if found:
            raise InvalidArgument(
                f"{self._what} holds {found.group(1)}, and to unpickle it can run any code: pass the class itself to "
                "torch.serialization.add_safe_globals before loading, or set allow_pickle if no other user can write your "
                "checkpoints"
            ) from None
        if "Can only extend lists" in text or "Can only append to lists" in text or "SETITEM" in text:
            reason = "holds an object of a subclass of list or dict, which torch does not load even if it was added as safe: save"
            raise InvalidArgument(f"{self._what} {reason} a plain list or dict, or set allow_pickle") from None
        told = re.search(r"WeightsUnpickler error: ([^\n]*)", text)
        reason = told.group(1) if told else (text.splitlines() or ["it cannot be unpickled"])[0]
        raise InvalidArgument(f"{self._what} is not plain data, or damaged: {reason}") from None


def check_size(what: str, size: int, found: int) -> None:
    """Raises Corrupt if a storage has not as many bytes as the pickle says."""
    if size != found:
        raise Corrupt(f"{what} has {found} bytes instead of {size}: the checkpoint is inconsistent; load an older one")
