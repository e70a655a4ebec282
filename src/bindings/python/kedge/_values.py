"""Arguments and results of calls other than arrays."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

#: A value of an attribute.
Attribute = int | float | str | Sequence[int] | Sequence[float]


class Level(enum.IntEnum):
    """How much a commit survives, in increasing order."""

    NONE = 0  #: not committed
    SNAPSHOT = 1  #: nothing: copied on the GPU only (device.snapshot)
    LOCAL = 2  #: the death of processes
    PROTECTED = 3  #: the loss of nodes, as many as the scheme allows
    PERSISTENT = 4  #: the end of the allocation: it is on the parallel filesystem

    def __str__(self) -> str:
        return self.name.lower()


class Shard(NamedTuple):
    """A block of a global array, starting at ``offset``. The blocks of all ranks must cover the array exactly once,
    unless holes are allowed."""

    global_shape: Sequence[int]
    offset: Sequence[int]
    holes_allowed: bool = False


class Want(NamedTuple):
    """What ``Restart.load_all`` loads of a name, whichever ranks saved it."""

    #: Any block of a global array; blocks of several ranks may overlap.
    shard: Shard | None = None
    #: Of the block, if there is no ``out``.
    shape: Sequence[int] | None = None
    #: What all ranks saved alike, also if they did not say so then; of a global array, all of it.
    replicated: bool = False
    #: That rank's own. Without all three: the only region of the name, or, with as many ranks as saved it, this rank's.
    of: int | None = None
    #: An array or tensor to load into; a DTensor says itself which block it has.
    out: Any = None


class PerRank(NamedTuple):
    """For a value that is each rank's own: ``restore(saved_by, array)`` is called once for each rank that saved it, on one
    process or another, after all else is loaded. It must not communicate."""

    restore: Callable[[int, Any], object]


class RegionInfo(NamedTuple):
    """A region of this rank in the open checkpoint."""

    name: str
    dtype: str  #: e.g. "float64"; "opaque" for bytes, pickled objects and files
    shape: tuple[int, ...]  #: on this rank
    shard: Shard | None
    replicated: bool
    size_bytes: int
    routed: bool  #: a file: use route_in


class Info(NamedTuple):
    """Describes the open checkpoint."""

    tag: str
    commit_id: str
    parent_commit_id: str
    generation: int
    incarnation: int
    world_size: int
    logical_rank: int
    time_ns: int
    #: An output, not a checkpoint: see Engine.output.
    is_output: bool
    source: str  #: "in place", "moved", "rebuilt" or "fetched": the costliest that any rank needed
    total_bytes: int
    attributes: dict[str, Any]
