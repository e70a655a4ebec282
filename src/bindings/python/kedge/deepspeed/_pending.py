"""A commit that is complete later: its files are written, and it is flushed, while the program goes on."""

from __future__ import annotations

import os
import threading

from .. import _torch_files
from .._errors import IoError
from .._values import Level
from ._saving import Saving, beside
from ._shared import Shared

#: Said by the engine before this, with the reason.
_NOT_FLUSHED = "it could not be flushed to the parallel filesystem: see the warning above"


class Pending:
    """Complete it is when, on all ranks, the files of ``torch_files`` are durable in their places and, if it is ``flushed``,
    the commit is on the parallel filesystem. Until it is settled, nobody makes collective calls of the engine."""

    def __init__(self, shared: Shared, saving: Saving, flushed: bool) -> None:
        self.info = saving.info  #: DeepSpeed's CheckpointCommitInfo
        self.is_complete = False  #: the same on all ranks
        self._shared = shared
        self._saving = saving
        self._flushed = flushed
        self._thread: threading.Thread | None = None
        self._is_written = False
        self._error: Exception | None = None

    def begin(self) -> None:
        """Local. Writes the files behind the program, if the system gives a thread; otherwise settle does."""
        # The interpreter waits at its end for this thread: ended in the middle of PyTorch's writer it would abort.
        thread = threading.Thread(target=self._write, name="kedge-files")
        try:
            thread.start()
        except RuntimeError:
            return
        self._thread = thread

    def is_over(self) -> bool:
        """Local. Whether nothing goes on any more behind this rank."""
        if self._thread is not None and self._thread.is_alive():
            return False
        # Asked first: the level of what ends in between is that which it gets.
        under_way = self._shared.low.counters()["pending"]
        return not self._flushed or under_way == 0 or self._is_persistent()

    def settle(self, waits: bool) -> None:
        """COLLECTIVE, when it is over on all ranks, or to wait for that (``waits``): a flush that failed is tried once more
        then. Raises on all ranks what failed on one."""
        self._shared.together(self._end_files)
        self._shared.together(self._saving.put_in_place)
        if self._flushed and waits:
            self._shared.low.wait(self._saving.tag, Level.PERSISTENT)
        elif self._flushed:
            self._shared.agree(None if self._is_persistent() else IoError(_NOT_FLUSHED))
        self.is_complete = True

    def write_latest(self) -> None:
        """COLLECTIVE, when it is complete: what DeepSpeed does if it asked in time. Raises on all ranks."""
        is_writer = self.info.save_latest and self._shared.engine.rank == 0
        self._shared.together(self._write_latest if is_writer else lambda: None)

    def drop(self) -> None:
        """Local. Removes files that are not in their places."""
        if self._thread is not None:
            self._thread.join()
        self._saving.remove()

    def _end_files(self) -> None:
        if self._thread is not None:
            self._thread.join()
        elif not self._is_written:
            self._write()
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        try:
            self._saving.write_the_rest()
        except Exception as error:  # whatever it is, all ranks hear of it in settle
            self._error = error
        self._is_written = True

    def _is_persistent(self) -> bool:
        return self._shared.low.level(self._saving.tag) >= Level.PERSISTENT

    def _write_latest(self) -> None:
        path = self._saving.place.latest
        at = beside(path, 0)
        with open(at, "w", encoding="utf-8") as file:
            file.write(self.info.tag)
            file.flush()
            os.fsync(file.fileno())
        os.replace(at, path)
        _torch_files.sync_directory(os.path.dirname(path))
