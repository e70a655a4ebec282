"""Restores states of PyTorch programs from a pickle and the tensors' bytes: the inverse of _states."""

from __future__ import annotations

import functools
import io
import pickle
import re
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ._errors import Corrupt, InvalidArgument
from ._plain import global_names, plain_by_name, plain_globals


def _unpickler() -> Any:
    return torch._weights_only_unpickler


def user_globals() -> dict[str, Any]:
    """Names of classes and functions that the program has allowed with torch.serialization.add_safe_globals."""
    allowed: dict[str, Any] = _unpickler()._get_user_allowed_globals()
    return allowed


@functools.cache
def default_globals() -> dict[str, Any]:
    """Names of classes and functions that are loaded without permission."""
    return {**plain_globals(), "torch._C.Generator": torch.Generator, **_unpickler()._get_allowed_globals()}


def plain_classes() -> list[Any]:
    """Plain classes that torch does not allow by itself."""
    known = _unpickler()._get_allowed_globals()
    return [(one, name) for name, one in default_globals().items() if name not in known]


def of_program(names: Iterable[str]) -> list[Any]:
    """Those of a pickle's names that are the program's enumerations and named tuples."""
    named = [(plain_by_name(name), name) for name in names if name not in user_globals()]
    return [(one, name) for one, name in named if one is not None]


def allowing(classes: list[Any]) -> Any:
    """A context in which these may be loaded, too. PyTorch's own context would also forget what the program had
    allowed."""
    known = torch.serialization.get_safe_globals()
    return torch.serialization.safe_globals([one for one in classes if one not in known])


def join_state(
    pickled: bytes,
    read: Callable[[str, int], torch.UntypedStorage],
    map_location: Any,
    allow_pickle: bool,
    what: str,
    allow: Iterable[Any] = (),
) -> Any:
    """The inverse of split_state. ``read(key, size)`` returns a storage's bytes; ``map_location`` as in torch.load.
    Without ``allow_pickle``, permits only tensors, plain data, classes in ``allow`` and those given to
    torch.serialization.add_safe_globals."""
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

    def load(kind: Any) -> Any:
        unpickler = kind(io.BytesIO(pickled), encoding="utf-8")
        unpickler.persistent_load = persistent_load
        return unpickler.load()

    with explained(what, allow_pickle, has_allow=True):
        if allow_pickle:
            state = load(_Unpickler)
        else:
            with allowing([*plain_classes(), *allow]):
                state = twice(lambda: load(_unpickler().Unpickler), lambda: global_names(pickled))
    utils: Any = torch._utils
    utils._validate_loaded_sparse_tensors()
    return state


def twice(load: Callable[[], Any], names: Callable[[], Iterable[str]]) -> Any:
    """Loads a state; tries again with the program's enumerations and named tuples if needed, which few states
    contain."""
    try:
        return load()
    except pickle.UnpicklingError:
        found = of_program(names())
        if not found:
            raise
    with allowing(found):
        return load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name.endswith("Storage"):
            storage_type: Any = torch.serialization.StorageType
            return storage_type(name)
        return super().find_class(module, name)


class explained:  # noqa: N801: reads as a word
    """Adds a remedy to errors about objects that are not allowed."""

    def __init__(self, what: str, allow_pickle: bool, has_allow: bool = False) -> None:
        self._what = what
        self._allow_pickle = allow_pickle
        self._option = "in allow=[...], or " if has_allow else ""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._allow_pickle or not isinstance(error, pickle.UnpicklingError):
            return
        text = str(error)
        found = re.search(r"GLOBAL (\S+)", text)
        if found:
            raise InvalidArgument(
                f"{self._what} holds {found.group(1)}, and to unpickle it can run any code: pass the class itself "
                f"{self._option}to torch.serialization.add_safe_globals before loading, or set allow_pickle if no other "
                "user can write your checkpoints"
            ) from None
        if "Can only extend lists" in text or "Can only append to lists" in text or "SETITEM" in text:
            reason = "holds an object of a subclass of list or dict, which torch does not load even if it was added as safe: save"
            raise InvalidArgument(f"{self._what} {reason} a plain list or dict, or set allow_pickle") from None
        told = re.search(r"WeightsUnpickler error: ([^\n]*)", text)
        reason = told.group(1) if told else (text.splitlines() or ["it cannot be unpickled"])[0]
        raise InvalidArgument(f"{self._what} is not plain data, or damaged: {reason}") from None


def check_size(what: str, size: int, found: int) -> None:
    """Raises Corrupt if a storage's size differs from the pickle's."""
    if size != found:
        raise Corrupt(f"{what} has {found} bytes instead of {size}: the checkpoint is inconsistent; load an older one")
