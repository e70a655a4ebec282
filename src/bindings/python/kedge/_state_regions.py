"""States of PyTorch programs as regions: one per storage in a group, and one that describes the whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from . import _kedge
from ._errors import IoError, Mismatch
from ._memory import OPAQUE, dtype_number, is_cuda, stream_of
from ._put_together import check_size, join_state
from ._states import SplitState
from ._torch_files import Part, part_at

#: In each group: one line of JSON, and the pickle.
_STATE = ".state"
_VERSION = 1
_ROOM = 4096

#: As the engine's ``regions`` gives them, by name.
Regions = Mapping[str, tuple[str, int, tuple[int, ...], Any, int, bool]]


def padded(data: bytes, filler: bytes) -> bytes:
    """Pads to a size that rarely changes, because checkpoints of unchanged structure are saved faster."""
    room = max(_ROOM, 1 << (len(data) - 1).bit_length())
    return data + filler * (room - len(data))


def save_bytes(engine: _kedge.Engine, name: str, data: bytes) -> None:
    """Saves bytes as a region."""
    memory = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    engine.save(name, memory.data_ptr(), OPAQUE, (len(data),), None)


def load_bytes(engine: _kedge.Engine, regions: Regions, name: str) -> bytes:
    """Loads bytes that save_bytes saved."""
    memory = _load(engine, regions, name, regions[name][4])
    return torch.empty(0, dtype=torch.uint8).set_(memory).numpy().tobytes()


def save_state(engine: _kedge.Engine, group: str, taken: SplitState) -> list[tuple[str, int]]:
    """Saves a split state below ``group``. Returns names and sizes of the storages' regions, in the order of keys."""
    storages: list[tuple[str, int]] = []
    for storage in taken.storages:
        memory = storage.needed() if _kedge.HAS_CUDA and is_cuda(storage.memory) else storage.on_host()
        number = dtype_number(str(storage.dtype).removeprefix("torch."))
        shape = storage.shape if number != OPAQUE else (memory.nbytes(),)
        engine.save(f"{group}/{storage.name}", memory.data_ptr(), number, shape, None, stream_of(memory))
        storages.append((storage.name, memory.nbytes()))
    header = {"version": _VERSION, "pickle_bytes": len(taken.pickled), "storages": storages}
    save_bytes(engine, f"{group}/{_STATE}", padded(json.dumps(header).encode() + b"\n" + taken.pickled, b"\0"))
    return [(f"{group}/{name}", size) for name, size in storages]


def committed_parts(engine: _kedge.Engine, storages: list[tuple[str, int]]) -> list[Part]:
    """The storages in the store's memory, after the commit and until the engine's next collective call."""
    parts: list[Part] = []
    for key, (region, size) in enumerate(storages):
        address, found = engine.committed(region)
        if found != size:
            raise IoError(f"region {region} has {found} bytes in the store instead of {size}; its file was not written")
        parts.append(part_at(str(key), address, size))
    return parts


def is_state(regions: Regions, group: str) -> bool:
    """Whether save_state made this group."""
    return f"{group}/{_STATE}" in regions


class SavedState:
    """A state in the open checkpoint."""

    def __init__(self, engine: _kedge.Engine, regions: Regions, group: str) -> None:
        self._engine = engine
        self._regions = regions
        self._group = group
        line, _, rest = load_bytes(engine, regions, f"{group}/{_STATE}").partition(b"\n")
        header = json.loads(line)
        if header["version"] != _VERSION:
            raise Mismatch(
                f"the state {group!r} has format {header['version']}, and this Kedge reads format {_VERSION}: load it with the "
                "Kedge that saved it"
            )
        self.pickled = rest[: header["pickle_bytes"]]
        self._storages: list[tuple[str, int]] = header["storages"]

    def load(self, map_location: Any, allow_pickle: bool, what: str = "", allow: Iterable[Any] = ()) -> Any:
        """Loads the state and verifies every byte. ``what`` replaces its group in errors."""
        return join_state(self.pickled, self._storage, map_location, allow_pickle, what or self._group, allow)

    def parts(self) -> list[Part]:
        """Loads the storages and verifies every byte."""
        return [Part(str(key), self._storage(str(key), size)) for key, (_, size) in enumerate(self._storages)]

    def _storage(self, key: str, size: int) -> torch.UntypedStorage:
        name, saved = self._storages[int(key)]
        check_size(f"{self._group}/{name}", size, saved)
        return _load(self._engine, self._regions, f"{self._group}/{name}", size)


def _load(engine: _kedge.Engine, regions: Regions, name: str, size: int) -> torch.UntypedStorage:
    _, number, shape, _, saved, _ = regions[name]
    check_size(name, size, saved)
    memory = torch.UntypedStorage(size)  # type: ignore[no-untyped-call]
    engine.load(name, memory.data_ptr(), number, shape)
    return memory
