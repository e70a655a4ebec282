"""Arguments and results of calls other than arrays."""

from __future__ import annotations

import enum
from collections.abc import Sequence
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
