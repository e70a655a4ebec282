"""The engines of this process, one for each set of options, which DeepSpeed's short-lived engines share."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .. import _kedge
from .._engine import Engine
from .._errors import BadState, Error, RankFailed, from_failure
from .._transport import all_arrive, reason_of
from ..communicators import EXIT_WAIT_S, Ranks, mpi, torch_distributed
from ._settings import Settings


class Shared:
    """An engine, and a process group for decisions among its ranks."""

    def __init__(self, settings: Settings) -> None:
        if not dist.is_available() or not dist.is_initialized():
            raise BadState("torch.distributed is not initialized: call deepspeed.init_distributed() first")
        options = dict(settings.options)
        seconds = float(options.get("comm.timeout_s") or _kedge.loaded_option("comm.timeout_s"))
        self._world = dist.group.WORLD
        self._process = os.getpid()
        self._user: Any = None
        #: Those that this program has saved to or loaded from, as attributes name them; the same on all ranks.
        self.directories: set[str] = set()
        self.moved: dict[str, str] = {}  #: where they were before, by where they are
        # Gloo, which knows host memory, whatever the backend of the other groups is.
        self._group = dist.new_group(backend="gloo", timeout=timedelta(seconds=seconds))
        self.engine = Engine(options, communicator=self._ranks())

    def _ranks(self) -> Ranks:
        """MPI's ranks, which are faster, if MPI runs with the same ranks."""
        world: Ranks | None = None
        is_mpi = False
        if _kedge.has_mpi and _kedge.mpi_is_running():
            world = mpi()
            is_mpi = (world.rank, world.size) == (dist.get_rank(), dist.get_world_size())
        held: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(held, is_mpi, group=self._group)
        return world if world is not None and all(held) else torch_distributed()

    def leave(self, user: Any) -> None:
        """COLLECTIVE. A DeepSpeed engine begins something: ends what another one, or itself, has left open."""
        before, self._user = self._user, user
        if before is not None:
            before.leave()

    @property
    def low(self) -> _kedge.Engine:
        """The private kedge._kedge.Engine."""
        return self.engine._engine

    def is_current(self) -> bool:
        """Whether the processes it was made with are still connected."""
        is_rank = self._process == os.getpid()  # and not a child that was forked
        return is_rank and bool(dist.is_initialized()) and dist.group.WORLD is self._world

    def drop(self) -> None:
        """Local. Releases the store of an engine whose process group is gone, whatever still refers to it."""
        self._user = None
        self.low.leave("")
        ended: Any = _Ended()
        self.engine._engine = ended

    def all_arrive(self) -> bool:
        """COLLECTIVE if all ranks end their programs; if not, the others may be in any call. Uses messages, because a
        gloo barrier waits as long as the group allows, in a thread that the process cannot end."""
        return all_arrive(self._group, EXIT_WAIT_S)

    def from_root(self, look: Callable[[], Any]) -> Any:
        """COLLECTIVE. Runs the function on rank 0, to spare the filesystem thousands of ranks, and returns its result
        on all. Raises on all ranks if it raises there."""
        error: Exception | None = None
        held: list[Any] = [None, None]
        if self.engine.rank == 0:
            try:
                held[1] = look()
            except Exception as raised:
                error = raised
                held[0] = _code(raised), error_text(raised)
        with _translated():
            dist.broadcast_object_list(held, src=0, group=self._group)
        if held[0] is not None:
            raise _failure(0, *held[0]) from error
        return held[1]

    def from_all(self, value: Any) -> list[Any]:
        """COLLECTIVE. All ranks' values."""
        values: list[Any] = [None] * self.engine.size
        with _translated():
            dist.all_gather_object(values, value, group=self._group)
        return values

    def is_on_all(self, fact: bool) -> bool:
        """COLLECTIVE. Whether it is true on all ranks; one small message."""
        held = torch.tensor([int(fact)], device="cpu")
        with _translated():
            dist.all_reduce(held, op=dist.ReduceOp.MIN, group=self._group)
        return bool(held.item())

    def agree(self, error: Exception | None, value: Any = None) -> list[Any]:
        """COLLECTIVE. All ranks' values. Raises on all ranks if one has an error."""
        answers = self.from_all((error and (_code(error), error_text(error)), value))
        for rank, (failure, _) in enumerate(answers):
            if failure:
                raise _failure(rank, *failure) from error
        return [answer for _, answer in answers]

    def together(self, work: Callable[[], Any]) -> list[Any]:
        """COLLECTIVE. Runs the function on each rank and returns its result; raises on all ranks if it raises on
        one."""
        value, error = None, None
        try:
            value = work()
        except Exception as raised:
            error = raised
        return self.agree(error, value)

    def end(self) -> None:
        """COLLECTIVE. Completes the pending checkpoint and finalizes the engine."""
        user, self._user = self._user, None
        try:
            if user is not None:
                user.finish()
        finally:
            self.engine.finalize()


