"""Finds the Kedge checkpoint for a directory and tag of DeepSpeed."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
from typing import Any, NamedTuple

from .. import _torch_files
from .._errors import NotFound, Unrecoverable
from ._shared import Shared

_log = logging.getLogger("kedge.deepspeed")
_DIRECTORY, _TAG, _LATEST = "deepspeed.directory", "deepspeed.tag", "deepspeed.latest"
#: A directory's, as DeepSpeed writes them into the file latest.
_NAME = re.compile(r"[^\0-\x1f/]{1,255}")
#: Names of files that are not in their places yet begin with this.
BESIDE = ".kedge-"


class Place(NamedTuple):
    """Where DeepSpeed saves a checkpoint."""

    directory: str  #: absolute
    tag: str

    @property
    def latest(self) -> str:
        """The file in which DeepSpeed names its newest checkpoint."""
        return os.path.join(self.directory, "latest")

    def path_of(self, name: str) -> str:
        """Path of a file below the tag's directory."""
        return os.path.join(self.directory, self.tag, name)

    def name_of(self, path: str) -> str | None:
        """The name of a path below the tag's directory; None for other paths."""
        name = os.path.relpath(path, os.path.join(self.directory, self.tag))
        return None if name.startswith("..") else name


def tag_of(place: Place) -> str:
    """Kedge's tag. Contains the directory, because DeepSpeed's tags repeat across directories."""
    digest = hashlib.sha256(f"{place.directory}\0{place.tag}".encode()).hexdigest()[:12]
    readable = re.sub(r"[^A-Za-z0-9_-]", "-", place.tag)[:48]
    return f"{readable}.{digest}"


def attributes_of(place: Place, is_latest: bool) -> dict[str, Any]:
    """Attributes of the commit."""
    return {_DIRECTORY: place.directory, _TAG: place.tag, _LATEST: int(is_latest)}


class _Query(NamedTuple):
    place: Place
    latest: str | None  #: what the file latest says
    latest_ns: int  #: when it was written
    files: str  #: what lies in the tag's directory: whole (files of DeepSpeed's), stand-ins, or nothing


def find(shared: Shared, directory: str, tag: str | None) -> Place | None:
    """COLLECTIVE. Opens the checkpoint and returns its place in this rank's spelling; None if Kedge has none, or only
    DeepSpeed's files have a newer one."""
    asked: _Query = shared.from_root(lambda: _asked(directory, tag))
    try:
        found = _open(shared, asked, tag)
        if found is None:
            former = shared.moved.get(asked.place.directory) or _former_directory(shared, asked)
            if former is not None:
                found = _open(shared, asked._replace(place=asked.place._replace(directory=former)), tag)
    except Unrecoverable as error:
        if asked.files != "whole":
            raise
        _warn(shared, "Kedge cannot recover this checkpoint; loading DeepSpeed's own files in %s instead: %s", directory,
              error.message)  # fmt: skip
        return None
    if found is not None:
        shared.directories.add(asked.place.directory)
    return None if found is None else Place(directory, found)


def _open(shared: Shared, asked: _Query, tag: str | None) -> str | None:
    """COLLECTIVE. Opens this tag, or the newest; returns the tag."""
    if tag is None:
        return _find_newest(shared, asked)
    return tag if shared.low.open(tag_of(asked.place), False) is not None else None


def _former_directory(shared: Shared, asked: _Query) -> str | None:
    """COLLECTIVE. The directory's former path, if it was moved and checkpoints exist for that path; None if there are
    none. Raises NotFound if this is ambiguous: a program that found nothing would start from zero, and its next save
    would drop the existing checkpoints."""
    here, tag = asked.place
    is_own, others = _others(shared, here, tag if asked.files == "stand-ins" else "")
    if not others:
        return None

    def look() -> str | None:
        missing = [other for other in others if not os.path.isdir(other)]
        is_there = asked.files != "nothing" or asked.latest is not None
        if len(missing) == 1 and is_there:
            return missing[0]
        if asked.files == "whole" or is_own:
            return None  # DeepSpeed's files exist, or only the tag is missing
        raise NotFound(_not_here(here, others, missing), path=here)

    former: str | None = shared.from_root(look)
    if former is not None:
        _warn(shared, "%s is where %s was moved to: going on from the checkpoints that were saved there", here, former)
        shared.moved[here] = former
        shared.directories.add(former)
    return former


