"""Kedge's exceptions: ``Error``, with a class for each kind of failure."""

from __future__ import annotations

from typing import Any


class Error(RuntimeError):
    """A failure. Collective calls raise the same class on every rank, except for Timeout and RankFailed, which end
    the engine. ``str()`` gives one line: kind, rank, what happened and what to do, path."""

    #: The kind, as in the log and in C++: "no_space", "mismatch", ...
    code: str = "error"
    #: What happened and what to do.
    message: str
    #: The rank on which it happened, -1 if not a single rank's.
    rank: int
    #: The file concerned, or empty.
    path: str
    #: errno of the system call, or 0.
    system_errno: int

    def __init__(self, message: str, *, rank: int = -1, path: str = "", system_errno: int = 0, text: str = "") -> None:
        message = _printable(message)
        super().__init__(_printable(text) or f"{self.code}: {message}")
        self.message = message
        self.rank = rank
        self.path = path
        self.system_errno = system_errno

    @property
    def exit_status(self) -> int:
        """Exit status for ``sys.exit``: 75 if another attempt may succeed, 78 if it would fail until somebody changes
        something, 1 if that is unknown."""
        from . import _kedge

        return _kedge.exit_status(self.code)

    def __reduce__(self) -> Any:
        """Pickles the exception, for parents of worker processes."""
        return from_failure, (self.code, self.message, self.rank, self.path, self.system_errno, str(self))


def _printable(text: str) -> str:
    """Makes text printable that os.fsdecode has made of a name that is not UTF-8."""
    for how in ("strict", "surrogateescape", "surrogatepass"):
        try:
            return text.encode("utf-8", how).decode("utf-8", "backslashreplace")
        except UnicodeEncodeError:
            continue
    return ascii(text)


class InvalidArgument(Error):
    """A bad value from the caller; the message names the argument or option."""

    code = "invalid_argument"


class BadState(Error):
    """The call is not allowed now: wrong order, ranks in different calls, or an engine that has ended."""

    code = "bad_state"


class NotFound(Error):
    """No such tag, region or file."""

    code = "not_found"


class Mismatch(Error):
    """Not what was saved (type, shape, placement, input, run), or ranks disagree."""

    code = "mismatch"


class NoSpace(Error):
    """Storage or memory is full; the message gives needed and free."""

    code = "no_space"


class IoError(Error):
    """A system call failed; ``path`` and ``system_errno`` say which."""

    code = "io"


class Corrupt(Error):
    """Stored bytes differ from what was written; the message says where."""

    code = "corrupt"


class Unrecoverable(Error):
    """Checkpoints exist and none of them can be recovered; the message lists each and why."""

    code = "unrecoverable"


class Timeout(Error):
    """A rank did not answer in time; the message names it. The engine has ended."""

    code = "timeout"


class Busy(Error):
    """Held by another process; the message names it."""

    code = "busy"


class RankFailed(Error):
    """A rank died, or communication with it failed. The engine has ended."""

    code = "rank_failed"


class DeviceFailed(Error):
    """A GPU or its driver failed; the message says what CUDA reported. The engine has ended."""

    code = "device_failed"


_CLASSES = {
    kind.code: kind
    for kind in (
        InvalidArgument, BadState, NotFound, Mismatch, NoSpace, IoError, Corrupt, Unrecoverable, Timeout, Busy,
        RankFailed, DeviceFailed,
    )
}  # fmt: skip


def from_failure(code: str, message: str, rank: int, path: str, system_errno: int, text: str) -> Error:
    """The exception for a failure of the engine."""
    kind = _CLASSES.get(code, Error)
    return kind(message, rank=rank, path=path, system_errno=system_errno, text=text)
