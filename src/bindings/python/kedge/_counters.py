"""Counters of an engine."""

from __future__ import annotations

from typing import NamedTuple

from . import _kedge


class Counters(NamedTuple):
    """Since the engine was made, on this rank. Bytes are those of this rank's own containers. Times are seconds: ``blocked``
    is how long the program waited for checkpoints to be saved and committed, the others how long after its commit a
    checkpoint reached the level, if it was due then."""

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
    """An engine that counts."""

    _engine: _kedge.Engine

    def counters(self) -> Counters:
        """Counters of this engine so far, as this rank knows them."""
        return Counters(**self._engine.counters())
