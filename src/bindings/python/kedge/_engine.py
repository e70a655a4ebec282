"""The engine, and the two context managers that checkpoints are written and read in."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from . import _dtensors, _kedge, communicators
from ._bracket import Scope
from ._counters import Counted
from ._errors import InvalidArgument
from ._memory import block_of
from ._options import given_options
from ._refused import REFUSED, RefusalWarnings, dump_object, refused_object
from ._restart import Restart, loads
from ._values import Attribute, Level, Shard


_numbers = itertools.count()


class Engine(Counted):
    """One run's checkpoint engine.

    COLLECTIVE: all ranks make it together, and make its calls marked COLLECTIVE in the same order; these succeed on all
    ranks or raise the same kind of Error on all. Use it as a context manager, or call ``finalize`` at the end.

    ``options``: names as in kedge.toml, with dots or nested, e.g. ``{"store.path": "/local", "redundancy": {"every":
    2}}``; they override the environment and kedge.toml. ``communicator``: see kedge.communicators; one of mpi4py will
    do, too; None is ``default()``.
    ``log``: called with (level, line) instead of writing to standard error.
    """

    def __init__(
        self,
        options: Mapping[str, Any] | None = None,
        *,
        communicator: communicators.Ranks | Any | None = None,
        log: Callable[[int, str], None] | None = None,
    ) -> None:
        communicators.check_mpi4py()
        texts = given_options(options)
        ranks = communicators.of(communicator)
        #: This process's rank, and how many there are.
        self.rank: int = ranks.rank
        self.size: int = ranks.size
        self._engine = _kedge.Engine(ranks, texts, log)
        self._refusals = RefusalWarnings()
        self._number = next(_numbers)
        communicators.unfinished.add(self._number)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.finalize()
        elif isinstance(error, SystemExit) and error.code in (None, 0):
            self._exit()
        else:
            self._engine.leave(communicators.reason_of(kind, error))

    def _exit(self) -> None:
        """Ends normally if the other ranks do so, too."""
        why = "it exits with status 0"
        try:
            if self._engine.finalize_if_all_come(communicators.EXIT_WAIT_S):
                communicators.unfinished.discard(self._number)
                why = ""
            else:
                communicators.missed.add(self._number)
        finally:
            self._engine.leave(why)

    def need_checkpoint(self) -> bool:
        """COLLECTIVE. Whether a checkpoint is due now, or the job must end and its last checkpoint was not committed
        yet; the same on every rank."""
        return self._engine.need_checkpoint()

    def should_exit(self) -> bool:
        """COLLECTIVE. Whether the job must end: any rank got one of the signals in ``exit.signals``, or the deadline
        is near. Call it after need_checkpoint() and its checkpoint. ``signal.signal`` replaces the engine's handler:
        install your own handlers before the engine is made, which then calls them."""
        return self._engine.should_exit()

    def checkpoint(self, tag: str, attributes: Mapping[str, Attribute] | None = None) -> Checkpoint:
        """COLLECTIVE, like the end of the ``with`` statement. A checkpoint to save regions in. It is committed on all
        ranks, or on none if the body raises on any; the other ranks then raise Error."""
        return Checkpoint(self._engine, tag, dict(attributes or {}), self._refusals, self.size == 1)

    def output(self, tag: str, attributes: Mapping[str, Attribute] | None = None) -> Checkpoint:
        """COLLECTIVE, like ``checkpoint``. Saves data for people and other programs, such as a plot, not state to
        restart from: ``restart`` finds it only by its tag, and it does not count for any ``keep`` or ``every``. Every
        output is flushed to the prefix and never removed from there."""
        return Checkpoint(self._engine, tag, dict(attributes or {}), self._refusals, self.size == 1, is_output=True)

    def restart(self, tag: str | None = None, *, before: str | None = None, discard_newer: bool = False) -> Restart:
        """COLLECTIVE, like the end of the ``with`` statement. Opens the newest checkpoint that all ranks can recover:
        of this tag, of any, or older than all of tag ``before``. False in a condition if there is none.
        ``discard_newer`` excludes newer ones permanently."""
        if tag is not None and before is not None:
            raise InvalidArgument("restart takes tag or before, not both")
        engine = self._engine
        if before is not None:
            return Restart(engine, lambda: engine.open_before(before, discard_newer), self.size)
        return Restart(engine, lambda: engine.open(tag or "latest", discard_newer), self.size)

    def restart_from(self, prefix: str, tag: str = "latest", *, run: str = "") -> Restart:
        """COLLECTIVE, like the end of the ``with`` statement. Opens another run's checkpoint in place, as the origin
        of this run. Raises NotFound if there is none."""
        engine = self._engine
        return Restart(engine, lambda: engine.open_source(prefix, run, tag), self.size)

    def level(self, tag: str) -> Level:
        """The level that the newest commit of this tag has reached."""
        return Level(self._engine.level(tag))

    def wait(self, tag: str, level: Level | str, timeout: float | None = None) -> bool:
        """COLLECTIVE. Returns when the newest commit of this tag has reached the level ("protected", "persistent").
        Waits at most ``timeout`` seconds for a commit that is pending in the background, and returns False on all
        ranks if any timed out; the work then continues. Stages that were not due run in the call, however long they
        take."""
        if timeout is None:
            self._engine.wait(tag, _level(level))
            return True
        return self._engine.wait_for(tag, _level(level), timeout)

    def on_complete(self, tag: str, level: Level | str, callback: Callable[[Exception | None], object]) -> None:
        """Calls ``callback`` once, when the newest commit of this tag has reached the level (with None) or cannot
        reach it (with the Error, or NotFound if a newer commit replaced it or the engine was finalized). This happens
        within a later COLLECTIVE call, in its thread, on each rank independently; the callback must not make such
        calls."""
        self._engine.on_complete(tag, _level(level), callback)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Suspends this rank's background work in the ``with`` block, to leave network and memory bandwidth to the
        program. The work resumes by itself when a call waits for it, and after at most a quarter of comm.timeout_s
        per commit. In the block, do not wait for a rank that may be at the beginning of a checkpoint."""
        self._engine.pause()
        try:
            yield
        finally:
            self._engine.resume()

    def pin(self, tag: str) -> None:
        """COLLECTIVE. Keeps the newest commit of this tag on the prefix, regardless of persistent.keep, until
        unpin."""
        self._engine.pin(tag)

    def unpin(self, tag: str) -> None:
        """COLLECTIVE. Unpins the newest commit of this tag."""
        self._engine.unpin(tag)

    def finalize(self, timeout: float | None = None) -> bool:
        """COLLECTIVE. Shuts the engine down; afterwards every call raises BadState. Waits at most ``timeout`` seconds
        for background work, and 10 s more for a write that has begun. Returns False on all ranks if any timed out, or
        if the newest commit could not be flushed or was a lost snapshot: the node-local files are then kept for
        ``kedge drain`` or the next start. Without ``timeout``, raises if the newest commit was a lost snapshot,
        unless ``wait`` has raised that already or ``restart`` discarded newer commits."""
        done = self._engine.finalize(timeout)
        communicators.unfinished.discard(self._number)
        return done


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=4)  # points to the line that saves


