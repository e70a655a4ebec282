"""Splits states of PyTorch programs (nested containers, tensors, any objects) into a pickle and the tensors' bytes,
like torch.save."""

from __future__ import annotations

import io
import pickle
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ._errors import InvalidArgument
from ._memory import why_not_saved
from ._places import walk
from ._plain import RestrictedPickler, by_name
from ._put_together import default_globals, user_globals
from ._refused import raise_with_place, refused_in

#: torch.save's protocol, and the only one that torch's restricted unpickler reads.
_PROTOCOL = 2
#: Data types whose tensors torch.save writes by typed storage, with that storage's class.
_STORAGE_TYPES = {
    dtype: getattr(torch, name) for dtype, name in torch.storage._dtype_to_storage_type_map().items()
}
#: What persistent_id sees most and needs no closer look.
_PLAIN = frozenset((str, int, float, bool, type(None), dict, list, tuple, OrderedDict, torch.Tensor, bytes))


class Storage:
    """A storage of a state, and the range of its elements that the state's tensors need."""

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
        """Adds a tensor's elements to the needed range."""
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
        """Fixes the needed range."""
        if self.is_whole:
            self.low, self.high = 0, self.elements
        elif self.high == 0:
            self.low = 0

    @property
    def is_trimmed(self) -> bool:
        return self.high - self.low < self.elements

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape if a single tensor is the whole range; else one-dimensional."""
        count = self.high - self.low
        if self.first is not None:
            elements = 1
            for extent in self.first:
                elements *= extent
            if elements == count:
                return self.first
        return (count,)

    def needed(self) -> torch.UntypedStorage:
        """The needed range, in place."""
        if not self.is_trimmed:
            return self.memory
        size = self.dtype.itemsize
        part: torch.UntypedStorage = self.memory[self.low * size : self.high * size]
        return part

    def on_host(self) -> torch.UntypedStorage:
        """The needed range as a copy on the host."""
        part = self.needed()
        return part if part.device.type == "cpu" else part.cpu()  # type: ignore[no-untyped-call]


def _end(tensor: torch.Tensor) -> int:
    """The end of a tensor's elements in its storage."""
    steps = ((int(extent) - 1) * int(stride) for extent, stride in zip(tensor.shape, tensor.stride()))
    return int(tensor.storage_offset()) + 1 + sum(steps)


class SplitState:
    """A pickle that torch.load reads, and the storages that it names."""

    def __init__(self, pickled: bytes, storages: list[Storage], unusual: set[Any]) -> None:
        self.pickled = pickled
        self.storages = storages
        self.unusual = unusual  #: kinds in it that may not be plain data


class _NewStorageError(Exception):
    """An object of the state makes new tensors each time it is pickled: a second pickle would name others."""


class _TwoTypesError(Exception):
    """Tensors of different types share memory."""

    def __init__(self, memory: torch.UntypedStorage) -> None:
        super().__init__()
        self.memory = memory


class _Pickler(RestrictedPickler):
    def __init__(self, buffer: io.BytesIO, known: dict[int, Storage], is_trimming: bool) -> None:
        super().__init__(buffer, _PROTOCOL, default_globals())
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
        """Pickles plain tensors, nearly all of them: as torch.Tensor.__reduce_ex__, but faster, and without unneeded
        parts of the storage."""
        if type(obj) is not torch.Tensor or not _is_plain(obj):
            if not isinstance(obj, torch.Tensor):
                return super().reducer_override(obj)
            reason = why_not_saved(obj)
            if reason:
                raise InvalidArgument(reason)
            self.note(obj)
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
                raise _TwoTypesError(memory)
        elif storage.dtype != dtype:
            raise _TwoTypesError(memory)
        return storage


def _two_types(state: Any, name: str, memory: torch.UntypedStorage) -> InvalidArgument:
    found: dict[torch.dtype, str] = {}
    for place, value in walk(state, name):
        if isinstance(value, torch.Tensor) and _lies_on(value, memory):
            found.setdefault(value.dtype, f"{place} of {value.dtype}")
    places = " and ".join(list(found.values())[:2]) if len(found) > 1 else f"tensors of two types in {name}"
    return InvalidArgument(f"{places} share memory, which neither torch.save nor Kedge can keep: clone one of them")


def _lies_on(tensor: torch.Tensor, memory: torch.UntypedStorage) -> bool:
    try:
        return tensor.untyped_storage().data_ptr() == memory.data_ptr()
    except Exception:  # of kinds that have no storage
        return False


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


def split_state(state: Any, name: str = "state") -> SplitState:
    """Raises InvalidArgument with the location of a value that cannot be saved, in the state called ``name``."""
    known: dict[int, Storage] = {}
    try:
        pickled, unusual = _pickle(state, known, is_trimming=False)
    except _TwoTypesError as error:
        raise _two_types(state, name, error.memory) from None
    except Exception as error:
        raise_with_place(state, name, lambda one: _pickle(one, {}, is_trimming=False), error)
        raise
    storages = list(known.values())
    for storage in storages:
        storage.end()
    if any(storage.is_trimmed for storage in storages):
        try:
            pickled, unusual = _pickle(state, known, is_trimming=True)
        except _NewStorageError:
            for storage in storages:
                storage.is_whole = True
                storage.end()
    _give_names(state, known)
    return SplitState(pickled, storages, unusual)


def _pickle(state: Any, known: dict[int, Storage], is_trimming: bool) -> tuple[bytes, set[Any]]:
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, known, is_trimming)
    pickler.dump(state)
    return buffer.getvalue(), pickler.unusual


def refused(state: Any, name: str, unusual: set[Any], allow: Iterable[Any] = ()) -> list[tuple[str, str]]:
    """The parts of the state that would not be loaded by default, given ``allow`` and the program's permissions, with
    their locations."""
    # torch loads no subclasses of list and dict, allowed or not.
    never = [kind for kind in unusual if isinstance(kind, type) and issubclass(kind, (list, dict))]
    given = {**user_globals(), **by_name(allow)}
    allowed = {one: found for one, found in given.items() if found not in never} | default_globals()
    return refused_in(state, name, lambda one: _pickle(one, {}, is_trimming=False)[0], allowed)


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
    """Makes names of regions, none of which is another one's group."""

    def __init__(self) -> None:
        self._regions: set[str] = set()
        self._groups: set[str] = set()

    def take(self, wanted: str) -> str:
        """The free name most similar to this one."""
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
