"""Messages over torch.distributed, for engines without MPI."""

from __future__ import annotations

import contextlib
import ctypes
import queue
import re
import threading
import time
import weakref
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from ._errors import InvalidArgument

#: Tags that one channel takes up, see kedge/transport.hpp.
_TAGS = 4096
#: Above what applications use.
_FIRST_TAG = 1 << 20
_MEETING = _FIRST_TAG - 1

_channels: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def _bytes_at(address: int, size: int) -> Any:
    import torch

    if size == 0:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer((ctypes.c_ubyte * size).from_address(address), dtype=torch.uint8)


def reason_of(error: BaseException) -> str:
    """gloo's message, without its source location and advice to developers."""
    lines = str(error).splitlines() or [type(error).__name__]
    return re.sub(r"^\[[^]]*\] ", "", lines[0]).split(". This is typically")[0]


@contextlib.contextmanager
def _explain_errors() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise RuntimeError(reason_of(error)) from error


class _Waiter:
    """A thread that waits for one message after the other without limit, because a wait that times out closes gloo's
    connections. Callers have their own time limits."""

    def __init__(self) -> None:
        self._transfers: queue.SimpleQueue[Transfer | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, args=(self._transfers,), daemon=True, name="kedge-messages").start()

    def __del__(self) -> None:
        self._transfers.put(None)

    def wait_for(self, transfer: Transfer) -> None:
        self._transfers.put(transfer)

    @staticmethod
    def _run(transfers: queue.SimpleQueue[Transfer | None]) -> None:
        while (transfer := transfers.get()) is not None:
            transfer.watch()
            del transfer  # otherwise its memory would stay until the next one


class Transfer:
    """A message in progress."""

    def __init__(self, work: Any, memory: Any, waiter: _Waiter) -> None:
        self._work = work
        self._memory = memory  # gloo does not keep it alive
        self._waiter = waiter
        self._is_watched = False
        self._ended = threading.Event()
        self._failure: BaseException | None = None

    def wait(self, seconds: float) -> bool:
        """Whether it was complete in time; may be called again."""
        if not self._is_watched:
            self._is_watched = True
            self._waiter.wait_for(self)
        return self._ended.wait(seconds) and self.test()

    def test(self) -> bool:
        """Whether it is complete. Needs a thread of its own, because other messages may be complete earlier."""
        if not self._is_watched:
            self._is_watched = True
            threading.Thread(target=self.watch, daemon=True, name="kedge-message").start()
        if not self._ended.is_set():
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def watch(self) -> None:
        """Waits in the thread."""
        try:
            with _explain_errors():
                self._work.wait(timedelta(seconds=1e8))
        except BaseException as error:  # noqa: B036: raised where the engine asks
            self._failure = error
        finally:
            self._ended.set()


class Transport:
    """Sends and receives over a process group with gloo for host memory."""

    def __init__(self, group: Any, first_tag: int = _FIRST_TAG) -> None:
        import torch

        self._group = group
        self._first_tag = first_tag
        self.rank: int = group.rank()
        self.size: int = group.size()
        self.library = f"gloo of PyTorch {torch.__version__}"
        self._waiter = _Waiter()

    def open_channel(self, seconds: float) -> Transport:
        """Opens a channel. Ranks open a group's channels in the same order, so they agree on the tags."""
        number = _channels.get(self._group, 0) + 1
        _channels[self._group] = number
        return Transport(self._group, _FIRST_TAG + number * _TAGS)

    def send(self, peer: int, tag: int, address: int, size: int) -> Transfer:
        memory = _bytes_at(address, size)
        with _explain_errors():
            return Transfer(self._group.send([memory], peer, self._first_tag + tag), memory, self._waiter)

    def receive(self, peer: int, tag: int, address: int, size: int) -> Transfer:
        memory = _bytes_at(address, size)
        with _explain_errors():
            return Transfer(self._group.recv([memory], peer, self._first_tag + tag), memory, self._waiter)


def all_arrive(group: Any, seconds: float) -> bool:
    """COLLECTIVE over a gloo group if all ranks call it; false if they do not within that time, and the group is then
    unusable."""
    import torch

    rank, size = group.rank(), group.size()
    until = time.monotonic() + seconds
    held = torch.zeros(1, dtype=torch.uint8, device="cpu")

    def passed(work: Any) -> bool:
        with _explain_errors():
            work.wait(timedelta(seconds=max(0.001, until - time.monotonic())))  # a thread may be too late to begin
        return True

    try:
        if rank != 0:
            return passed(group.send([held], 0, _MEETING)) and passed(group.recv([held], 0, _MEETING))
        if not all(passed(group.recv([held], peer, _MEETING)) for peer in range(1, size)):
            return False
        return all(passed(group.send([held], peer, _MEETING)) for peer in range(1, size))
    except RuntimeError:  # not in time, or a connection that is closed
        return False


def transport_over(group: Any) -> Transport:
    """A transport over this process group of torch.distributed; if None, over all ranks with a new group, which all
    ranks make together."""
    import torch.distributed as dist

    if group is None:
        group = dist.new_group(backend="gloo")
    backend = dist.get_backend_config(group)
    if "gloo" not in str(backend):
        raise InvalidArgument(
            f"the process group's backend is {backend}, and Kedge needs gloo for host memory: make a group with "
            'torch.distributed.new_group(ranks, backend="gloo"), or let Kedge make one by giving none'
        )
    if group.rank() < 0:
        raise InvalidArgument("this rank is not in the process group: make the engine on its members only")
    return Transport(group)
