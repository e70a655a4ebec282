"""Loads states from the open Kedge checkpoint or from DeepSpeed's files."""

from __future__ import annotations

import contextlib
import logging
import os
from typing import Any

from .. import _torch_files
from .._contents import Opened, OpenedOfOthers
from .._errors import Corrupt, Error, Mismatch, NotFound
from . import _safe
from ._find import Place, find
from ._saving import beside, stand_in
from ._settings import Settings
from ._shared import Shared, error_text

_log = logging.getLogger("kedge.deepspeed")
#: What DeepSpeed can load of a checkpoint that another number of ranks saved.
_UNPARTITIONED = "DeepSpeed loads its files, which are in place"
_TOO_FEW = (
    "its files are in place, and of ZeRO-3's weights DeepSpeed finds no partition for the ranks that were not there. Make "
    'a universal checkpoint of them by ds_to_universal.py and load it with "load_universal": true, or start with fewer '
    "ranks"
)
_PARTITIONED = (
    "its files are in place, and DeepSpeed refuses ZeRO's partitions of another number of ranks. Make a universal "
    'checkpoint of them by ds_to_universal.py and load it with "load_universal": true, or load the weights alone with '
    "load_checkpoint(..., load_optimizer_states=False)"
)


class _Loading:
    """State between open and close."""

    def __init__(self, place: Place, opened: Opened, served: set[str]) -> None:
        self.place = place
        self.opened = opened
        self.served = served  #: names of files to load from Kedge


