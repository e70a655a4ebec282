"""Base of the ``with`` blocks of a checkpoint and of a restart."""

from __future__ import annotations

from collections.abc import Callable

from . import _kedge
from ._errors import BadState


class Scope:
    """A ``with`` block in which the failure of one rank becomes that of all."""

    def __init__(self, engine: _kedge.Engine, what: str, is_alone: bool) -> None:
        self._engine = engine
        self._is_alone = is_alone  # there are no other ranks
        self._what = what  # in messages
        self._is_open = False
        self._met: Exception | None = None  # damage that all ranks met: refused as well, it would not count as damage
        self._is_empty = False  # a restart that found no checkpoint

    def _check_open(self) -> None:
        if not self._is_open:
            if self._is_empty:
                raise BadState("there is no checkpoint to load: test `if saved:` first, which is false on the first start")
            raise BadState(f"use the {type(self).__name__.lower()} inside its with statement")

    def _end(self, end: Callable[[], None], error: BaseException | None) -> None:
        self._is_open = False
        if error is None:
            end()
        elif isinstance(error, Exception) or self._is_alone:
            # This rank raises its own error; the others learn of it here.
            if error is not self._met:
                self._engine.refuse(self._what, f"the with block raised {type(error).__name__}: {error}")
            try:
                end()
            except Exception:
                pass
        # KeyboardInterrupt, SystemExit: the process ends, and must not wait for the others. Alone it need not end.
