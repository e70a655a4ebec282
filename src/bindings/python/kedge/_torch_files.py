"""Writes a split state as a file that torch.load reads."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import zipfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, NamedTuple, cast

import numpy as np
import torch

from ._errors import Corrupt
from ._put_together import explained, twice

#: In each file that Kedge wrote: which commit it belongs to. torch.load does not look at it.
_MARK = "kedge"
#: Where storages begin in a file: as torch.save does it, or, where they are large, so that they can bypass the page
#: cache (O_DIRECT).
_ALIGNMENT, _DIRECT_ALIGNMENT = 64, 4096
#: From here on that is faster. Memory has to be aligned for it to the disk's blocks.
_DIRECT_BYTES, _BLOCK, _PIECE = 1 << 20, 512, 8 << 20
#: A file that stands for one that Kedge alone keeps begins with this.
_STAND_IN = b"kedge: "


class Part(NamedTuple):
    """The storages' bytes in host memory."""

    key: str
    memory: torch.UntypedStorage


def part_at(key: str, address: int, size: int) -> Part:
    """A part of memory that the caller keeps alive."""
    if size == 0:
        return Part(key, torch.empty(0, dtype=torch.uint8).untyped_storage())
    held = (ctypes.c_ubyte * size).from_address(address)
    return Part(key, torch.frombuffer(held, dtype=torch.uint8).untyped_storage())


class _Sink:
    """File object for torch's writer. Keeps the first error and raises none, because the writer's destructor also
    writes, and an exception there would end the process."""

    def __init__(self, path: str, expected_bytes: int) -> None:
        self.error: OSError | None = None
        self._at = 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._direct = -1
        self._thread = ThreadPoolExecutor(1, "kedge-file")
        self._begun: list[Future[None]] = []
        if expected_bytes >= _DIRECT_BYTES:
            try:
                self._direct = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_DIRECT)
            except OSError:
                return  # not supported by this file system
            _take_storage(self._file, expected_bytes)

    def write(self, data: Any) -> int:
        """Writes bytes, large ones in another thread while torch computes the next checksum; their memory must stay
        valid until close."""
        rest = memoryview(data)
        size = len(rest)
        large = size // _DIRECT_ALIGNMENT * _DIRECT_ALIGNMENT if self._can_be_direct(rest) else 0
        if large:
            self._begin(rest[:large], self._at)
        self._put(rest[large:], self._at + large, self._file)
        self._at += size
        return size

    def _begin(self, data: memoryview, at: int) -> None:
        try:
            self._begun.append(self._thread.submit(self._put, data, at, self._direct))
        except RuntimeError:  # the interpreter is ending, or no thread can be created
            self._put(data, at, self._direct)

    def _can_be_direct(self, data: memoryview) -> bool:
        if self._direct < 0 or len(data) < _DIRECT_BYTES or self._at % _DIRECT_ALIGNMENT:
            return False
        return bool(np.frombuffer(data, dtype=np.uint8).ctypes.data % _BLOCK == 0)

    def _put(self, rest: memoryview, at: int, file: int) -> None:
        try:
            while len(rest) and self.error is None and self._file >= 0:
                try:
                    written = os.pwrite(file, rest[:_PIECE], at)
                except OSError as error:
                    if error.errno != errno.EINVAL or file == self._file:
                        raise
                    file = self._file  # the file system has larger blocks
                    continue
                at += written
                rest = rest[written:]
        except OSError as error:
            self.error = self.error or error

    def close(self) -> None:
        """Raises the first error; without one, the written bytes are durable."""
        self._thread.shutdown()
        for begun in self._begun:
            begun.result()
        file, self._file = self._file, -1
        try:
            if self.error is None:
                os.fsync(file)
        finally:
            os.close(file)
            if self._direct >= 0:
                os.close(self._direct)
        if self.error is not None:
            raise self.error


