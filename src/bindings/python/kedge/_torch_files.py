"""Files that torch.load reads, written from a state that was taken apart."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO, Any, cast

import torch

from ._states import explained

#: In each file that Kedge wrote: which commit it belongs to. torch.load does not look at it.
_MARK = "kedge"
_ALIGNMENT = 64
#: A file that stands for one that Kedge alone keeps begins with this.
_STAND_IN = b"kedge: "


class _Sink:
    """What torch's writer writes to. It keeps the first error and raises none: the writer's destructor writes too, and an
    exception there would end the process."""

    def __init__(self, path: str) -> None:
        self.error: OSError | None = None
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115: closed by close

    def write(self, data: Any) -> int:
        rest = memoryview(data)
        size = len(rest)
        try:
            while len(rest) and self.error is None and not self._file.closed:
                rest = rest[self._file.write(rest) :]  # a write of more than 2 GiB is cut short
        except OSError as error:
            self.error = error
        return size

    def close(self) -> None:
        """Raises the first error; without one, what was written is durable."""
        try:
            if self.error is None:
                os.fsync(self._file.fileno())
        finally:
            self._file.close()
        if self.error is not None:
            raise self.error


def write(path: str, pickled: bytes, storages: Iterable[tuple[str, torch.UntypedStorage]], mark: str) -> None:
    """A durable file as torch.save writes it, of a pickle and (key, bytes) of its storages, in the order of the keys;
    ``mark`` names the commit. Raises OSError."""
    sink = _Sink(path)
    try:
        writer: Any = torch._C.PyTorchFileWriter(cast("IO[bytes]", sink), True, _ALIGNMENT)
        writer.write_record("data.pkl", pickled, len(pickled))
        for record, text in (
            (".format_version", "1"), (".storage_alignment", str(_ALIGNMENT)), ("byteorder", sys.byteorder), (_MARK, mark)
        ):  # fmt: skip
            writer.write_record(record, text, len(text))
        for key, memory in storages:
            writer.write_record(f"data/{key}", memory, memory.nbytes())
        writer.write_end_of_file()
    finally:
        sink.close()


def write_stand_in(path: str, words: str) -> None:
    """A small file for who looks whether ``path`` exists."""
    with open(path, "wb") as file:
        file.write(_STAND_IN + words.encode() + b"\n")


def is_stand_in(path: str) -> bool:
    """Whether a stand-in lies there. Raises OSError if nothing does."""
    with open(path, "rb") as file:
        return file.read(len(_STAND_IN)) == _STAND_IN


def mark_of(path: str) -> str | None:
    """The commit that a file was written for; None: there is no file, or somebody else wrote it."""
    try:
        reader: Any = torch._C.PyTorchFileReader(path)
        return bytes(reader.get_record(_MARK)).decode() if reader.has_record(_MARK) else None
    except RuntimeError:
        return None


def load(path: str, map_location: Any, allow_pickle: bool) -> Any:
    """As torch.load. Without ``allow_pickle`` only tensors, plain values and what torch.serialization.add_safe_globals
    was given are made."""
    with explained(path, allow_pickle):
        return torch.load(path, map_location=map_location, weights_only=not allow_pickle)

