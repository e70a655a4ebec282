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
        """The program ends well: in order, if the other ranks do so, too."""
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
        """COLLECTIVE. Whether the schedule asks for a checkpoint now, or the job is to end and its last checkpoint was not
        committed yet."""
        return self._engine.need_checkpoint()

    def should_exit(self) -> bool:
        """COLLECTIVE. Whether the job is to end: one of the signals in ``exit.signals`` came to any rank, or the deadline
        nears. Ask after need_checkpoint() and the checkpoint that it asks for. ``signal.signal`` replaces the engine's
        handler: set handlers of your own before the engine is made, which then calls them."""
        return self._engine.should_exit()

    def checkpoint(self, tag: str, attributes: Mapping[str, Attribute] | None = None) -> Checkpoint:
        """COLLECTIVE, with the end of the ``with`` statement. A checkpoint to save regions in: committed on all ranks,
        or on none if the body raises on any; the others then raise Error."""
        return Checkpoint(self._engine, tag, dict(attributes or {}), self._refusals, self.size == 1)

    def output(self, tag: str, attributes: Mapping[str, Attribute] | None = None) -> Checkpoint:
        """COLLECTIVE, as ``checkpoint``. Data for people and other programs, such as a plot, not state to restart from:
        ``restart`` finds it by its tag alone, and it counts in no ``keep`` and no ``every``. Every output is flushed to
        the parallel filesystem, and never removed from there."""
        return Checkpoint(self._engine, tag, dict(attributes or {}), self._refusals, self.size == 1, is_output=True)

    def restart(self, tag: str | None = None, *, before: str | None = None, discard_newer: bool = False) -> Restart:
        """COLLECTIVE, with the end of the ``with`` statement. The newest checkpoint that all ranks can recover, of this
        tag or of any, or older than all ``before``; false in a condition if there is none. ``discard_newer`` rules out
        newer ones for good."""
        if tag is not None and before is not None:
            raise InvalidArgument("restart takes tag or before, not both")
        engine = self._engine
        if before is not None:
            return Restart(engine, lambda: engine.open_before(before, discard_newer), self.size == 1)
        return Restart(engine, lambda: engine.open(tag or "latest", discard_newer), self.size == 1)

    def restart_from(self, prefix: str, tag: str = "latest", *, run: str = "") -> Restart:
        """COLLECTIVE, with the end of the ``with`` statement. Another run's checkpoint, read in place as the start of
        this run. Raises NotFound if there is none."""
        engine = self._engine
        return Restart(engine, lambda: engine.open_source(prefix, run, tag), self.size == 1)

    def level(self, tag: str) -> Level:
        """The level that the newest commit of this tag has reached."""
        return Level(self._engine.level(tag))

    def wait(self, tag: str, level: Level | str, timeout: float | None = None) -> bool:
        """COLLECTIVE. Returns when the newest commit of this tag has reached the level ("protected", "persistent"). A
        commit that is under way in the background is waited for ``timeout`` seconds at most: False, on all ranks, if
        any gave up; it goes on then. What was not due yet is done now, however long that takes."""
        if timeout is None:
            self._engine.wait(tag, _level(level))
            return True
        return self._engine.wait_for(tag, _level(level), timeout)

    def on_complete(self, tag: str, level: Level | str, callback: Callable[[Exception | None], object]) -> None:
        """Calls ``callback`` once, when the newest commit of this tag has reached the level (with None) or cannot (with the
        Error that says why, or NotFound if a newer commit took its place or the engine was finalized). That is within a
        later COLLECTIVE call of the engine, by its thread, on each rank for itself; the callback makes no such calls."""
        self._engine.on_complete(tag, _level(level), callback)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Suspends this rank's background work in the ``with`` block, so that the program has network and memory bandwidth to
        itself. The work resumes by itself when a call waits for it, and after at most a quarter of comm.timeout_s per
        commit. Do not wait in the block for a rank that may be at the beginning of a checkpoint."""
        self._engine.pause()
        try:
            yield
        finally:
            self._engine.resume()

    def pin(self, tag: str) -> None:
        """COLLECTIVE. Keeps the newest commit of this tag on the prefix, regardless of persistent.keep."""
        self._engine.pin(tag)

    def unpin(self, tag: str) -> None:
        """COLLECTIVE. The reverse of pin."""
        self._engine.unpin(tag)

    def finalize(self, timeout: float | None = None) -> bool:
        """COLLECTIVE. Shuts the engine down; afterwards every call raises BadState. What is under way in the background is
        waited for ``timeout`` seconds at most, and 10 s more for a write that has begun: False, on all ranks, if any gave
        up, or if the newest commit could not be flushed or was a snapshot that is lost: the node-local files are then kept
        for ``kedge drain`` or the next start. Without ``timeout`` a lost snapshot raises, unless ``wait`` has raised it or
        ``restart`` discarded what is newer."""
        done = self._engine.finalize(timeout)
        communicators.unfinished.discard(self._number)
        return done


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=4)  # the line that saves


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
        """Copies a NumPy array, PyTorch tensor, GPU array, any array that has ``__dlpack__``, number or bytes; it may be
        changed afterwards. What is not contiguous is first copied into memory that is."""
        self._check_open()
        block = block_of(name, data)
        self._engine.save(name, block.address, block.dtype, block.shape, _placement(shard, replicated), block.stream)

    def save_object(self, name: str, value: Any, *, allow: Iterable[Any] = (), allow_pickle: bool = False) -> None:
        """Pickles any object and saves the result. Arrays and tensors are better saved by ``save``. The first time that
        it holds what load_object refuses by default, a warning names that and its place; ``allow`` and ``allow_pickle`` say
        that it will be loaded with the same, and there is no warning of what they allow."""
        self._check_open()
        data, unusual = dump_object(value, name)
        self.save(name, data)
        if unusual and not allow_pickle:
            given = tuple(allow)
            words = REFUSED.format("load_object")
            self._refusals.warn(unusual, lambda: refused_object(value, name, given), words, _warn, given)

    def save_state(self, name: str, state: Any, *, allow: Iterable[Any] = (), allow_pickle: bool = False) -> None:
        """Copies a state of a PyTorch program, such as ``{"model": model.state_dict(), "step": 7}``: nested containers of
        tensors, plain values and any objects. Each storage becomes one region in the group ``name``, so that tensors that
        share memory are saved once; everything else is pickled, as by torch.save. CUDA tensors are copied
        directly, those of other devices through host memory. Warns of what load_state refuses by default, as
        save_object does; ``allow`` and ``allow_pickle`` as there."""
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
        """A path to write a file to, or a directory if the name ends with '/', which the checkpoint takes in. Close the
        file before the with statement ends. ``max_bytes``: a bound that you promise to keep; 0: none."""
        self._check_open()
        return self._engine.route_out(name, max_bytes)


class Restart(Scope):
    """A checkpoint that is being read; see Engine.restart. What was loaded counts only if the ``with`` statement ends
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
        """The checkpoint that is open."""
        self._check_open()
        return Info(**self._engine.info())

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes as given to Engine.checkpoint."""
        return self.info.attributes

    @property
    def regions(self) -> dict[str, RegionInfo]:
        """This rank's regions, by name."""
        self._check_open()
        if self._regions is None:
            self._regions = {region[0]: _region(*region) for region in self._engine.regions()}
        return self._regions

    def load(self, name: str, out: Any = None) -> Any:
        """A region as a NumPy array, every byte checked; bytes are an array of uint8. ``out``: an array or tensor of the
        saved type and shape to load into, which is returned."""
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
        """A region as a new PyTorch tensor."""
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
        """Loads what save_object saved, if it is plain data: nested containers of numbers, strings, NumPy's arrays
        and the like,
        and the program's enumerations and named tuples. ``allow``: classes and functions that may be used as well. Unpickling
        anything else runs code that the checkpoint names: set ``allow_pickle`` only for checkpoints that nobody else can
        write."""
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
        """Loads what save_state saved. ``map_location`` as torch.load takes it. Without ``allow_pickle`` only
        tensors, plain data
        as load_object has it, and classes in ``allow`` or given to torch.serialization.add_safe_globals are made, as by
        torch.load with ``weights_only``."""
        from ._state_regions import SavedState, is_state

        self._check_open()
        regions = {region[0]: region for region in self._engine.regions()}
        if not is_state(regions, name):
            raise NotFound(f"{self.tag} has no state {name!r} on this rank; regions lists what it has")
        return SavedState(self._engine, regions, name).load(map_location, allow_pickle, allow=allow)

    def route_in(self, name: str) -> str:
        """The path of a file, or directory, that was routed out; valid inside the ``with`` statement."""
        self._check_open()
        return self._engine.route_in(name)

    def _find(self, name: str) -> RegionInfo:
        self._check_open()
        if name not in self.regions:
            # Raised here and not by the engine, whose failures end the restart even if they are caught.
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
