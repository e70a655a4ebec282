"""DeepSpeed's checkpoint interface, implemented with Kedge."""

from __future__ import annotations

import logging
import os
from typing import Any

from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo, CheckpointEngine  # type: ignore[import-not-found, import-untyped, unused-ignore]

from .._contents import Written
from .._errors import BadState, Error, RankFailed, Timeout
from .._refused import RefusalWarnings
from .._values import Level
from ._find import Place, attributes_of, tag_of
from ._pending import Pending
from ._reader import Reader
from ._saving import Saving
from ._settings import Settings, default_settings, settings_of
from ._shared import Shared, shared_of, error_text

#: After these the engine is dead: a program that is not told would go on without checkpoints.
_ENDING = (RankFailed, Timeout)
_log = logging.getLogger("kedge.deepspeed")


class KedgeCheckpointEngine(CheckpointEngine):  # type: ignore[misc, unused-ignore]
    """Stores tensors as regions in node-local containers, which are protected across nodes; all files between
    ``create`` and ``commit`` are one checkpoint. See kedge.deepspeed.install."""

    def __init__(self, config_params: Any = None, settings: Settings | None = None) -> None:
        """COLLECTIVE."""
        super().__init__(config_params)
        self.name = "KedgeCheckpointEngine"
        self._settings = settings_of(config_params) or settings or default_settings()
        self._shared: Shared = shared_of(self._settings)
        self._saving: Saving | None = None
        self._refusals = RefusalWarnings()
        self._pending: Pending | None = None
        self._reader = Reader(self._shared, self._settings)
        self._early: Exception | None = None  # an error before create
        self._is_in_memory = False  # the store, as far as is known

    # Writing.

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Errors are raised by ``commit`` on all ranks, not here, where DeepSpeed drops them or other ranks wait in a
        barrier."""
        try:
            os.makedirs(path, exist_ok=exist_ok)
        except OSError as error:
            self.spoil(error)

    def create(self, info: CheckpointCommitInfo) -> None:
        """COLLECTIVE. Begins a checkpoint. Completes the pending one first; abandons one that was created but not
        committed, or, if the engine is decoupled, commits it, because DeepSpeed then never does."""
        self._shared.leave(self)
        low = self._shared.low
        mine = Place(os.path.abspath(info.save_dir), str(info.tag))
        root, mark = self._shared.from_root(
            lambda: (Place(os.path.realpath(info.save_dir), mine.tag), os.urandom(16).hex())
        )
        self._shared.directories.add(root.directory)
        tag = tag_of(root)
        low.create(tag, attributes_of(root, bool(info.save_latest)))
        rank, torch_files = self._shared.engine.rank, self._settings.torch_files
        refusals = None if self._settings.allow_pickle else self._refusals
        self._saving = Saving(info, mine, tag, mark, Written(low, mark), rank, torch_files, refusals)
        self._saving.error, self._early = self._early, None

    def save(self, state_dict: Any, path: str) -> None:
        """Copies the state. ``commit`` raises errors on all ranks."""
        if self._saving is None:
            raise BadState("save was called outside of create and commit")
        try:
            self._saving.add(state_dict, os.path.abspath(path), self._is_in_memory)
        except Exception as error:
            self.spoil(error)

    def commit(self, info: CheckpointCommitInfo) -> bool:
        """COLLECTIVE. Raises on all ranks if anything failed on one since create; the checkpoint is then dropped and
        no file changed. Also raises if a file cannot be written at the end; the checkpoint is then only in the store.
        Does nothing if get_commit_info has returned this ``info``."""
        if self._saving is None and self._pending is None:
            raise BadState("commit was called without create")
        self.secure()
        pending, self._pending = self._pending, None
        if pending is not None and not pending.is_complete:
            try:
                pending.settle(waits=True)
            finally:
                pending.drop()
        return True

    def secure(self) -> None:
        """COLLECTIVE, for decoupled engines, for which save_checkpoint does not call commit. Makes the saved state
        survive the death of processes. Raises like commit."""
        saving, self._saving = self._saving, None
        if saving is None:
            return
        try:
            if self._seal(saving):
                self._pending = Pending(self._shared, saving, self._settings.flushed)
            else:
                self._shared.together(saving.put_in_place)
        except BaseException:
            saving.remove()
            raise
        if self._settings.decoupled and self._pending is not None:
            self._pending.begin()

    def spoil(self, error: BaseException) -> None:
        """Local. Makes this checkpoint, or the next one, fail to commit."""
        _log.error("rank %d: %s", self._shared.engine.rank, error_text(error))
        kept = error if isinstance(error, Exception) else RuntimeError(error_text(error))
        if self._saving is None:
            self._early = self._early or kept
        else:
            self._saving.error = self._saving.error or kept

    def give_up(self, error: Exception) -> None:
        """COLLECTIVE with the other ranks' ``commit`` or ``secure``: this rank failed after create. Never raises."""
        if self._saving is None:
            return
        self._saving.error = self._saving.error or error
        tag = self._saving.place.tag
        try:
            self.secure()
        except Exception as ended:
            _log.debug("gave up the checkpoint %s: %s", tag, ended)

    def is_saving(self) -> bool:
        """Whether a checkpoint was created and neither committed nor secured."""
        return self._saving is not None

    def _seal(self, saving: Saving) -> bool:
        """COLLECTIVE. Commits; returns whether there is a checkpoint now."""
        low = self._shared.low
        try:
            is_state = any(self._shared.agree(saving.error, len(saving.written) > 0))
        except RankFailed:
            raise  # the other ranks are gone
        except Error:
            low.abandon()
            raise
        if not is_state:
            low.abandon()  # only files for other programs (save_16bit_model): not a checkpoint
            return False
        try:
            saving.written.end()
        except Exception as error:
            low.refuse(f"checkpoint {saving.place.tag}", error_text(error))
        low.commit()
        low.wait(saving.tag, Level.LOCAL)  # with device.snapshot, commit returns earlier
        self._is_in_memory = saving.written.is_in_memory()
        return True

    # Decoupled: what is pending when the program trains on.

    def is_decoupled(self) -> bool:
        return self._settings.decoupled

    def get_commit_info(self) -> CheckpointCommitInfo | None:
        """COLLECTIVE while a checkpoint is pending, at the cost of one small message. Returns None on all ranks until
        the checkpoint is complete on all; DeepSpeed then calls commit and writes the file latest. After a failure,
        which rank 0 logs, it keeps returning None."""
        self._commit_decoupled_or_log()
        pending = self._pending
        if pending is None:
            return None
        if not pending.is_complete:
            if not self._shared.is_on_all(pending.is_over()) or not self._settle(pending, waits=False):
                return None
        return pending.info

    def advance(self) -> None:
        """COLLECTIVE, for DeepSpeed engines that never ask for commit info: writes the file latest if the pending
        checkpoint is complete."""
        if self.get_commit_info() is not None:
            self.finish()

    def finish(self) -> None:
        """COLLECTIVE. Waits for the pending checkpoint and writes the file latest. Rank 0 logs a failure; raises only
        errors that end the engine."""
        self._commit_decoupled_or_log()
        pending = self._pending
        if pending is None or not (pending.is_complete or self._settle(pending, waits=True)):
            return
        self._pending = None
        try:
            pending.write_latest()
        except _ENDING:
            raise
        except Error as error:
            self._log_error("the checkpoint %s is complete, and the file latest could not be written: %s",
                            pending.info.tag, error)  # fmt: skip

    def cleanup(self) -> None:
        """COLLECTIVE, like DeepSpeedEngine.destroy. Completes the pending checkpoint; never raises."""
        if not self._settings.decoupled or not self._shared.is_current():
            return
        try:
            self.finish()
        except Error as error:
            _log.error("rank %d: %s", self._shared.engine.rank, error_text(error))

    def drain(self) -> None:
        """COLLECTIVE. Before reading files: completes or closes what this or another engine has pending or open."""
        self._shared.leave(self)

    def _settle(self, pending: Pending, waits: bool) -> bool:
        """COLLECTIVE. Settles the pending checkpoint; returns whether it is complete, else rank 0 has logged why
        not."""
        try:
            pending.settle(waits)
            return True
        except Error as error:
            self._pending = None
            pending.drop()
            if isinstance(error, _ENDING):
                raise
            self._log_error(
                "the checkpoint %s is in the node-local stores and was not completed: %s; the file latest is unchanged; mend "
                "the cause, and the next save_checkpoint may succeed", pending.info.tag, error)  # fmt: skip
            return False

    def _commit_decoupled_or_log(self) -> None:
        """COLLECTIVE. Secures the saved state where no caller expects an exception."""
        saving = self._saving
        if saving is None or not self._settings.decoupled:
            return
        try:
            self.secure()
        except _ENDING:
            raise
        except Error as error:
            self._log_error("the checkpoint %s was dropped: %s", saving.place.tag, error)

    def _log_error(self, *words: Any) -> None:
        if self._shared.engine.rank == 0:
            _log.error(*words)

    def leave(self) -> None:
        """COLLECTIVE. Completes the pending checkpoint; drops one that was not committed, or closes the open one."""
        self.finish()
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.remove()
            self._shared.low.abandon()
        if self._reader.is_open():
            self._reader.close()

    # Reading.

    def open(self, load_dir: str, tag: str | None = None, *, whole: bool = False) -> str | None:
        """COLLECTIVE. Completes the pending checkpoint, then opens the one saved with this directory and tag, or,
        without a tag or with "latest", the newest recoverable one saved with save_latest. Returns its tag, or None if
        Kedge has none; DeepSpeed's own files may exist. Afterwards the files that other ranks read exist, all files
        if ``whole`` or if another number of ranks saved it: then ``load`` reads these."""
        self._shared.leave(self)
        return self._reader.open(load_dir, tag, whole)

    def load(self, path: str, map_location: Any = None) -> Any:
        """Loads a file's state from Kedge or, if it has none, from the file."""
        return self._reader.load(path, map_location)

    def close(self, error: Exception | None = None) -> None:
        """COLLECTIVE. Ends an open. If any rank passes an error, all others raise, and loaded data must not be used.
        Raises Mismatch on all ranks if files of different checkpoints were loaded."""
        self._reader.close(error)

    # DeepSpeed's method.

    def preserves_storage_sharing(self) -> bool:
        """False: only the needed part of a storage is stored, so DeepSpeed need not clone tensors."""
        return False
