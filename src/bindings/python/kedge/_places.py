"""Locations of values in a state, as Python expressions such as training['model']['fc.weight']."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._memory import is_tensor

_LEAVES = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_PLAIN = (str, int, float, bool, bytes, type(None))


def walk(state: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All values of a state with their locations; elements come before their container."""
    found: list[tuple[str, Any]] = []
    seen: set[int] = set()
    left: list[tuple[str, Any]] = [(name, state)]
    while left:
        place, value = left.pop()
        if type(value) in _PLAIN:
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        found.append((place, value))
        left.extend(_held(place, value))
    yield from reversed(found)


def _held(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield f"a key of {place}", key
            yield f"{place}[{_short(key)}]", one
        return
    fields = getattr(value, "_fields", None)
    if isinstance(value, tuple) and isinstance(fields, tuple):
        yield from ((f"{place}.{field}", one) for field, one in zip(fields, value))
    elif isinstance(value, (list, tuple, deque)):
        yield from ((f"{place}[{number}]", one) for number, one in enumerate(value))
    elif isinstance(value, (set, frozenset)):
        yield from ((f"an element of {place}", one) for one in value)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from ((f"{place}[{', '.join(map(str, index))}]", one) for index, one in np.ndenumerate(value))
    # A tensor's attributes belong to it.
    has_none = isinstance(value, _LEAVES) or is_tensor(value)
    attributes = None if has_none else getattr(value, "__dict__", None)
    if isinstance(attributes, dict):
        yield from ((f"{place}.{key}", one) for key, one in attributes.items())


def _short(key: Any) -> str:
    try:
        text = repr(key)
    except Exception:  # raised by a class of the program
        text = type(key).__name__
    return text if len(text) <= 80 else f"{text[:77]}..."
