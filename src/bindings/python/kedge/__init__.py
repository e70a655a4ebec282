"""Kedge, a checkpoint engine: a job that fails goes on from the newest step that every rank can recover.

    import kedge

    with kedge.Engine({"fingerprint_files": ["input.toml"]}) as engine:
        with engine.restart() as saved:
            if saved:
                saved.load("weights", out=weights)
                step = saved.attributes["step"]
        while step < steps:
            step += 1
            ...
            if engine.need_checkpoint():
                with engine.checkpoint(f"step-{step}", {"step": step}) as checkpoint:
                    checkpoint.save("weights", weights)
"""

from ._counters import Counters
from ._engine import Checkpoint, Engine, Restart, loads
from ._errors import (
    BadState,
    Busy,
    Corrupt,
    DeviceFailed,
    Error,
    InvalidArgument,
    IoError,
    Mismatch,
    NoSpace,
    NotFound,
    RankFailed,
    Timeout,
    Unrecoverable,
)
from ._kedge import __version__
from ._values import Attribute, Info, Level, PerRank, RegionInfo, Shard, Want
from .communicators import check_mpi4py

__all__ = [
    "Attribute", "BadState", "Busy", "Checkpoint", "Corrupt", "Counters", "DeviceFailed", "Engine", "Error", "Info",
    "InvalidArgument", "IoError", "Level", "Mismatch", "NoSpace", "NotFound", "PerRank", "RankFailed", "RegionInfo", "Restart",
    "Shard", "Timeout", "Unrecoverable", "Want", "__version__", "loads",
]  # fmt: skip

check_mpi4py()
