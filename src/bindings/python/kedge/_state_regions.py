"""States of PyTorch programs as regions: one per storage in a group, and one that describes the whole."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch

from . import _kedge
from ._errors import IoError, Mismatch
from ._load_all import Loading, Target
from ._memory import OPAQUE, Block, dtype_name, dtype_number, is_cuda, stream_of
from ._put_together import check_size, join_state
from ._states import SplitState
from ._torch_files import Part, part_at
from ._values import Want

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


class Header(NamedTuple):
    """What describes a state."""

    pickled: bytes
    storages: list[tuple[str, int]]  #: names and sizes, in the order of keys


def header_of(group: str, data: bytes) -> Header:
    """Raises Mismatch if another version of Kedge wrote it."""
    line, _, rest = data.partition(b"\n")
    header = json.loads(line)
    if header["version"] != _VERSION:
        raise Mismatch(
            f"the state {group!r} has format {header['version']}, and this Kedge reads format {_VERSION}: load it with the "
            "Kedge that saved it"
        )
    return Header(rest[: header["pickle_bytes"]], header["storages"])


class SavedState:
    """A state in the open checkpoint."""

    def __init__(self, engine: _kedge.Engine, regions: Regions, group: str) -> None:
        self._engine = engine
        self._regions = regions
        self._group = group
        header = header_of(group, load_bytes(engine, regions, f"{group}/{_STATE}"))
        self.pickled = header.pickled
        self._storages = header.storages

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


def load_replicated(
    engine: _kedge.Engine, size: int, group: str, map_location: Any, allow_pickle: bool, allow: Iterable[Any]
) -> Any:
    """COLLECTIVE. Loads a state that is the same on all ranks that saved it, on any number of ranks (``size``)."""
    try:
        described = _load_alike(engine, size, [f"{group}/{_STATE}"])
        header = header_of(group, described[f"{group}/{_STATE}"].numpy().tobytes())
        loaded = _load_alike(engine, size, [f"{group}/{name}" for name, _ in header.storages])
    except Mismatch as error:
        raise Mismatch(
            f"the state {group!r} cannot be loaded as replicated: {error.message}. Save what differs between ranks, such as "
            "random states, by another call of save_state or save_object",
            rank=error.rank,
        ) from error

    def read(key: str, expected: int) -> torch.UntypedStorage:
        name, _ = header.storages[int(key)]
        memory = loaded[f"{group}/{name}"].untyped_storage()
        check_size(f"{group}/{name}", expected, memory.nbytes())
        return memory

    return join_state(header.pickled, read, map_location, allow_pickle, group, allow)


def _load_alike(engine: _kedge.Engine, size: int, names: list[str]) -> dict[str, torch.Tensor]:
    """COLLECTIVE. As bytes, whatever their type is."""
    return Loading(engine, _bytes_for).run({name: Want(replicated=True) for name in names}, size)


def load_of_rank(engine: _kedge.Engine, size: int, names: list[str], of: int | None) -> dict[str, torch.Tensor]:
    """COLLECTIVE. Regions of a rank, as bytes."""
    return Loading(engine, _bytes_for).run({name: Want(of=of) for name in names}, size)


def load_described(engine: _kedge.Engine, size: int, groups: Mapping[str, int]) -> dict[str, bytes]:
    """COLLECTIVE. What describes these states, for header_of; of the ranks that saved them."""
    wants = {f"{group}/{_STATE}": Want(of=rank) for group, rank in groups.items()}
    loaded = Loading(engine, _bytes_for).run(wants, size)
    return {group: loaded[f"{group}/{_STATE}"].numpy().tobytes() for group in groups}


def _bytes_for(name: str, dtype: int, shape: tuple[int, ...]) -> Target:
    """Memory for a region."""
    kind = torch.uint8 if dtype == OPAQUE else getattr(torch, dtype_name(dtype))
    memory = torch.empty(math.prod(shape) * kind.itemsize, dtype=torch.uint8)
    return Target(Block(memory.data_ptr(), dtype, shape, memory), memory, None)


def _load(engine: _kedge.Engine, regions: Regions, name: str, size: int) -> torch.UntypedStorage:
    _, number, shape, _, saved, _ = regions[name]
    check_size(name, size, saved)
    memory = torch.UntypedStorage(size)  # type: ignore[no-untyped-call]
    engine.load(name, memory.data_ptr(), number, shape)
    return memory
