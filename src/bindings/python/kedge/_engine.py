"""The engine, and the two context managers that checkpoints are written and read in."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from . import _kedge, communicators
from ._bracket import Scope
from ._counters import Counted
from ._errors import InvalidArgument, Mismatch, NotFound
from ._memory import OPAQUE, Block, block_of, dtype_name, dtype_number, empty_array, empty_tensor, target_of
from ._options import given_options
from ._plain import restricted_loads
from ._refused import REFUSED, RefusalWarnings, dump_object, refused_object
from ._values import Attribute, Info, Level, RegionInfo, Shard


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
            return Restart(engine, lambda: engine.open_before(before, discard_newer), self.size == 1)
        return Restart(engine, lambda: engine.open(tag or "latest", discard_newer), self.size == 1)

    def restart_from(self, prefix: str, tag: str = "latest", *, run: str = "") -> Restart:
        """COLLECTIVE, like the end of the ``with`` statement. Opens another run's checkpoint in place, as the origin
        of this run. Raises NotFound if there is none."""
        engine = self._engine
        return Restart(engine, lambda: engine.open_source(prefix, run, tag), self.size == 1)

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
        changed afterwards. Non-contiguous memory is first copied into a contiguous buffer."""
        self._check_open()
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


class Restart(Scope):
    """A checkpoint that is being read; see Engine.restart. Use loaded data only if the ``with`` statement ends
    without an error."""

    def __init__(self, engine: _kedge.Engine, open_it: Callable[[], str | None], is_alone: bool) -> None:
        super().__init__(engine, "restart", is_alone)
        self._open_it = open_it
        self._regions: dict[str, RegionInfo] | None = None
        #: The tag that was opened; None if there was none.
        self.tag: str | None = None

    def __enter__(self) -> Restart:
        self.tag = self._open_it()
        self._is_open = self.tag is not None
        self._is_empty = not self._is_open
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._is_open:
            self._end(self._engine.close, error)

    def __bool__(self) -> bool:
        return self.tag is not None

    @property
    def info(self) -> Info:
        """Describes the open checkpoint."""
        self._check_open()
        return Info(**self._engine.info())

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes given to Engine.checkpoint."""
        return self.info.attributes

    @property
    def regions(self) -> dict[str, RegionInfo]:
        """This rank's regions, by name."""
        self._check_open()
        if self._regions is None:
            self._regions = {region[0]: _region(*region) for region in self._engine.regions()}
        return self._regions

    def load(self, name: str, out: Any = None) -> Any:
        """Loads a region as a NumPy array and verifies every byte; bytes become an array of uint8. ``out``: an array
        or tensor of the saved type and shape to load into, which is returned."""
        self._check_open()
        if out is None:
            region = self._find(name)
            array = empty_array(name, _number(region), region.shape)
            self._load(name, Block(array.ctypes.data, _number(region), region.shape, array))
            return array
        region = self._find(name)
        block, finish = target_of(name, out)
        if region.dtype == "opaque" and dtype_name(block.dtype) == "uint8":
            block = block._replace(dtype=OPAQUE)
        self._load(name, block)
        if finish is not None:
            finish()
        return out

    def load_tensor(self, name: str) -> Any:
        """Loads a region as a new PyTorch tensor."""
        self._check_open()
        region = self._find(name)
        tensor = empty_tensor(_number(region), region.shape)
        self._load(name, Block(tensor.data_ptr(), _number(region), region.shape, tensor))
        return tensor

    def load_bytes(self, name: str) -> bytes:
        """Loads a region that was saved as bytes."""
        region = self._find(name)
        if region.dtype != "opaque" or region.routed:
            raise Mismatch(f"{name!r} was not saved as bytes: use {'route_in' if region.routed else 'load'}")
        return bytes(self.load(name).tobytes())

    def load_object(self, name: str, *, allow: Iterable[Any] = (), allow_pickle: bool = False) -> Any:
        """Loads an object that save_object saved, if it is plain data: nested containers of numbers, strings, NumPy
        arrays and the like, and the program's enumerations and named tuples. ``allow``: further permitted classes and
        functions. Unpickling anything else runs code that the checkpoint names: set ``allow_pickle`` only for
        checkpoints that nobody else can write."""
        data = self.load_bytes(name)
        if allow_pickle:
            return pickle.loads(data)
        try:
            return restricted_loads(data, allow)
        except pickle.UnpicklingError as error:
            raise InvalidArgument(
                f"{name!r} is not plain data ({error}), and unpickling can run any code: pass the classes in allow=[...], or "
                "allow_pickle=True if no other user can write your checkpoints"
            ) from None

    def load_state(
        self, name: str, *, map_location: Any = None, allow: Iterable[Any] = (), allow_pickle: bool = False
    ) -> Any:
        """Loads a state that save_state saved; ``map_location`` as in torch.load. Without ``allow_pickle``, permits
        only tensors, plain data as in load_object, and classes in ``allow`` or given to
        torch.serialization.add_safe_globals, like torch.load with ``weights_only``."""
        from ._state_regions import SavedState, is_state

        self._check_open()
        regions = {region[0]: region for region in self._engine.regions()}
        if not is_state(regions, name):
            raise NotFound(f"{self.tag} has no state {name!r} on this rank; regions lists what it has")
        return SavedState(self._engine, regions, name).load(map_location, allow_pickle, allow=allow)

    def route_in(self, name: str) -> str:
        """Extracts a routed file or directory and returns its path, which is valid inside the ``with`` statement."""
        self._check_open()
        return self._engine.route_in(name)

    def _find(self, name: str) -> RegionInfo:
        self._check_open()
        if name not in self.regions:
            # Raised here because failures of the engine end the restart even if they are caught.
            nearest = difflib.get_close_matches(name, self.regions, n=1)
            meant = f"; did you mean {nearest[0]!r}?" if nearest else "; regions lists what it has"
            raise NotFound(f"{self.tag} has no region {name!r} on this rank{meant}")
        return self.regions[name]

    def _load(self, name: str, block: Block) -> None:
        self._engine.load(name, block.address, block.dtype, block.shape, block.stream)


def _placement(shard: Shard | None, replicated: bool) -> Any:
    if shard is not None and replicated:
        raise InvalidArgument("a region is a shard or replicated, not both")
    if shard is not None:
        extents = (*shard.global_shape, *shard.offset)
        if not all(isinstance(extent, (int, np.integer)) and extent >= 0 for extent in extents):
            raise InvalidArgument("global_shape and offset of a shard are integers of 0 or more")
        return (tuple(shard.global_shape), tuple(shard.offset), shard.holes_allowed)
    return True if replicated else None


def _region(name: str, dtype: int, shape: tuple[int, ...], placement: Any, size_bytes: int, routed: bool) -> RegionInfo:
    shard = Shard(*placement) if isinstance(placement, tuple) else None
    return RegionInfo(name, dtype_name(dtype), shape, shard, placement is True, size_bytes, routed)


def _number(region: RegionInfo) -> int:
    return dtype_number(region.dtype)


__all__ = ["Checkpoint", "Engine", "Restart"]
