"""Counters of an engine."""

from __future__ import annotations

from typing import NamedTuple

from . import _kedge


class Counters(NamedTuple):
    """What the engine has done since it was made, on this rank. Bytes are of this rank's own containers. Times are in
    seconds: ``blocked`` is the program's waiting time for saving and committing, the others are times from a commit
    until it reached the level, for commits that were due there."""

    commits: int  #: checkpoints that were committed
    commits_failed: int  #: checkpoints that the engine gave up
    protections: int  #: commits that became protected
    protections_failed: int  #: attempts that failed
    flushes: int  #: commits that became persistent
    flushes_failed: int  #: commits of which the flush failed, after the last retry
    flush_retries: int  #: flushes that were tried again (persistent.retries)
    retired: int  #: commits that left the node-local stores
    opens: int  #: checkpoints that were opened
    pending: int  #: commits under way behind the program now
    saved_bytes: int  #: committed
    protected_bytes: int  #: of commits that became protected
    flushed_bytes: int  #: of commits that became persistent
    fetched_bytes: int  #: read back from the prefix by restart
    blocked_s: float  #: by all commits together
    blocked_last_s: float  #: by the last commit
    protected_last_s: float  #: until the last one that became protected was
    protected_max_s: float  #: the longest of these
    persistent_last_s: float  #: until the last one that became persistent was
    persistent_max_s: float  #: the longest of these


class Counted:
    """Base of the engine, with its counters."""

    _engine: _kedge.Engine

    def counters(self) -> Counters:
        """This rank's counters of the engine."""
        return Counters(**self._engine.counters())
