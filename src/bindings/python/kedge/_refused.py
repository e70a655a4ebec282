"""Warns, when a state is saved, of parts that loading would refuse by default: a job that learns it at its restart
cannot continue."""

from __future__ import annotations

import io
from collections.abc import Callable, Container, Iterable
from typing import Any

from ._errors import InvalidArgument
from ._places import walk
from ._plain import RestrictedPickler, by_name, global_names, plain_by_name, plain_globals

#: Named one by one up to here.
_NAMED = 8
#: For people; what loads, and then what it refuses.
REFUSED = (
    "the checkpoint holds {{named}}, which {} refuses by default: at the restart, pass allow=[{{classes}}] to it, or "
    "allow_pickle=True if no other user can write your checkpoints (pass the same here to silence this warning); or save "
    "plain data instead"
)


class RefusalWarnings:
    """The warnings of one engine, each kind once per permission."""

    def __init__(self) -> None:
        self._seen: set[tuple[Any, frozenset[str]]] = set()

    def warn(
        self,
        unusual: set[Any],
        find: Callable[[], list[tuple[str, str]]],
        words: str,
        say: Callable[[str], None],
        allow: Iterable[Any] = (),
    ) -> None:
        """Warns of the first object of each kind that would be refused. ``find`` returns names and locations; called
        for new kinds."""
        allowed = frozenset(by_name(allow))
        met = {(kind, allowed) for kind in unusual}
        if met <= self._seen:
            return
        self._seen |= met
        refused = find()
        if refused:
            named = ", ".join(f"{name} ({place})" for name, place in refused[:_NAMED])
            more = f" and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
            classes = ", ".join(name.rpartition(".")[2] for name, _ in refused[:_NAMED])
            say(words.format(named=named + more, classes=classes))


def refused_in(
    state: Any, name: str, pickle_alone: Callable[[Any], bytes], allowed: Container[str]
) -> list[tuple[str, str]]:
    """Classes and functions that a state's pickle names and no default permits, each with its first location.
    ``pickle_alone`` pickles one value of the state with protocol 2."""
    missing = {one: "" for one in global_names(pickle_alone(state)) if one not in allowed and plain_by_name(one) is None}
    for place, value in walk(state, name) if missing else ():
        try:
            named = global_names(pickle_alone(value))
        except Exception:  # what is only made while the whole is pickled
            continue
        for one in named:
            if missing.get(one) == "":
                missing[one] = place
        if all(missing.values()):
            break
    return [(one, place or name) for one, place in missing.items()]


def raise_with_place(state: Any, name: str, pickle_alone: Callable[[Any], Any], error: Exception) -> None:
    """A value that cannot be pickled, with its location."""
    for place, value in walk(state, name):
        try:
            pickle_alone(value)
        except Exception as its:
            reason = its.message if isinstance(its, InvalidArgument) else _reason(value, its)
            raise InvalidArgument(f"{place} {reason}") from error
    raise InvalidArgument(f"{name} {_reason(state, error)}") from error


def _reason(value: Any, error: Exception) -> str:
    kind = type(value)
    words = " ".join(str(error).split())[:200]
    return (
        f"is a {kind.__module__}.{kind.__qualname__}, which cannot be pickled ({type(error).__name__}: {words}): leave it "
        "out, or save what it is made of"
    )


def dump_object(value: Any, name: str) -> tuple[bytes, set[Any]]:
    """The object's pickle, and the kinds in it that may not be plain. Raises InvalidArgument with the value that
    cannot be pickled."""
    try:
        return _dump(value, 5)
    except Exception as error:
        raise_with_place(value, name, lambda one: _dump(one, 5), error)
        raise


def _dump(value: Any, protocol: int) -> tuple[bytes, set[Any]]:
    buffer = io.BytesIO()
    pickler = RestrictedPickler(buffer, protocol)
    pickler.dump(value)
    return buffer.getvalue(), pickler.unusual


def refused_object(value: Any, name: str, allow: Iterable[Any]) -> list[tuple[str, str]]:
    """The parts of an object for save_object that load_object would refuse with this ``allow``."""
    return refused_in(value, name, lambda one: _dump(one, 2)[0], {**plain_globals(), **by_name(allow)})


__all__ = ["REFUSED", "RefusalWarnings", "dump_object", "raise_with_place", "refused_in", "refused_object"]
