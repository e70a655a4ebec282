"""Which of Kedge's checkpoints is meant by a directory and a tag of DeepSpeed's."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from typing import Any, NamedTuple

from .._errors import Unrecoverable
from ._shared import Shared

_log = logging.getLogger("kedge.deepspeed")
_DIRECTORY, _TAG, _LATEST = "deepspeed.directory", "deepspeed.tag", "deepspeed.latest"


class Place(NamedTuple):
    """Where DeepSpeed saves a checkpoint."""

    directory: str  #: absolute
    tag: str

    def path_of(self, name: str) -> str:
        """Of a file below the tag's directory."""
        return os.path.join(self.directory, self.tag, name)

    def name_of(self, path: str) -> str | None:
        """The reverse; None if the path is not below the tag's directory."""
        name = os.path.relpath(path, os.path.join(self.directory, self.tag))
        return None if name.startswith("..") else name


def tag_of(place: Place) -> str:
    """Kedge's tag. The directory is part of it: DeepSpeed's tags are alike in all directories."""
    digest = hashlib.sha256(f"{place.directory}\0{place.tag}".encode()).hexdigest()[:12]
    readable = re.sub(r"[^A-Za-z0-9_-]", "-", place.tag)[:48]
    return f"{readable}.{digest}"


def attributes_of(place: Place, is_latest: bool) -> dict[str, Any]:
    """Of the commit."""
    return {_DIRECTORY: place.directory, _TAG: place.tag, _LATEST: int(is_latest)}


class _Asked(NamedTuple):
    place: Place
    latest: str | None  #: what the file latest says
    latest_ns: int  #: when it was written


def find(shared: Shared, directory: str, tag: str | None) -> Place | None:
    """COLLECTIVE. Opens the checkpoint, and returns its place as this rank names it; None if there is none, or if the
    file latest names a newer one that Kedge does not have."""
    asked: _Asked = shared.from_root(_asked(directory, tag))
    low = shared.low
    try:
        if tag is not None:
            opened = low.open(tag_of(asked.place), False)
        else:
            opened = low.open("latest", False)
            while opened is not None and not _matches(low.info(), asked):
                low.close()
                opened = low.open_before(opened, False)
    except Unrecoverable as error:
        if not shared.from_root(os.path.exists(os.path.join(directory, asked.latest or asked.place.tag))):
            raise
        if shared.engine.rank == 0:
            _log.warning("Kedge cannot recover this checkpoint; loading DeepSpeed's own files in %s instead: %s", directory, error.message)
        return None
    if opened is None:
        return None
    found = low.info()["attributes"][_TAG] if tag is None else tag
    if tag is None and asked.latest not in (None, found) and asked.latest_ns > low.info()["time_ns"]:
        low.close()
        if shared.engine.rank == 0:
            _log.warning("%s names %s, which is newer than Kedge's newest, %s: loading it from DeepSpeed's files",
                         os.path.join(directory, "latest"), asked.latest, found)  # fmt: skip
        return None
    return Place(directory, found)


def _asked(directory: str, tag: str | None) -> _Asked:
    latest, latest_ns = None, 0
    path = os.path.join(directory, "latest")
    try:
        with open(path, encoding="utf-8") as file:
            latest = file.read().strip()
        latest_ns = os.stat(path).st_mtime_ns
    except OSError:
        pass
    return _Asked(Place(os.path.realpath(directory), tag or ""), latest, latest_ns)


def _matches(info: dict[str, Any], asked: _Asked) -> bool:
    attributes = info["attributes"]
    return bool(attributes.get(_DIRECTORY) == asked.place.directory and attributes.get(_LATEST) == 1)