def error_text(error: BaseException) -> str:
    """A rank's error, for the other ranks."""
    text = error.message if isinstance(error, Error) else str(error)
    return text if isinstance(error, (Error, OSError)) else f"{type(error).__name__}: {text}".removesuffix(": ")


def _code(error: BaseException) -> str:
    return error.code if isinstance(error, Error) else "io" if isinstance(error, OSError) else "invalid_argument"


def _failure(rank: int, code: str, words: str) -> Error:
    """The error that other ranks raise."""
    return from_failure(code, words, rank, "", 0, f"{code} on rank {rank}: {words}")


class _Ended:
    """Replaces an engine that was dropped."""

    def __getattr__(self, name: str) -> Any:
        raise BadState("torch.distributed was shut down, and Kedge's engine with it: call deepspeed.initialize again")


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Raises gloo's failures as Kedge's."""
    try:
        yield
    except RuntimeError as error:
        raise RankFailed(
            f"communication with the other ranks failed: {reason_of(error)}; a rank may have died, or the network failed: start "
            "the job again"
        ) from error


_log = logging.getLogger("kedge.deepspeed")
_process = 0  # that made the engines
_shared: dict[tuple[tuple[str, str], ...], Shared] = {}


def shared_of(settings: Settings) -> Shared:
    """COLLECTIVE. Returns the engine with these options, made if necessary."""
    global _process
    if os.getpid() != _process:
        _shared.clear()  # of the parent: only it may use them
        _process = os.getpid()
    found = _shared.get(settings.options)
    if found is None or not found.is_current():
        if found is not None:
            _shared.pop(settings.options).drop()
        if not _shared:
            atexit.unregister(_at_exit)
            atexit.register(_at_exit)
        _shared[settings.options] = found = Shared(settings)
    return found


def finalize() -> None:
    """COLLECTIVE. Shuts Kedge's engines down normally. Call it before torch.distributed.destroy_process_group; it is
    called at exit if torch.distributed is still initialized. Does nothing in a forked child."""
    if _shared and os.getpid() != _process:
        return
    if not _shared and _is_expected():
        _log.warning("no engine was made after kedge.deepspeed.install: call install before deepspeed.initialize, or nothing "
                     "is checkpointed by Kedge")  # fmt: skip
    while _shared:
        _, shared = _shared.popitem()
        if shared.is_current():
            shared.end()
        else:
            _log.warning("torch.distributed ended before kedge.deepspeed.finalize(): the newest checkpoint is in the stores "
                         "and may not be persistent; call finalize first")  # fmt: skip
            shared.drop()


def _is_expected() -> bool:
    from ._install import is_installed  # which imports this

    return is_installed() and os.getpid() != _process


def _at_exit() -> None:
    # A process that failed must not wait for the others, which may be anywhere; a forked child is no rank.
    if hasattr(sys, "last_value") or os.getpid() != _process:
        return
    # A rank that exits early, by sys.exit or after a logged error, looks the same here, so all ranks synchronize first.
    if all(shared.all_arrive() for shared in _shared.values() if shared.is_current()):
        finalize()
        return
    _log.warning("rank %d ends, and the other ranks did not within %g s: its engine is left as it is; the newest checkpoint is in "
                 "the stores", dist.get_rank(), EXIT_WAIT_S)  # fmt: skip
    while _shared:
        _shared.popitem()[1].drop()