def _level(level: Level | str) -> Level:
    if not isinstance(level, str):
        return level
    if level.upper() not in Level.__members__:
        raise InvalidArgument(f"there is no level {level!r}: use local, protected or persistent")
    return Level[level.upper()]


class Checkpoint(Scope):
    """A checkpoint that is being written; see Engine.checkpoint."""

    def __init__(
        self,
        engine: _kedge.Engine,
        tag: str,
        attributes: dict[str, Any],
        refusals: RefusalWarnings,
        is_alone: bool,
        *,
        is_output: bool = False,
    ) -> None:
        super().__init__(engine, f"{'output' if is_output else 'checkpoint'} {tag}", is_alone)
        self._refusals = refusals
        self.tag = tag
        self._attributes = attributes
        self._is_output = is_output

    def __enter__(self) -> Checkpoint:
        self._engine.create(self.tag, self._attributes, self._is_output)
        self._is_open = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end(self._engine.commit, error)

    def save(self, name: str, data: Any, *, shard: Shard | None = None, replicated: bool = False) -> None:
        """Saves a NumPy array, PyTorch tensor, GPU array, any array with ``__dlpack__``, number or bytes; it may be
        changed afterwards. Non-contiguous memory is first copied into a contiguous buffer. A DTensor says itself which
        block it is; of ranks that have the same block, one saves it."""
        self._check_open()
        if _dtensors.is_one(data):
            if shard is not None or replicated:
                raise InvalidArgument(
                    f"{name!r}: a DTensor says itself which block it is; leave shard and replicated out"
                )
            part = _dtensors.part_of(name, data)
            data, shard, replicated = part.local, part.shard, part.shard is None
            if not part.is_first and not replicated:
                return
        block = block_of(name, data)
        self._engine.save(name, block.address, block.dtype, block.shape, _placement(shard, replicated), block.stream)

    def save_object(self, name: str, value: Any, *, allow: Iterable[Any] = (), allow_pickle: bool = False) -> None:
        """Pickles any object and saves the result. For arrays and tensors use ``save``. Warns the first time that an
        object contains something that load_object refuses by default; pass the same ``allow`` and ``allow_pickle`` as
        at the restart to silence the warning."""
        self._check_open()
        data, unusual = dump_object(value, name)
        self.save(name, data)
        if unusual and not allow_pickle:
            given = tuple(allow)
            words = REFUSED.format("load_object")
            self._refusals.warn(unusual, lambda: refused_object(value, name, given), words, _warn, given)

    def save_state(self, name: str, state: Any, *, allow: Iterable[Any] = (), allow_pickle: bool = False) -> None:
        """Saves a state of a PyTorch program, such as ``{"model": model.state_dict(), "step": 7}``: nested containers
        of tensors, plain values and any objects. Each storage becomes a region in the group ``name``, so tensors that
        share memory are saved once; the rest is pickled, as by torch.save. CUDA tensors are copied directly, those of
        other devices through host memory. Warns like save_object."""
        from ._state_regions import save_state  # needs PyTorch
        from ._states import refused, split_state

        self._check_open()
        taken = split_state(state, name)
        save_state(self._engine, name, taken)
        if taken.unusual and not allow_pickle:
            given = tuple(allow)
            find: Callable[[], list[tuple[str, str]]] = lambda: refused(state, name, taken.unusual, given)  # noqa: E731
            self._refusals.warn(taken.unusual, find, REFUSED.format("load_state"), _warn, given)

    def route_out(self, name: str, max_bytes: int = 0) -> str:
        """Returns a path to write a file to, or a directory if the name ends with '/', which the checkpoint stores.
        Close the file before the with statement ends. It fails if it exceeds ``max_bytes``; 0 means no limit."""
        self._check_open()
        return self._engine.route_out(name, max_bytes)


def _placement(shard: Shard | None, replicated: bool) -> Any:
    if shard is not None and replicated:
        raise InvalidArgument("a region is a shard or replicated, not both")
    if shard is not None:
        extents = (*shard.global_shape, *shard.offset)
        if not all(isinstance(extent, (int, np.integer)) and extent >= 0 for extent in extents):
            raise InvalidArgument("global_shape and offset of a shard are integers of 0 or more")
        return _dtensors.placement(shard)
    return True if replicated else None


__all__ = ["Checkpoint", "Engine", "Restart", "loads"]
