"""A checkpoint of DeepSpeed's or Lightning's in Kedge: each of its files is a state, and one region that lists the
rank's files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from . import _kedge
from ._errors import Corrupt, InvalidArgument, Mismatch
from ._load_all import Loading
from ._state_regions import (
    Header,
    SavedState,
    committed_parts,
    header_of,
    load_bytes,
    load_described,
    load_of_rank,
    padded,
    save_bytes,
    save_state,
)
from ._states import SplitState
from ._torch_files import Part, write
from ._values import PerRank

_LIST = ".torch/files"
#: What ``RefusalWarnings`` says of states that are loaded as PyTorch's files are.
REFUSED_FILE = (
    "%s holds {named}, which is refused when it is loaded: pass {classes} to torch.serialization.add_safe_globals before "
    "it is saved and loaded (a subclass of list or dict is never loaded so: save a plain one), or set allow_pickle if no other "
    "user can write your checkpoints"
)
_VERSION = 1


class Written:
    """This rank's files in the checkpoint that is being written."""

    def __init__(self, engine: _kedge.Engine, mark: str) -> None:
        self._engine = engine
        self._mark = mark
        self._storages: dict[str, list[tuple[str, int]]] = {}  # of each file

    def __len__(self) -> int:
        return len(self._storages)

    def names(self) -> list[str]:
        """Names of the files, below the tag's directory."""
        return list(self._storages)

    def add(self, name: str, taken: SplitState) -> None:
        """Copies the state. ``name``: of its file, below the tag's directory."""
        if name in self._storages:
            raise InvalidArgument(f"{name} is saved twice in one checkpoint")
        self._storages[name] = save_state(self._engine, name, taken)

    def end(self) -> None:
        """Saves the list of files, once all are added."""
        listed = {"version": _VERSION, "mark": self._mark, "files": self.names()}
        save_bytes(self._engine, _LIST, padded(json.dumps(listed).encode(), b" "))

    def is_in_memory(self) -> bool:
        """After the commit: whether the store is in memory, so that parts() works."""
        return self._engine.committed(_LIST)[1] > 0

    def parts(self, name: str) -> list[Part]:
        """A file's storages in the store's memory, after the commit and until the engine's next collective call."""
        return committed_parts(self._engine, self._storages[name])


class Opened:
    """This rank's files in the open checkpoint."""

    def __init__(self, engine: _kedge.Engine) -> None:
        self._engine = engine
        self._regions = {region[0]: region for region in engine.regions()}
        self.mark, self._names = "", list[str]()
        if _LIST in self._regions:
            self.mark, self._names = _listed(load_bytes(engine, self._regions, _LIST))

    def names(self) -> list[str]:
        """Names of the files, below the tag's directory."""
        return self._names

    def load(self, name: str, map_location: Any, allow_pickle: bool, what: str = "") -> Any:
        """The state of a file, with every byte verified. ``what`` replaces its name in errors."""
        return self._state(name).load(map_location, allow_pickle, what)

    def write(self, name: str, path: str) -> None:
        """The whole file, as torch.load reads it."""
        state = self._state(name)
        write(path, state.pickled, state.parts(), self.mark)

    def _state(self, name: str) -> SavedState:
        return SavedState(self._engine, self._regions, name)


class OpenedOfOthers:
    """The files of the ranks whose containers this process reads, in a checkpoint of another number of ranks."""

    def __init__(self, engine: _kedge.Engine, size: int) -> None:
        """COLLECTIVE. ``size``: how many ranks there are now."""
        self._engine = engine
        self._size = size
        self.mark = ""
        self._ranks: dict[str, int] = {}  # that saved the files
        Loading(engine).run({_LIST: PerRank(self._take)}, size)

    def _take(self, rank: int, listed: Any) -> None:
        self.mark, names = _listed(listed.tobytes())
        self._ranks.update(dict.fromkeys(names, rank))

    def names(self) -> list[str]:
        """Names of the files, below the tag's directory."""
        return list(self._ranks)

    def write(self, paths: Mapping[str, str], rounds: int) -> Exception | None:
        """COLLECTIVE. Writes these files, by name, one after another. ``rounds``: the most that any process writes.
        Returns why this rank could not write one."""
        described = load_described(self._engine, self._size, {name: self._ranks[name] for name in paths})
        failed: Exception | None = None
        for name, path in [*paths.items(), *[("", "")] * (rounds - len(paths))]:
            header = Header(b"", [])
            try:
                if name and failed is None:
                    header = header_of(name, described[name])
            except Exception as error:
                failed = error
            names = [f"{name}/{one}" for one, _ in header.storages]
            loaded = load_of_rank(self._engine, self._size, names, self._ranks.get(name))
            try:
                if name and failed is None:
                    parts = [Part(str(key), loaded[one].untyped_storage()) for key, one in enumerate(names)]
                    write(path, header.pickled, parts, self.mark)
            except Exception as error:
                failed = error
        return failed


def _listed(data: bytes) -> tuple[str, list[str]]:
    listed: Any = json.loads(data)
    if listed["version"] != _VERSION:
        raise Mismatch(
            f"this checkpoint has format {listed['version']}, and this Kedge reads format {_VERSION}: load it with the "
            "Kedge that saved it"
        )
    for name in listed["files"]:
        if os.path.isabs(name) or ".." in name.split("/"):
            raise Corrupt(f"the checkpoint lists the file {name!r}, which lies outside of its directory")
    return listed["mark"], listed["files"]
