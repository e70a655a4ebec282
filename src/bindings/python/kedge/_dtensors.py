"""DTensors of PyTorch, each of whose ranks has a block of a global array."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from ._errors import InvalidArgument
from ._values import Shard


class Part(NamedTuple):
    """A rank's part of a DTensor."""

    local: Any  #: a plain tensor
    shard: Shard | None  #: None: all ranks have all of it
    is_first: bool  #: the one that saves it, of the ranks that have this block


def is_one(value: Any) -> bool:
    """Whether it is a DTensor. Does not import PyTorch."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


def part_of(name: str, tensor: Any) -> Part:
    """Raises InvalidArgument for placements that are not blocks."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor import Shard as Sharded
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    placements = tensor.placements
    for placement in placements:
        if type(placement) not in (Replicate, Sharded):
            raise InvalidArgument(
                f"{name!r} is a DTensor placed as {placement}, which is not a block of the array: redistribute it by "
                "Shard and Replicate first"
            )
    coordinate = tensor.device_mesh.get_coordinate()
    is_first = coordinate is not None and all(
        where == 0 for where, placement in zip(coordinate, placements) if type(placement) is Replicate
    )
    local = tensor.to_local().detach()
    if all(type(placement) is Replicate for placement in placements):
        return Part(local, None, is_first)
    shape, offset = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, placements)
    if tuple(shape) != tuple(local.shape):
        raise InvalidArgument(
            f"{name!r} is a DTensor whose local tensor has shape {tuple(local.shape)} instead of {tuple(shape)}: save its "
            "to_local() with a shard"
        )
    return Part(local, Shard(tuple(tensor.shape), tuple(offset)), is_first)


def placement(shard: Shard) -> Any:
    """As the engine takes it."""
    return (tuple(map(int, shard.global_shape)), tuple(map(int, shard.offset)), bool(shard.holes_allowed))
