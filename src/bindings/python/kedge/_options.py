"""Converts a program's options to the engine's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _kedge, communicators
from ._errors import InvalidArgument


def given_options(given: Any) -> dict[str, str]:
    """The engine's first argument as options by dotted name."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return flat_options(given)
    if isinstance(given, communicators.Ranks) or communicators.is_of_mpi4py(given):
        raise InvalidArgument(
            "the engine's first argument is its options: name the communicator, as in "
            "kedge.Engine(communicator=MPI.COMM_WORLD)"
        )
    raise InvalidArgument(
        f"options are a mapping such as {{'store.path': '/local'}}, and not a {communicators.kind_of(given)}; those of a "
        "file are read from kedge.toml, or from where KEDGE_CONFIG says"
    )


def flat_options(options: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Options by dotted name, as text."""
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
    """The options, completed by those defaults that neither kedge.toml nor the environment overrides."""
    unset = {name: value for name, value in defaults.items() if not _kedge.differs_from_default(name)}
    return {**unset, **options}
