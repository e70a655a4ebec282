"""What a checkpoint of DeepSpeed's or Lightning's is in Kedge: each of its files a group of regions, one per storage,
and a pickle of the rest; and one region that lists the rank's files."""

from __future__ import annotations

import json
from typing import Any

import torch

from . import _kedge
from ._errors import InvalidArgument, IoError, Mismatch
from ._memory import OPAQUE, dtype_number
from ._states import TakenApart, check_size, put_together
from ._torch_files import Part, part_at, write

_LIST = ".torch/files"
_VERSION = 1
_ROOM = 4096


def _padded(data: bytes, filler: bytes) -> bytes:
    """To a size that does not change with every step: what keeps its structure is saved faster."""
    room = max(_ROOM, 1 << (len(data) - 1).bit_length())
    return data + filler * (room - len(data))


def _save_bytes(engine: _kedge.Engine, name: str, data: bytes) -> None:
    memory = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    engine.save(name, memory.data_ptr(), OPAQUE, (len(data),), None)


class Written:
    """The files of this rank in the checkpoint that is being written."""

    def __init__(self, engine: _kedge.Engine, mark: str) -> None:
        self._engine = engine
        self._mark = mark
        self._files: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._files)

    def names(self) -> list[str]:
        """Of the files."""
        return list(self._files)

    def add(self, name: str, taken: TakenApart) -> None:
        """Copies the state. ``name``: of the file."""
        if name in self._files:
            raise InvalidArgument(f"{name} is saved twice in one checkpoint")
        storages: list[tuple[str, int]] = []
        for storage in taken.storages:
            memory = storage.on_host()
            number = dtype_number(str(storage.dtype).removeprefix("torch."))
            shape = storage.shape if number != OPAQUE else (memory.nbytes(),)
            region = f"{name}/{storage.name}"
            self._engine.save(region, memory.data_ptr(), number, shape, None)
            storages.append((storage.name, memory.nbytes()))
        _save_bytes(self._engine, f"{name}/.pickle", _padded(taken.pickled, b"\0"))
        self._files[name] = {"pickle_bytes": len(taken.pickled), "storages": storages}

    def is_in_memory(self) -> bool:
        """After the commit: whether its bytes lie in memory, so that parts() gives them."""
        return self._engine.committed(_LIST)[1] > 0

    def parts(self, name: str) -> list[Part]:
        """A file's storages where they lie in the store, after the commit and until the next call of the engine."""
        parts: list[Part] = []
        for key, (region, size) in enumerate(self._files[name]["storages"]):
            address, found = self._engine.committed(f"{name}/{region}")
            if found != size:
                raise IoError(f"the store has {found} bytes of {name}/{region}, and {size} were saved")
            parts.append(part_at(str(key), address, size))
        return parts

    def end(self) -> None:
        """All files are there."""
        listed = {"version": _VERSION, "mark": self._mark, "files": self._files}
        _save_bytes(self._engine, _LIST, _padded(json.dumps(listed).encode(), b" "))


class Opened:
    """The files of this rank in the checkpoint that is open."""

    def __init__(self, engine: _kedge.Engine) -> None:
        self._engine = engine
        self._regions = {region[0]: region for region in engine.regions()}
        listed: Any = {"version": _VERSION, "mark": "", "files": {}}
        if _LIST in self._regions:
            listed = json.loads(self._bytes(_LIST))
        if listed["version"] != _VERSION:
            raise Mismatch(f"this checkpoint was written by another version of Kedge ({listed['version']})")
        self.mark: str = listed["mark"]
        self._files: dict[str, Any] = listed["files"]

    def names(self) -> list[str]:
        """Of the files."""
        return list(self._files)

    def load(self, name: str, map_location: Any, allow_pickle: bool, what: str = "") -> Any:
        """The state of a file, every byte checked. ``what`` it is called in errors, instead of its name."""
        return put_together(self._pickle(name), lambda key, size: self._storage(name, key, size), map_location,
                            allow_pickle, what or name)  # fmt: skip

    def write(self, name: str, path: str) -> None:
        """The file itself, as torch.load reads it."""
        storages = self._files[name]["storages"]
        parts = [Part(str(key), self._storage(name, str(key), size)) for key, (_, size) in enumerate(storages)]
        write(path, self._pickle(name), parts, self.mark)

    def _pickle(self, name: str) -> bytes:
        return self._bytes(f"{name}/.pickle")[: self._files[name]["pickle_bytes"]]

    def _storage(self, name: str, key: str, size: int) -> torch.UntypedStorage:
        region, saved = self._files[name]["storages"][int(key)]
        check_size(f"{name}/{region}", size, saved)
        memory = torch.UntypedStorage(size)  # type: ignore[no-untyped-call]
        self._load(f"{name}/{region}", memory, size)
        return memory

    def _bytes(self, region: str) -> bytes:
        size = self._regions[region][4]
        memory = torch.UntypedStorage(size)  # type: ignore[no-untyped-call]
        self._load(region, memory, size)
        return torch.empty(0, dtype=torch.uint8).set_(memory).numpy().tobytes()

    def _load(self, region: str, memory: torch.UntypedStorage, size: int) -> None:
        _, number, shape, _, bytes_saved, _ = self._regions[region]
        check_size(region, size, bytes_saved)
        self._engine.load(region, memory.data_ptr(), number, shape)
