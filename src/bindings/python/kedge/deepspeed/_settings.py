"""The section "kedge" of DeepSpeed's configuration."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from .. import _kedge
from .._options import flat_options, with_defaults
from .._errors import InvalidArgument

_SECTION = "kedge"
#: DeepSpeed writes a file named latest into its directory, and so does Kedge: the two must differ.
_PREFIX = "./kedge"
_OURS = {"torch_files": True, "allow_pickle": False, "decoupled": False}


class Settings(NamedTuple):
    """Settings in the section."""

    torch_files: bool = True  #: checkpoints are also there as the files that DeepSpeed itself would write
    allow_pickle: bool = False  #: any class may be loaded
    decoupled: bool = False  #: what is left to do when the checkpoint is in the stores goes on behind the program
    flushed: bool = False  #: decoupled: a checkpoint is complete when it is on the parallel filesystem
    options: tuple[tuple[str, str], ...] = ()  #: of Kedge


def settings_of(config: Any) -> Settings | None:
    """Reads the settings from DeepSpeed's configuration: a dict, a JSON file's path, or DeepSpeed's own object; None
    if there is no section "kedge". Raises InvalidArgument."""
    section = _section(config)
    if section is None:
        return None
    if not isinstance(section, Mapping):
        raise InvalidArgument(f'"{_SECTION}" in DeepSpeed\'s configuration must be an object, not {section!r}')
    values = dict(section)
    ours = {name: values.pop(name, default) for name, default in _OURS.items()}
    for name, value in ours.items():
        if not isinstance(value, bool):
            raise InvalidArgument(f'"{name}" in section "{_SECTION}" must be true or false, not {value!r}')
    options = flat_options(values)
    for name in options:
        _check_name(name)
    # A save is over when it returns, or it is decoupled: nothing in between.
    # Programs name the checkpoint that they load: several engines in one process, or tasks in one directory, may share it.
    mode = "background" if ours["decoupled"] else "inline"
    defaults = {"persistent.path": _PREFIX, "pipeline.mode": mode, "open.chained": "true"}
    if ours["torch_files"]:
        defaults["persistent.every"] = "0"  # the files are on the parallel filesystem already
    if ours["decoupled"]:
        defaults = {"persistent.every": "1", **defaults}
    chosen = with_defaults(options, defaults)
    flushed = ours["decoupled"] and _is_each_flushed(chosen, ours["torch_files"])
    return Settings(**ours, flushed=flushed, options=tuple(sorted(chosen.items())))


def _is_each_flushed(options: Mapping[str, str], torch_files: bool) -> bool:
    every = options.get("persistent.every") or _kedge.loaded_option("persistent.every")
    if every not in ("0", "1"):
        or_0 = ", or to 0, as torch_files are there anyway" if torch_files else ""
        raise InvalidArgument(
            'with "decoupled" the file latest names what is on the parallel filesystem, and persistent.every = '
            f'{every} leaves most checkpoints out: set it to 1{or_0}, or "decoupled" to false'
        )
    if every == "0" and not torch_files:
        raise InvalidArgument(
            'with "decoupled", without torch_files and with persistent.every = 0, no checkpoint gets to the parallel '
            'filesystem and the file latest is never written: set persistent.every to 1, or "torch_files" to true'
        )
    return every == "1"


def default_settings() -> Settings:
    """Settings of an empty section."""
    return settings_of({_SECTION: {}}) or Settings()


def _check_name(name: str) -> None:
    try:
        _kedge.differs_from_default(name)
    except InvalidArgument:
        near = difflib.get_close_matches(name, _OURS, n=1)
        if near:
            raise InvalidArgument(f'section "{_SECTION}" has no "{name}": did you mean "{near[0]}"?') from None
        raise


def _section(config: Any) -> Any:
    if config is None:
        return None
    if isinstance(config, (str, os.PathLike)):
        try:
            with open(config, encoding="utf-8") as file:
                config = json.load(file)
        except (OSError, ValueError) as error:
            raise InvalidArgument(f"DeepSpeed's configuration {os.fspath(config)} cannot be read: {error}") from None
    if not isinstance(config, Mapping):
        config = getattr(config, "_param_dict", {})
    return config.get(_SECTION)
