"""DeepSpeed's interface for checkpoints, served by Kedge."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo, CheckpointEngine  # type: ignore[import-not-found, import-untyped, unused-ignore]

from .. import _torch_files
from .._contents import Opened, Written
from .._errors import BadState, Corrupt, Error, Mismatch, NotFound, RankFailed, from_failure
from .._states import take_apart
from . import _safe
from ._find import Place, attributes_of, find, tag_of
from ._settings import Settings, default_settings, settings_of
from ._shared import Shared, shared_of

_log = logging.getLogger("kedge.deepspeed")


class _Saving:
    """Between create and commit."""

    def __init__(self, place: Place, mark: str, written: Written) -> None:
        self.place = place
        self.mark = mark
        self.written = written
        self.files: dict[str, str] = {}  #: written beside the path, not yet in its place: by path
        self.later: dict[str, bytes] = {}  #: names of files to write after the commit, with their pickles
        self.error: Exception | None = None


class _Loading:
    """Between open and close."""

    def __init__(self, place: Place, opened: Opened, served: set[str]) -> None:
        self.place = place
        self.opened = opened
        self.served = served  #: names of files to load from Kedge


class KedgeCheckpointEngine(CheckpointEngine):  # type: ignore[misc, unused-ignore]
    """Tensors become regions of a container on node-local storage, protected across nodes; all files between ``create``
    and ``commit`` are one checkpoint. See kedge.deepspeed.install."""

    def __init__(self, config_params: Any = None, settings: Settings | None = None) -> None:
        """COLLECTIVE."""
        super().__init__(config_params)
        self.name = "KedgeCheckpointEngine"
        self._settings = settings_of(config_params) or settings or default_settings()
        self._shared: Shared = shared_of(self._settings)
        self._saving: _Saving | None = None
        self._loading: _Loading | None = None
        self._early: Exception | None = None  # an error before create
        self._is_in_memory = False  # the store, as far as is known
        self._marks: set[str] = set()  # of the files that were loaded since open

    # Writing.

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Errors are not raised here, where DeepSpeed drops them or other ranks wait in a barrier, but by ``commit`` on
        all ranks."""
        try:
            os.makedirs(path, exist_ok=exist_ok)
        except OSError as error:
            self._fail(error)

    def create(self, info: CheckpointCommitInfo) -> None:
        """COLLECTIVE. Begins a checkpoint; what an earlier create began and nobody committed is abandoned."""
        self._shared.leave(self)
        low = self._shared.low
        mine = Place(os.path.abspath(info.save_dir), str(info.tag))
        root, mark = self._shared.from_root(
            lambda: (Place(os.path.realpath(info.save_dir), mine.tag), os.urandom(16).hex())
        )
        low.create(tag_of(root), attributes_of(root, bool(info.save_latest)))
        self._saving = _Saving(mine, mark, Written(low, mark))
        self._saving.error, self._early = self._early, None

    def save(self, state_dict: Any, path: str) -> None:
        """Copies the state. Errors are raised by ``commit``, on all ranks."""
        if self._saving is None:
            raise BadState("save was called outside of create and commit")
        try:
            self._save(self._saving, state_dict, os.path.abspath(path))
        except Exception as error:
            self._fail(error)

    def commit(self, info: CheckpointCommitInfo) -> bool:
        """COLLECTIVE. Raises on all ranks if anything failed on one since create: the checkpoint is then dropped, and no
        file is changed. Raises too if a file cannot be written at the end: the checkpoint is then in the store alone."""
        saving, self._saving = self._saving, None
        if saving is None:
            raise BadState("commit was called without create")
        try:
            self._commit(saving)
        finally:
            _remove(saving.files)
        return True

    def give_up(self, error: Exception) -> None:
        """COLLECTIVE with the others' ``commit``: this rank failed between create and commit. Never raises."""
        if self._saving is None:
            return
        self._saving.error = self._saving.error or error
        tag = self._saving.place.tag
        try:
            self.commit(CheckpointCommitInfo(tag, self._saving.place.directory, False))
        except Exception as ended:
            _log.debug("gave up the checkpoint %s: %s", tag, ended)

    def _save(self, saving: _Saving, state: Any, path: str) -> None:
        taken = take_apart(state)
        name = saving.place.name_of(path)
        if name is not None:
            saving.written.add(name, taken)
            if self._is_in_memory and self._settings.torch_files:
                saving.later[name] = taken.pickled
            if self._is_in_memory or not self._settings.torch_files:
                return
        parts = [_torch_files.Part(storage.key, storage.on_host()) for storage in taken.storages]
        self._write(saving, path, taken.pickled, parts)

    def _write(self, saving: _Saving, path: str, pickled: bytes, parts: Sequence[_torch_files.Part]) -> None:
        saving.files[path] = beside = _beside(path, self._shared.engine.rank)
        _torch_files.write(beside, pickled, parts, saving.mark)

    def _commit(self, saving: _Saving) -> None:
        low = self._shared.low
        try:
            is_state = any(self._agree(saving.error, len(saving.written) > 0))
        except RankFailed:
            raise  # nobody is there to abandon it with
        except Error:
            low.abandon()
            raise
        if not is_state:
            low.abandon()  # files for other programs, such as save_16bit_model's: nothing to come back to
        else:
            try:
                saving.written.end()
            except Exception as error:
                low.refuse(f"checkpoint {saving.place.tag}", _words(error))
            low.commit()
            self._is_in_memory = saving.written.is_in_memory()
        self._agree(self._put_in_place(saving))

    def _put_in_place(self, saving: _Saving) -> Exception | None:
        """Runs after the commit: what has to be written is in the store, unchanged, whatever DeepSpeed does with the
        tensors' memory, and if writing fails, the checkpoint is safe there."""
        try:
            for name, pickled in saving.later.items():
                self._write(saving, saving.place.path_of(name), pickled, saving.written.parts(name))
            for path, beside in list(saving.files.items()):
                os.replace(beside, path)
            for directory in {os.path.dirname(path) for path in saving.files}:
                _torch_files.sync_directory(directory)
            if not self._settings.torch_files:
                self._write_stand_ins(saving)
        except Exception as error:
            return error
        return None

    def _write_stand_ins(self, saving: _Saving) -> None:
        for name in saving.written.names():
            self._stand_in(saving.place.path_of(name))

    def _stand_in(self, path: str) -> None:
        _torch_files.write_stand_in(
            path, f"rank {self._shared.engine.rank} keeps this file in its node-local store (torch_files is false)"
        )

    def _agree(self, error: Exception | None, value: Any = None) -> list[Any]:
        """COLLECTIVE. All ranks' values. Raises on all ranks if one has an error."""
        answers = self._shared.from_all((error and (_code(error), _words(error)), value))
        for rank, (failure, _) in enumerate(answers):
            if failure:
                code, words = failure
                raise from_failure(code, words, rank, "", 0, f"{code} on rank {rank}: {words}") from error
        return [answer for _, answer in answers]

    def _fail(self, error: Exception) -> None:
        _log.error("rank %d: %s", self._shared.engine.rank, _words(error))
        if self._saving is None:
            self._early = self._early or error
        else:
            self._saving.error = self._saving.error or error

    def leave(self) -> None:
        """COLLECTIVE. Drops what create began and nobody committed, or closes what is open."""
        saving, self._saving = self._saving, None
        if saving is not None:
            _remove(saving.files)
            self._shared.low.abandon()
        if self._loading is not None:
            self.close()

    # Reading.

    def open(self, load_dir: str, tag: str | None = None, *, whole: bool = False) -> str | None:
        """COLLECTIVE. Opens the checkpoint that was saved with this directory and tag, or, without a tag or with
        "latest", the newest that the ranks can recover and that was saved with save_latest; returns its tag, or None if
        Kedge has none: DeepSpeed's own files may be there. Afterwards the files that other ranks look for are there,
        all files if ``whole``."""
        self._shared.leave(self)
        self._marks.clear()
        mine = find(self._shared, os.path.abspath(load_dir), None if tag in (None, "latest") else str(tag))
        if mine is None:
            return None
        try:
            marks = self._step(lambda: self._read_list(mine))
            of_all: set[str] = set().union(*marks)
            if len(of_all) == 1 and "" not in of_all:
                self._leave_to_files(mine)
                return None
            self._step(lambda: self._lay_out(whole))
        except Exception as error:
            self._loading = None
            self._close_quietly(_words(error))
            raise
        return mine.tag

    def _step(self, work: Callable[[], Any]) -> list[Any]:
        """COLLECTIVE. What the work gives on each rank; raises on all ranks if it raises on one."""
        value, error = None, None
        try:
            value = work()
        except Exception as raised:
            error = raised
        return self._agree(error, value)

    def _read_list(self, place: Place) -> set[str]:
        """The marks of those files that are of a newer commit of this tag, which the stores have lost; "" stands for all
        others."""
        self._loading = loading = _Loading(place, Opened(self._shared.low), set())
        time_ns = self._shared.low.info()["time_ns"]
        marks = set()
        for name in loading.opened.names():
            path = place.path_of(name)
            mark = _torch_files.mark_of(path)
            is_older = mark in (None, loading.opened.mark) or os.stat(path).st_mtime_ns < time_ns
            marks.add("" if is_older or mark is None else mark)
        return marks

    def _leave_to_files(self, place: Place) -> None:
        self._loading = None
        self._shared.low.close()
        if self._shared.engine.rank == 0:
            _log.warning("the files in %s are of a newer checkpoint than Kedge can recover; loading DeepSpeed's files",
                         place.path_of(""))  # fmt: skip

    def load(self, path: str, map_location: Any = None) -> Any:
        """The state that was saved as this file, from Kedge or, if that does not have it, from the file."""
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
        """COLLECTIVE. Ends what open began. What was loaded counts only if no rank gives an error; else all others raise.
        Raises Mismatch on all ranks if files were loaded that belong to different checkpoints."""
        loading, self._loading = self._loading, None
        if loading is not None:
            if error is not None:
                self._close_quietly(_words(error))
            else:
                self._shared.low.close()
            return
        try:
            of_all = set().union(*self._agree(error, self._marks))
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
        self._shared.low.refuse("DeepSpeed's checkpoint", reason)
        try:
            self._shared.low.close()
        except Error:
            pass

    def _lay_out(self, whole: bool) -> None:
        """Writes what is looked for behind the engine's back: by glob, exists and torch.load."""
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
                # What other ranks load has to be whole, too.
                if _torch_files.mark_of(path) != opened.mark or not (_is_own(name) or _torch_files.is_whole(path)):
                    beside = _beside(path, self._shared.engine.rank)
                    opened.write(name, beside)
                    os.replace(beside, path)
            elif not os.path.exists(path):
                self._stand_in(path)

    # What DeepSpeed asks.

    def preserves_storage_sharing(self) -> bool:
        """False: of a storage only what the saved tensors need is stored, so DeepSpeed need not clone them."""
        return False


def _code(error: BaseException) -> str:
    return error.code if isinstance(error, Error) else "io" if isinstance(error, OSError) else "invalid_argument"


def _words(error: BaseException) -> str:
    text = error.message if isinstance(error, Error) else str(error)
    return text if isinstance(error, (Error, OSError)) else f"{type(error).__name__}: {text}"


def _beside(path: str, rank: int) -> str:
    return os.path.join(os.path.dirname(path), f".kedge-{rank}-{os.path.basename(path)}")


def _remove(files: dict[str, str]) -> None:
    for beside in files.values():
        try:
            os.remove(beside)
        except OSError:
            pass  # in its place by now, or never written


def _is_own(name: str) -> bool:
    """Whether only the rank that saved this file loads it: ZeRO's partitions."""
    return os.path.basename(name).removeprefix("bf16_").startswith("zero_pp_rank_")


def _is_newer(path: str, time_ns: int) -> bool:
    """Whether another program wrote this file after the checkpoint."""
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
            "made after kedge.deepspeed.install, with as many ranks as saved it"
        )
    return f'{path} is kept by another rank in its node-local store: set "torch_files": true in section "kedge" to share it'

