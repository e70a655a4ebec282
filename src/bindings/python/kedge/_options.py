"""Options as programs give them, and as the engine takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _kedge
from ._errors import InvalidArgument


def flat_options(options: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Options by dotted name, as texts."""
    flat: dict[str, str] = {}
    for key, value in options.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat.update(flat_options(value, f"{name}."))
        elif value is None:
            raise InvalidArgument(f"option {name} has no value: leave it out for the default")
        elif isinstance(value, bool):
            flat[name] = "true" if value else "false"
        elif isinstance(value, (list, tuple)):
            flat[name] = ":".join(str(item) for item in value)
        else:
            flat[name] = str(value)
    return flat


def with_defaults(options: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """The options, and of these defaults those that neither the options nor kedge.toml nor the environment set."""
    unset = {name: value for name, value in defaults.items() if not _kedge.differs_from_default(name)}
    return {**unset, **options}