def _others(shared: Shared, directory: str, tag: str) -> tuple[bool, list[str]]:
    """COLLECTIVE. Whether checkpoints of this run were saved with the directory; if not, returns other directories
    with checkpoints, newest first; if so, those that have the tag. Ignores directories of other engines in this
    program. Leaves nothing open."""
    low, is_own = shared.low, False
    found: dict[str, bool] = {}  # whether it has the tag
    try:
        opened = low.open("latest", False)
        while opened is not None:
            attributes = low.info()["attributes"]
            low.close()
            saved_as = attributes.get(_DIRECTORY)
            is_own = is_own or saved_as == directory
            if is_own and not tag:
                break
            if isinstance(saved_as, str) and saved_as != directory and saved_as not in shared.directories:
                found[saved_as] = found.get(saved_as, False) or attributes.get(_TAG) == tag
            opened = low.open_before(opened, False)
    except Unrecoverable:
        pass  # where it can be said which checkpoints there are
    return is_own, [other for other, has_tag in found.items() if has_tag or not is_own]


def _not_here(here: str, others: list[str], missing: list[str]) -> str:
    named = ", ".join(others[:4]) + (f" and {len(others) - 4} more" if len(others) > 4 else "")
    gone = f" ({', '.join(missing[:4])} {'is' if len(missing) == 1 else 'are'} not there any more)" if missing else ""
    return (
        f"this run has no checkpoint that was saved to {here}, but has some that were saved to {named}{gone}: load from that "
        "directory, or move it here; another training needs a run of its own (\"run\" in section \"kedge\")"
    )


def _find_newest(shared: Shared, asked: _Query) -> str | None:
    """COLLECTIVE. Opens Kedge's newest checkpoint, or the one in the file latest if that is newer; returns the
    tag."""
    low = shared.low
    opened = low.open("latest", False)
    while opened is not None and not _matches(low.info(), asked):
        low.close()
        opened = low.open_before(opened, False)
    if opened is None:
        return None
    found = str(low.info()["attributes"][_TAG])
    if asked.latest in (None, found) or asked.latest_ns <= low.info()["time_ns"]:
        return found
    # Somebody went back to an older checkpoint, or saved without Kedge.
    low.close()
    wanted = Place(asked.place.directory, str(asked.latest))
    if _opens(shared, tag_of(wanted)):
        return wanted.tag
    if asked.files == "whole":
        _warn(shared, "%s names %s, which is newer than Kedge's newest, %s: loading it from DeepSpeed's files",
              asked.place.latest, asked.latest, found)  # fmt: skip
        return None
    _warn(shared, "%s names %s, which cannot be recovered: going back to %s", asked.place.latest,
          asked.latest, found)  # fmt: skip
    return found if _opens(shared, opened) else None


def _opens(shared: Shared, tag: str) -> bool:
    try:
        return shared.low.open(tag, False) is not None
    except Unrecoverable:
        return False


def _warn(shared: Shared, *words: Any) -> None:
    if shared.engine.rank == 0:
        _log.warning(*words)


def _asked(directory: str, tag: str | None) -> _Query:
    latest, latest_ns = None, 0
    path = Place(directory, "").latest
    try:
        with open(path, encoding="utf-8") as file:
            latest = file.read().strip()
        latest_ns = os.stat(path).st_mtime_ns
    except OSError:
        pass
    except ValueError:  # not even UTF-8
        latest = "\0"
    if latest is not None and not _NAME.fullmatch(latest):
        _log.warning("%s does not name a checkpoint: the file is damaged; looking for Kedge's newest checkpoint", path)
        latest, latest_ns = None, 0
    return _Query(Place(os.path.realpath(directory), tag or ""), latest, latest_ns, _files(directory, tag or latest))


def _files(directory: str, tag: str | None) -> str:
    """See _Asked."""
    try:
        with os.scandir(os.path.join(directory, tag)) if tag else contextlib.nullcontext(()) as entries:
            files = [entry.path for entry in entries if _is_file(entry)]
        if not files:
            return "nothing"
        return "stand-ins" if any(map(_torch_files.is_stand_in, files)) else "whole"
    except OSError:
        return "nothing"


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether it is a complete file of DeepSpeed's, not one left by a killed job."""
    return entry.is_file() and entry.name.endswith(".pt") and not entry.name.startswith(BESIDE)


def _matches(info: dict[str, Any], asked: _Query) -> bool:
    attributes = info["attributes"]
    return bool(attributes.get(_DIRECTORY) == asked.place.directory and attributes.get(_LATEST) == 1)