class Reader:
    """Loads the checkpoints of one DeepSpeed engine. See KedgeCheckpointEngine for the calls."""

    def __init__(self, shared: Shared, settings: Settings) -> None:
        self._shared = shared
        self._settings = settings
        self._loading: _Loading | None = None
        self._marks: set[str] = set()  # of the files loaded since open

    def is_open(self) -> bool:
        return self._loading is not None

    def open(self, load_dir: str, tag: str | None, whole: bool) -> str | None:
        self._marks.clear()
        mine = find(self._shared, os.path.abspath(load_dir), None if tag in (None, "latest") else str(tag))
        if mine is None:
            return None
        low, size = self._shared.low, self._shared.engine.size
        try:
            others = OpenedOfOthers(low, size) if low.info()["world_size"] != size else None
            marks = self._shared.together(lambda: self._read_list(mine, others or Opened(low)))
            of_all: set[str] = set().union(*marks)
            if len(of_all) == 1 and "" not in of_all:
                self._leave_to_files(mine)
                return None
            if others is not None:
                self._lay_out_of_others(mine, others)
                return mine.tag
            self._shared.together(lambda: self._lay_out(whole))
        except Exception as error:
            self._loading = None
            # On all ranks. Of damage the engine knows; refused as well, it would not count as damage.
            self._close_quietly("" if isinstance(error, Corrupt) else error_text(error))
            raise
        return mine.tag

    def _read_list(self, place: Place, opened: Opened | OpenedOfOthers) -> set[str]:
        """The marks of files from a newer commit of this tag that the stores have lost; "" stands for all other
        files."""
        if isinstance(opened, Opened):
            self._loading = _Loading(place, opened, set())
        time_ns = self._shared.low.info()["time_ns"]
        marks = set()
        for name in opened.names():
            path = place.path_of(name)
            mark = _torch_files.mark_of(path)
            is_older = mark in (None, opened.mark) or os.stat(path).st_mtime_ns < time_ns
            marks.add("" if is_older or mark is None else mark)
        return marks

    def _leave_to_files(self, place: Place) -> None:
        self._loading = None
        self._shared.low.close()
        if self._shared.engine.rank == 0:
            _log.warning("the files in %s are of a newer checkpoint than Kedge can recover; loading DeepSpeed's files",
                         place.path_of(""))  # fmt: skip

    def _lay_out_of_others(self, place: Place, opened: OpenedOfOthers) -> None:
        """COLLECTIVE. Another number of ranks saved it: writes all its files, and leaves it to DeepSpeed what it can load
        of them, as it alone knows how ZeRO's partitions belong together. Closes the checkpoint."""
        info, rank = self._shared.low.info(), self._shared.engine.rank
        paths: dict[str, str] = {}

        def look() -> int:
            for name in opened.names():
                path = place.path_of(name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if _is_newer(path, info["time_ns"]):
                    _log.warning("%s was changed after the checkpoint was saved; loading the file instead", path)
                elif _torch_files.mark_of(path) != opened.mark or not _torch_files.is_whole(path):
                    paths[name] = beside(path, rank)
            return len(paths)

        most = max(self._shared.together(look))

        def put() -> None:
            for name, at in paths.items():
                os.replace(at, place.path_of(name))

        try:
            self._shared.agree(opened.write(paths, most))
            self._shared.together(put)
        finally:
            for at in paths.values():
                with contextlib.suppress(OSError):
                    os.remove(at)  # if it was not moved into place
        own = [name for name in opened.names() if _is_own(name)]
        kinds = self._shared.from_all((bool(own), any(name.endswith("model_states.pt") for name in own)))
        saved_by, size = info["world_size"], self._shared.engine.size
        said = f"{place.path_of('')} was saved by {saved_by} ranks, and this job has {size}"
        if size > saved_by and any(are_weights for _, are_weights in kinds):
            raise Mismatch(f"{said}: {_TOO_FEW}")
        self._shared.low.close()
        if rank == 0:
            _log.warning("%s: %s", said, _PARTITIONED if any(are_there for are_there, _ in kinds) else _UNPARTITIONED)

    def load(self, path: str, map_location: Any = None) -> Any:
        """Loads a file's state from Kedge or, if it has none, from the file."""
        path = os.path.abspath(path)
        allow_pickle = self._settings.allow_pickle
        loading = self._loading
        with _safe.classes():
            if loading is not None:
                name = loading.place.name_of(path)
                if name in loading.served:
                    return loading.opened.load(name, map_location, allow_pickle)
            if _torch_files.is_stand_in(path):
                raise NotFound(_missing(path, loading), path=path)
            mark = _torch_files.mark_of(path)
            if mark is not None:
                self._marks.add(mark)
                if not _torch_files.is_whole(path):
                    raise Corrupt("the file is damaged: remove it, and load_checkpoint writes it again from Kedge, or load an "
                                  f"older checkpoint: {path}", path=path)  # fmt: skip
            return _torch_files.load(path, map_location, allow_pickle)

    def close(self, error: Exception | None = None) -> None:
        """COLLECTIVE. Ends an open. If any rank passes an error, all others raise, and loaded data must not be used.
        Raises Mismatch on all ranks if files of different checkpoints were loaded."""
        loading, self._loading = self._loading, None
        if loading is not None:
            if error is not None:
                self._close_quietly(error_text(error))
            else:
                self._shared.low.close()
            return
        try:
            of_all = set().union(*self._shared.agree(error, self._marks))
        except Error:
            if error is not None:
                return  # the caller raises it
            raise
        if len(of_all) > 1:
            raise Mismatch(
                "the files that were loaded belong to different checkpoints, as a job leaves them that was killed while it "
                "saved: load an older tag"
            )

    def _close_quietly(self, reason: str) -> None:
        if reason:
            self._shared.low.refuse("DeepSpeed's checkpoint", reason)
        try:
            self._shared.low.close()
        except Error:
            pass

    def _lay_out(self, whole: bool) -> None:
        """Writes the files that DeepSpeed reads without the engine: by glob, exists and torch.load."""
        assert self._loading is not None
        place, opened = self._loading.place, self._loading.opened
        for name in opened.names():
            path = place.path_of(name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if _is_newer(path, self._shared.low.info()["time_ns"]):
                _log.warning("%s was changed after the checkpoint was saved; loading the file instead", path)
                continue
            self._loading.served.add(name)
            if self._settings.torch_files or whole or not _is_own(name):
                # Files that other ranks load must be complete, too.
                if _torch_files.mark_of(path) != opened.mark or not (_is_own(name) or _torch_files.is_whole(path)):
                    at = beside(path, self._shared.engine.rank)
                    opened.write(name, at)
                    os.replace(at, path)
            elif not os.path.exists(path):
                stand_in(path, self._shared.engine.rank)


def _is_own(name: str) -> bool:
    """Whether only the rank that saved this file loads it: ZeRO's partitions."""
    return os.path.basename(name).removeprefix("bf16_").startswith("zero_pp_rank_")


def _is_newer(path: str, time_ns: int) -> bool:
    """Whether another program changed this file after the checkpoint."""
    try:
        changed_ns = os.stat(path).st_mtime_ns
        return (
            changed_ns > time_ns
            and not _torch_files.is_stand_in(path)
            and _torch_files.mark_of(path) is None
            and not _torch_files.is_damaged(path)
        )
    except OSError:
        return False


def _missing(path: str, loading: _Loading | None) -> str:
    if loading is None:
        return (
            f"{path} is kept in Kedge alone, and no checkpoint is open: load it by load_checkpoint of an engine that was "
            "made after kedge.deepspeed.install"
        )
    return f'{path} is kept by another rank in its node-local store: set "torch_files": true in section "kedge" to share it'

