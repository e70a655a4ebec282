"""Loads what a process asks for, whichever ranks saved it and however many there were."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from . import _dtensors, _kedge
from ._errors import Error, InvalidArgument, Mismatch, RankFailed, Timeout
from ._memory import OPAQUE, Block, check_apart, dtype_name, empty_array, host_target_of
from ._values import PerRank, Shard, Want

#: By which a rank lets all fail.
_Failure = tuple[str, str]
_OWN = (
    "are each rank's own: say replicated=True if they are equal on all ranks, of=RANK for that rank's, or "
    "PerRank(function), which gets what each rank saved"
)
_DIFFER = "are replicated now, but the ranks saved different values: use PerRank(function) instead"


class _Saved(NamedTuple):
    """How the open checkpoint has a name, as the engine's find_saved answers."""

    how: str  #: shard, replicated or own
    dtype: int
    shape: tuple[int, ...]  #: of one of its regions; of the global array for shards
    members: str
    regions: int  #: 0: nobody saved it
    is_alike: bool

    def __str__(self) -> str:
        called = {"shard": "a block of a global array", "replicated": "replicated", "own": "each rank's own"}[self.how]
        return f"{called}, {dtype_name(self.dtype)} of shape {self.shape}"


class Target(NamedTuple):
    """Memory to load into."""

    block: Block
    value: Any  #: that the program gets
    finish: Callable[[], object] | None  #: copies it to where it belongs


class _Item(NamedTuple):
    name: str
    want: Want | PerRank
    target: Target | None  #: the program's own memory
    memory: Any = None  #: a plain array or tensor on it


