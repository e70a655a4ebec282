"""The context manager that checkpoints are read in."""

from __future__ import annotations

import contextlib
import difflib
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

from . import _kedge
from ._bracket import Scope
from ._errors import Corrupt, InvalidArgument, Mismatch, NotFound
from ._load_all import Loading
from ._memory import OPAQUE, Block, dtype_name, dtype_number, empty_array, empty_tensor, target_of
from ._plain import restricted_loads
from ._values import Info, PerRank, RegionInfo, Shard, Want


def loads(data: Any, *, allow: Iterable[Any] = (), allow_pickle: bool = False) -> Any:
    """The object that save_object saved, of its bytes: bytes, or an array as ``load_all`` and PerRank give it. ``allow``
    and ``allow_pickle`` as in ``Restart.load_object``."""
    return _unpickled("the object", memoryview(data).tobytes(), allow, allow_pickle)


def _unpickled(what: str, data: bytes, allow: Iterable[Any], allow_pickle: bool) -> Any:
    if allow_pickle:
        return pickle.loads(data)
    try:
        return restricted_loads(data, allow)
    except pickle.UnpicklingError as error:
        raise InvalidArgument(
            f"{what} is not plain data ({error}), and unpickling can run any code: pass the classes in allow=[...], or "
            "allow_pickle=True if no other user can write your checkpoints"
        ) from None


class Restart(Scope):
    """A checkpoint that is being read; see Engine.restart. Use loaded data only if the ``with`` statement ends
    without an error."""

    def __init__(self, engine: _kedge.Engine, open_it: Callable[[], str | None], size: int) -> None:
        super().__init__(engine, "restart", size == 1)
        self._size = size
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
        """This rank's regions, by name. Raises Mismatch if another number of ranks saved the checkpoint."""
        self._check_open()
        if self._regions is None:
            self._regions = {region[0]: _region(*region) for region in self._engine.regions()}
        return self._regions

    @property
    def logical_ranks(self) -> list[int]:
        """The ranks that saved the checkpoint and whose containers this process reads: this rank alone, or some, or none,
        where another number of ranks saved it. Together the processes have each once."""
        self._check_open()
        return self._engine.logical_ranks()

    def load_all(self, wants: Mapping[str, Want | PerRank]) -> dict[str, Any]:
        """COLLECTIVE. Loads what each rank asks for, which may differ between ranks (``{}`` for nothing), whichever ranks
        saved it and however many there were. Returns a dict of new NumPy arrays, or of each ``out``; what PerRank gets
        is not in it. ``out`` may be non-contiguous, and a tensor of a GPU; other GPU arrays are refused. Reads and
        verifies each stored byte once, by one process.

        Raises on all ranks if it fails on any: Mismatch, before anything is loaded, with all names that cannot be loaded
        as they are asked for; InvalidArgument for mistakes. The content of each ``out`` is undefined then. After
        Corrupt, leave the ``with`` statement and restart again, in a loop: the checkpoint is rebuilt, or, after a second
        try, an older one is taken."""
        with self._meeting():
            return Loading(self._engine).run(wants, self._size)

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
        return _unpickled(repr(name), self.load_bytes(name), allow, allow_pickle)

    def load_state(
        self,
        name: str,
        *,
        map_location: Any = None,
        allow: Iterable[Any] = (),
        allow_pickle: bool = False,
        replicated: bool = False,
    ) -> Any:
        """Loads a state that save_state saved; ``map_location`` as in torch.load. Without ``allow_pickle``, permits
        only tensors, plain data as in load_object, and classes in ``allow`` or given to
        torch.serialization.add_safe_globals, like torch.load with ``weights_only``.

        With ``replicated``, COLLECTIVE: loads it on any number of ranks, if all ranks that saved it had the same, byte
        for byte, which is compared by checksums. Raises Mismatch on all ranks if they had not."""
        from ._state_regions import SavedState, is_state, load_replicated

        self._check_open()
        if replicated:
            with self._meeting():
                return load_replicated(self._engine, self._size, name, map_location, allow_pickle, allow)
        regions = {region[0]: region for region in self._engine.regions()}
        if not is_state(regions, name):
            raise NotFound(f"{self.tag} has no state {name!r} on this rank; regions lists what it has")
        return SavedState(self._engine, regions, name).load(map_location, allow_pickle, allow=allow)

    @contextlib.contextmanager
    def _meeting(self) -> Iterator[None]:
        """A load that all ranks make together."""
        self._check_open()
        try:
            yield
        except Corrupt as error:
            self._met = error
            raise

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


def _region(name: str, dtype: int, shape: tuple[int, ...], placement: Any, size_bytes: int, routed: bool) -> RegionInfo:
    shard = Shard(*placement) if isinstance(placement, tuple) else None
    return RegionInfo(name, dtype_name(dtype), shape, shard, placement is True, size_bytes, routed)


def _number(region: RegionInfo) -> int:
    return dtype_number(region.dtype)


__all__ = ["Restart", "loads"]
