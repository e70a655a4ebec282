"""A checkpoint from create until its files are written."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from .. import _torch_files
from .._contents import REFUSED_FILE, Written
from .._refused import RefusalWarnings
from .._states import refused, split_state
from . import _safe
from ._find import BESIDE, Place

_log = logging.getLogger("kedge.deepspeed")


class Saving:
    """A checkpoint that one rank saves: its states in the engine's container, and the files made of them."""

    def __init__(
        self, info: Any, place: Place, tag: str, mark: str, written: Written, rank: int, torch_files: bool,
        refusals: RefusalWarnings | None,
    ) -> None:  # fmt: skip
        self.info = info  #: DeepSpeed's CheckpointCommitInfo
        self.place = place
        self.tag = tag  #: Kedge's
        self.written = written
        self.error: Exception | None = None
        self._mark = mark
        self._rank = rank
        self._refusals = refusals  #: None: whatever is saved may be loaded
        self._torch_files = torch_files
        self._files: dict[str, str] = {}  # written beside their path, to be moved there
        self._later: dict[str, bytes] = {}  # names of files to write after the commit, with their pickles

    def add(self, state: Any, path: str, is_in_memory: bool) -> None:
        """Copies the state. ``is_in_memory``: the store is in memory, so the file can be written from it after the
        commit."""
        called = os.path.basename(path)
        taken = split_state(state, called)
        if taken.unusual and self._refusals is not None:
            with _safe.classes():
                self._refusals.warn(taken.unusual, lambda: refused(state, called, taken.unusual),
                                    REFUSED_FILE.replace("%s", called), _log.warning)  # fmt: skip
        name = self.place.name_of(path)
        if name is not None:
            self.written.add(name, taken)
            if is_in_memory and self._torch_files:
                self._later[name] = taken.pickled
            if is_in_memory or not self._torch_files:
                return
        parts = [_torch_files.Part(storage.key, storage.on_host()) for storage in taken.storages]
        self._write(path, taken.pickled, parts)

    def write_the_rest(self) -> None:
        """Writes files after the commit and before the engine's next collective call; from any thread. The bytes come
        from the store, which DeepSpeed's changes of tensors do not affect; if writing fails, the checkpoint is safe
        there. Raises OSError."""
        for name, pickled in self._later.items():
            self._write(self.place.path_of(name), pickled, self.written.parts(name))
        self._later.clear()

    def put_in_place(self) -> None:
        """Moves the files into place. Raises OSError."""
        for path, beside in self._files.items():
            os.replace(beside, path)
        for directory in {os.path.dirname(path) for path in self._files}:
            _torch_files.sync_directory(directory)
        if not self._torch_files:
            for name in self.written.names():
                stand_in(self.place.path_of(name), self._rank)

    def remove(self) -> None:
        """Removes files that were not moved into place."""
        for beside in self._files.values():
            try:
                os.remove(beside)
            except OSError:
                pass  # already moved, or never written

    def _write(self, path: str, pickled: bytes, parts: Sequence[_torch_files.Part]) -> None:
        self._files[path] = at = beside(path, self._rank)
        _torch_files.write(at, pickled, parts, self._mark)


def beside(path: str, rank: int) -> str:
    """The temporary path of a file that a rank writes."""
    return os.path.join(os.path.dirname(path), f"{BESIDE}{rank}-{os.path.basename(path)}")


def stand_in(path: str, rank: int) -> None:
    """Writes a stand-in, for code that checks whether a file exists."""
    _torch_files.write_stand_in(path, f"rank {rank} keeps this file in its node-local store (torch_files is false)")