class Loading:
    """A call of ``Restart.load_all``. Every step of it is COLLECTIVE, and what fails on one rank fails on all."""

    def __init__(self, engine: _kedge.Engine, new: Callable[[str, int, tuple[int, ...]], Target] | None = None) -> None:
        """``new``: makes memory for a region of this name, type and shape; by default a NumPy array."""
        self._engine = engine
        self._new = new or _new_array
        self._info = engine.info()
        self._ranks = engine.logical_ranks()
        self._size = 0
        self._problems: dict[str, list[str]] = {}  # names by what is wrong with them
        self._asked: list[tuple[Any, ...]] = []
        self._loaded: dict[str, Target] = {}
        self._of_ranks: list[tuple[PerRank, int, Target]] = []

    def run(self, wants: Mapping[str, Want | PerRank], size: int) -> dict[str, Any]:
        """Loads them. ``size``: how many ranks there are now."""
        self._size = size
        items = self._together(lambda: self._items(wants), self._vote)
        questions = [(item.name, of) for item in items for of in (None, *self._ranks_of(item.want))]
        answers = self._engine.find_saved(questions, None)
        found = {question: _Saved(*answer) for question, answer in zip(questions, answers)}
        self._together(lambda: self._ask(items, found), lambda failure: self._engine.load_all([], failure))
        self._engine.load_all(self._asked, None)
        self._together(self._finish, self._vote)
        self._vote(None)
        return {name: target.value for name, target in self._loaded.items()}

    def _vote(self, failure: _Failure | None) -> None:
        self._engine.find_saved([], failure)

    def _together(self, work: Callable[[], Any], tell: Callable[[_Failure], object]) -> Any:
        """Runs the function; if it raises, this rank still takes part in the next step, by which the others fail."""
        try:
            return work()
        except Exception as error:
            code = error.code if isinstance(error, Error) else InvalidArgument.code
            words = error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            try:
                tell((code, words))
            except Error as told:
                is_other = isinstance(error, Error) and type(told) is not type(error)
                if is_other or isinstance(told, (RankFailed, Timeout)):
                    raise told from error
            raise

    def _items(self, wants: Mapping[str, Want | PerRank]) -> list[_Item]:
        if not isinstance(wants, Mapping):
            raise InvalidArgument("load_all takes a dict: names, and a kedge.Want or kedge.PerRank for each")
        items = [self._item(name, want) for name, want in wants.items()]
        check_apart([(item.name, item.memory, item.target.finish) for item in items if item.target])
        return items

    def _item(self, name: str, want: Want | PerRank) -> _Item:
        if not isinstance(name, str) or not isinstance(want, (Want, PerRank)):
            raise InvalidArgument(
                f"load_all takes names, and a kedge.Want or kedge.PerRank for each, not {name!r}: {want!r:.60}"
            )
        if isinstance(want, PerRank):
            return _Item(name, want, None)
        given = want.out
        if given is not None and _dtensors.is_one(given):
            want = _want_of_dtensor(name, want)
        if (want.shard is not None) + want.replicated + (want.of is not None) > 1:
            raise InvalidArgument(f"{name!r}: give one of shard, replicated and of")
        if want.of is not None and not (_is_extent(want.of) and want.of < self._info["world_size"]):
            raise InvalidArgument(
                f"{name!r}: of={want.of!r} is none of the {self._info['world_size']} ranks that saved "
                f"{self._info['tag']}; they count from 0"
            )
        if want.shard is not None:
            _check_shard(name, want)
        if want.out is None:
            return _Item(name, want, None)
        block, finish = host_target_of(name, want.out)
        if want.shape is not None and tuple(want.shape) != block.shape:
            raise InvalidArgument(f"{name!r}: shape is {tuple(want.shape)}, and out has {block.shape}")
        return _Item(name, want, Target(block, given, finish), want.out)

    def _ranks_of(self, want: Want | PerRank) -> list[int]:
        """Whose own regions of the name may be wanted."""
        if isinstance(want, PerRank):
            return self._ranks
        if want.of is not None:
            return [int(want.of)]
        has_said = want.shard is not None or want.replicated
        return [self._info["logical_rank"]] if self._info["world_size"] == self._size and not has_said else []

    def _ask(self, items: list[_Item], found: dict[tuple[str, int | None], _Saved]) -> None:
        for item in items:
            saved = found[item.name, None]
            of_ranks = {rank: found[item.name, rank] for rank in self._ranks_of(item.want)}
            if saved.regions == 0:
                self._refuse(item, "were not saved")
            elif isinstance(item.want, PerRank):
                self._ask_per_rank(item, saved, of_ranks)
            else:
                self._ask_one(item, item.want, saved, of_ranks)
        if self._problems:
            reasons = "; ".join(f"{', '.join(names)} {why}" for why, names in self._problems.items())
            raise Mismatch(
                f"{self._info['tag']} was saved by {self._info['world_size']} ranks and this job has {self._size}; "
                f"these cannot be loaded: {reasons}"
            )

    def _ask_per_rank(self, item: _Item, saved: _Saved, of_ranks: dict[int, _Saved]) -> None:
        assert isinstance(item.want, PerRank)
        if saved.how != "own":
            return self._refuse(item, f"was saved as {saved}: ask for it by kedge.Want")
        for rank, its in of_ranks.items():
            if its.regions:
                target = self._add(item, its, its.shape, None, rank)
                self._of_ranks.append((item.want, rank, target))

    def _ask_one(self, item: _Item, want: Want, saved: _Saved, of_ranks: dict[int, _Saved]) -> None:
        rank, its = next(iter(of_ranks.items()), (None, None))
        if want.of is not None and its is not None and its.regions == 0:
            return self._refuse(item, f"was not saved by rank {rank}")
        if want.replicated and saved.how == "shard":
            want = want._replace(shard=Shard(saved.shape, (0,) * len(saved.shape)), shape=saved.shape)
        if (want.shard is not None) != (saved.how == "shard"):
            return self._refuse(item, f"was saved as {saved}" + ("" if want.shard else ": say which block with shard"))
        if want.shard is not None:
            return self._ask_shard(item, want, saved)
        if saved.how == "replicated":
            return self._ask_region(item, saved, None)
        if want.replicated:
            return self._ask_region(item, saved, 0) if saved.is_alike else self._refuse(item, _DIFFER)
        if its is not None and its.regions:
            return self._ask_region(item, its, rank)
        if saved.regions == 1:
            return self._ask_region(item, saved, -1)
        return self._refuse(item, _OWN)

    def _ask_shard(self, item: _Item, want: Want, saved: _Saved) -> None:
        assert want.shard is not None
        if tuple(want.shard.global_shape) != saved.shape:
            return self._refuse(item, f"was saved as {saved}, not of {tuple(want.shard.global_shape)}")
        shape = item.target.block.shape if item.target else tuple(want.shape or ())
        if self._fits(item, saved, shape):
            self._keep(item, self._add(item, saved, shape, _dtensors.placement(want.shard), None))

    def _ask_region(self, item: _Item, saved: _Saved, of: int | None) -> None:
        """``of``: whose; -1: whoever saved it, None: all alike."""
        if self._fits(item, saved, saved.shape):
            placement, rank = (True, None) if of is None else (None, None if of < 0 else of)
            self._keep(item, self._add(item, saved, saved.shape, placement, rank))

    def _fits(self, item: _Item, saved: _Saved, shape: tuple[int, ...]) -> bool:
        if item.target is None:
            return True
        block = item.target.block
        is_bytes = saved.dtype == OPAQUE and dtype_name(block.dtype) == "uint8"
        if block.shape == shape and (block.dtype == saved.dtype or is_bytes):
            return True
        self._refuse(item, f"was saved as {saved}, and out is {dtype_name(block.dtype)} of shape {block.shape}")
        return False

    def _keep(self, item: _Item, target: Target) -> None:
        self._loaded[item.name] = target

    def _add(self, item: _Item, saved: _Saved, shape: tuple[int, ...], placement: Any, of: int | None) -> Target:
        target = item.target
        if target is None:
            target = self._new(item.name, saved.dtype, shape)
        block = target.block
        self._asked.append((item.name, block.address, saved.dtype, block.shape, placement, of, saved.members))
        return target

    def _refuse(self, item: _Item, why: str) -> None:
        self._problems.setdefault(why, []).append(repr(item.name))

    def _finish(self) -> None:
        for target in self._loaded.values():
            if target.finish is not None:
                target.finish()
        for want, rank, target in self._of_ranks:
            want.restore(rank, target.value)


def _new_array(name: str, dtype: int, shape: tuple[int, ...]) -> Target:
    array = empty_array(name, dtype, shape)
    return Target(Block(array.ctypes.data, dtype, shape, array), array, None)


def _is_extent(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(value) < 1 << 63


def _check_shard(name: str, want: Want) -> None:
    shard = want.shard
    extents: list[Any] = []
    if isinstance(shard, Shard):
        extents = [*shard.global_shape, *shard.offset, *(want.shape or ())]
    if not isinstance(shard, Shard) or not all(map(_is_extent, extents)):
        raise InvalidArgument(
            f"{name!r}: shard is a kedge.Shard, whose global_shape and offset are integers of 0 or more, as is shape"
        )
    if want.out is None and want.shape is None:
        raise InvalidArgument(f"{name!r}: give the block's shape, or out to load it into")


def _want_of_dtensor(name: str, want: Want) -> Want:
    if want.shard is not None or want.replicated or want.of is not None:
        raise InvalidArgument(f"{name!r}: a DTensor says itself which block it has; leave shard, replicated and of out")
    part = _dtensors.part_of(name, want.out)
    return want._replace(out=part.local, shard=part.shard, replicated=part.shard is None)

