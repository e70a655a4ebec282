"""A commit that is completed later: its files are written, and it is flushed, in the background."""

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
    """It is complete when, on all ranks, the files of ``torch_files`` are durable in place and, if ``flushed``, the
    commit is on the prefix. Until it is settled, no collective calls of the engine are allowed."""

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
        """Local. Writes the files in the background, or in settle if no thread can be created."""
        # Not a daemon thread: ended in PyTorch's writer at the interpreter's end, it would abort.
        thread = threading.Thread(target=self._write, name="kedge-files")
        try:
            thread.start()
        except RuntimeError:
            return
        self._thread = thread

    def is_over(self) -> bool:
        """Local. Whether this rank's background work has ended."""
        if self._thread is not None and self._thread.is_alive():
            return False
        # Queried first, because the work may end in between.
        under_way = self._shared.low.counters()["pending"]
        return not self._flushed or under_way == 0 or self._is_persistent()

    def settle(self, waits: bool) -> None:
        """COLLECTIVE, when the work has ended on all ranks, or to wait for that (``waits``): retries a failed flush
        once then. Raises on all ranks if one failed."""
        self._shared.together(self._end_files)
        self._shared.together(self._saving.put_in_place)
        if self._flushed and waits:
            self._shared.low.wait(self._saving.tag, Level.PERSISTENT)
        elif self._flushed:
            self._shared.agree(None if self._is_persistent() else IoError(_NOT_FLUSHED))
        self.is_complete = True

    def write_latest(self) -> None:
        """COLLECTIVE, when complete: what DeepSpeed would have done. Raises on all ranks."""
        is_writer = self.info.save_latest and self._shared.engine.rank == 0
        self._shared.together(self._write_latest if is_writer else lambda: None)

    def drop(self) -> None:
        """Local. Removes files that were not moved into place."""
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
        except Exception as error:  # settle reports it on all ranks
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