def _take_storage(file: int, size: int) -> None:
    """Allocates space at once if the file system can. posix_fallocate would write zeros if it cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    offset = ctypes.c_int64
    libc.fallocate(file, 0, offset(0), offset(size))  # if there is too little space, writing reports it


def write(path: str, pickled: bytes, parts: Sequence[Part], mark: str) -> None:
    """Writes a durable file in torch.save's format from a pickle and its storages, in the order of keys; ``mark``
    names the commit. Raises OSError."""
    size = sum(part.memory.nbytes() for part in parts)
    alignment = _DIRECT_ALIGNMENT if size >= _DIRECT_BYTES * max(1, len(parts)) // 4 else _ALIGNMENT
    sink = _Sink(path, size)
    try:
        writer: Any = torch._C.PyTorchFileWriter(cast("IO[bytes]", sink), True, alignment)
        writer.write_record("data.pkl", pickled, len(pickled))
        for record, text in (
            (".format_version", "1"), (".storage_alignment", str(alignment)), ("byteorder", sys.byteorder), (_MARK, mark)
        ):  # fmt: skip
            writer.write_record(record, text, len(text))
        for part in parts:
            writer.write_record(f"data/{part.key}", part.memory, part.memory.nbytes())
        writer.write_end_of_file()
    finally:
        sink.close()


def write_stand_in(path: str, words: str) -> None:
    """A placeholder for programs that check whether ``path`` exists."""
    with open(path, "wb") as file:
        file.write(_STAND_IN + words.encode() + b"\n")


def is_stand_in(path: str) -> bool:
    """Whether the file is a stand-in. Raises OSError if there is none."""
    with open(path, "rb") as file:
        return file.read(len(_STAND_IN)) == _STAND_IN


def sync_directory(path: str) -> None:
    """Makes the directory's names durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def mark_of(path: str) -> str | None:
    """The commit that a file was written for; None if there is no file or Kedge did not write it."""
    try:
        reader: Any = torch._C.PyTorchFileReader(path)
        return bytes(reader.get_record(_MARK)).decode() if reader.has_record(_MARK) else None
    except RuntimeError:
        return None


def check(path: str) -> None:
    """Raises Corrupt unless the file is complete and, if Kedge wrote it, all checksums match, which torch.load does
    not check. Raises OSError."""
    damaged = None
    try:
        with zipfile.ZipFile(path) as file:
            records = {name.partition("/")[2]: name for name in file.namelist()}
            # Others may write a file without checksums: torch.serialization.set_crc32_options.
            damaged = file.testzip() if _MARK in records else None
            why = "" if "data.pkl" in records else "it has no data.pkl"
    except OSError:
        raise
    except Exception as error:  # zipfile may raise anything for damaged files
        why = str(error) or type(error).__name__
    if damaged is not None:
        raise Corrupt(f"{path} is damaged: the checksum of {damaged} is wrong", path=path)
    if why:
        raise Corrupt(f"{path} is truncated, damaged, or no file that torch.save writes ({why})", path=path)


def is_whole(path: str) -> bool:
    """Whether ``check`` finds nothing."""
    try:
        check(path)
        return True
    except (OSError, Corrupt):
        return False


def is_damaged(path: str) -> bool:
    """Whether torch.load cannot read it because it is truncated or of another kind."""
    try:
        torch._C.PyTorchFileReader(path)
        return False
    except RuntimeError:
        with open(path, "rb") as file:
            return file.read(1) != b"\x80"  # torch.save's format before zip files


def load(path: str, map_location: Any, allow_pickle: bool) -> Any:
    """Loads a file like torch.load. Without ``allow_pickle``, permits only tensors, plain values and classes given to
    torch.serialization.add_safe_globals."""
    with explained(path, allow_pickle):
        if allow_pickle:
            return torch.load(path, map_location=map_location, weights_only=False)
        # Named tuples and enumerations of the program are named by the file.
        return twice(
            lambda: torch.load(path, map_location=map_location, weights_only=True),
            lambda: torch.serialization.get_unsafe_globals_in_checkpoint(path),
        )

