"""A checkpoint of DeepSpeed's or Lightning's in Kedge: each of its files is a state, and one region that lists the
rank's files."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _kedge
from ._errors import Corrupt, InvalidArgument, Mismatch
from ._state_regions import SavedState, committed_parts, load_bytes, padded, save_bytes, save_state
from ._states import SplitState
from ._torch_files import Part, write

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
        listed: Any = {"version": _VERSION, "mark": "", "files": []}
        if _LIST in self._regions:
            listed = json.loads(load_bytes(engine, self._regions, _LIST))
        if listed["version"] != _VERSION:
            raise Mismatch(
                f"this checkpoint has format {listed['version']}, and this Kedge reads format {_VERSION}: load "
                "it with the Kedge that saved it"
            )
        self.mark: str = listed["mark"]
        self._names: list[str] = listed["files"]
        for name in self._names:
            if os.path.isabs(name) or ".." in name.split("/"):
                raise Corrupt(f"the checkpoint lists the file {name!r}, which lies outside of its directory")

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
