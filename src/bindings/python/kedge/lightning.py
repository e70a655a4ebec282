"""Lightning's checkpoints by Kedge, for strategies that save one file: a single device, DDP.

    from kedge.lightning import KedgeCheckpointIO

    trainer = Trainer(plugins=[KedgeCheckpointIO()], callbacks=[ModelCheckpoint("checkpoints", save_last="link")])
    trainer.fit(model, ckpt_path=KedgeCheckpointIO.latest("checkpoints"))

With DeepSpeedStrategy, which saves by itself, call kedge.deepspeed.install instead. Works with pytorch_lightning and
lightning, 2.5 or newer.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sys
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

try:
    from lightning_fabric.plugins import CheckpointIO  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    from lightning.fabric.plugins import CheckpointIO  # type: ignore[import-not-found, import-untyped, no-redef, unused-ignore]
from lightning_utilities.core.rank_zero import rank_zero_only  # type: ignore[import-not-found, import-untyped, unused-ignore]

from . import _kedge, _torch_files, communicators
from ._contents import REFUSED_FILE, Opened, Written
from ._engine import Engine
from ._errors import Busy, Error, InvalidArgument, IoError
from ._lightning_safe import classes
from ._options import flat_options, with_defaults
from ._refused import RefusalWarnings
from ._states import SplitState, refused, split_state
from ._values import Level

__all__ = ["KedgeCheckpointIO"]

_log = logging.getLogger("kedge.lightning")
#: What differs from kedge.toml: the files are the lasting copies, so the store is only for a start after a crash, and
#: damage in it is found when it is loaded. Where users keep checkpoints is no place for the run's records. Programs
#: name the checkpoint that they load, so that several engines may share it.
_DEFAULTS = {
    "persistent.path": "./kedge", "persistent.every": "0", "store.on_exit": "remove", "open.verify": "headers",
    "open.chained": "true",
}  # fmt: skip
_STATE = "state"
_SUFFIX = ".ckpt"


class KedgeCheckpointIO(CheckpointIO):  # type: ignore[misc, unused-ignore]
    """Writes each checkpoint to the node-local store and, as a file that torch.load reads, to Lightning's path.

    What it gives over torch.save: when ``save_checkpoint`` returns, the file survives a power loss, and until then the
    path holds the file that was there before. Loading compares the checksums of all bytes, which torch.load does not,
    and runs no code that a file names. A process that was killed and starts again on the same node loads its last
    checkpoint from the store, which spares the filesystem, if that is the one it asks for; after an orderly end the
    store is empty. What it costs: the store takes the space of two checkpoints on rank 0's node, in memory unless
    store.path says otherwise. Ranks other than 0 load the file.

    ``options``: Kedge's, as in kedge.toml, with dots or nested, e.g. ``{"run": "b", "store": {"path": "/local"}}``;
    defaults that differ: persistent.path "./kedge", persistent.every 0, store.on_exit "remove", open.verify "headers".
    ``allow_pickle``: load any class, which can run any code. Without it only tensors, plain data (see python.md), OmegaConf's
    containers and what torch.serialization.add_safe_globals was given are loaded; saving anything else logs a warning.

    Nothing here is collective: Lightning saves on rank 0 alone and loads on all ranks. Use one for all trainers of a
    program.
    """

    def __init__(self, options: Mapping[str, Any] | None = None, *, allow_pickle: bool = False) -> None:
        """Raises InvalidArgument for an option that does not exist."""
        super().__init__()
        self._options = flat_options(options or {})
        for name in self._options:
            _kedge.differs_from_default(name)  # raises
        self._options = with_defaults(self._options, _DEFAULTS)
        self._allow_pickle = allow_pickle
        self._refusals = RefusalWarnings()
        self._engine: Engine | None = None  # not before it is needed: on one process alone, and not in those that spawn
        self._end: Any = None
        _make_known(type(self))

    def __getstate__(self) -> dict[str, Any]:
        """Spawned processes get the settings but no engine."""
        return {**self.__dict__, "_engine": None, "_end": None}

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Returns when the file is durable. Raises IoError if it cannot be written; the earlier file is then
        unchanged. A store without space causes only a warning. Raises Busy if another process uses this run's
        store."""
        if storage_options is not None:
            raise InvalidArgument("KedgeCheckpointIO does not support storage_options: give options when it is made")
        place = _local(path)
        engine = self._start() if _is_first() else None
        taken = split_state(checkpoint, "checkpoint")
        if taken.unusual and not self._allow_pickle:
            with classes():
                self._refusals.warn(taken.unusual, lambda: refused(checkpoint, "checkpoint", taken.unusual),
                                    REFUSED_FILE.replace("%s", place), _log.warning)  # fmt: skip
        mark = os.urandom(16).hex()
        parts = self._keep(engine, place, taken, mark) if engine is not None else None
        if parts is None:
            parts = [_torch_files.Part(storage.key, storage.on_host()) for storage in taken.storages]
        try:
            _write(place, self._beside(place), taken.pickled, parts, mark)
        except OSError as error:
            why = error.strerror or str(error)
            raise IoError(f"{place} could not be written ({why}): the file before it, if there was one, is unchanged",
                          path=place, system_errno=error.errno or 0) from error  # fmt: skip

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        """Loads from the store if it has this file's checkpoint, else from the file; to host memory unless
        ``map_location`` (as in torch.load) is given. ``weights_only``, if given, overrides allow_pickle. Raises
        Corrupt for a damaged file, InvalidArgument for one with objects that are not allowed, FileNotFoundError."""
        place = _local(path)
        if os.path.isdir(place):
            raise InvalidArgument(f"{place} is a directory: load it with the strategy that wrote it", path=place)
        where = "cpu" if map_location is None else map_location
        allow_pickle = self._allow_pickle if weights_only is None else not weights_only
        mark = _torch_files.mark_of(place)
        with classes():
            if mark is not None and _is_first():
                state = self._from_store(mark, place, where, allow_pickle)
                if state is not None:
                    return state
            _torch_files.check(place)
            loaded: dict[str, Any] = _torch_files.load(place, where, allow_pickle)
            return loaded

    def remove_checkpoint(self, path: Any) -> None:
        """Removes the file, or the directory that another strategy wrote; a missing one is not an error."""
        place = _local(path)
        try:
            if os.path.isdir(place) and not os.path.islink(place):
                shutil.rmtree(place)
            else:
                os.remove(place)
        except FileNotFoundError:
            pass

    def teardown(self) -> None:
        """Ends the engine; the next save or load makes another. Lightning calls it at the end of fit, test, etc."""
        end, self._engine, self._end = self._end, None, None
        if end is not None:
            end()

    @staticmethod
    def latest(directory: Any) -> str | None:
        """The newest complete checkpoint in or below this directory, for ``ckpt_path`` of Trainer.fit; None if there
        is none. Verifies every byte of files that Kedge wrote; of other files and of DeepSpeed's directories only
        that they are complete. Reads only files, so all ranks that see the same files find the same checkpoint."""
        for _, path in sorted(_checkpoints(_local(directory)), reverse=True):
            try:
                if not os.path.isdir(path):
                    _torch_files.check(path)
                return path
            except (Error, OSError) as error:
                _log.warning("skipped: %s", error.message if isinstance(error, Error) else error)
        return None

    def _start(self, *, is_waiting: bool = True) -> Engine:
        if self._engine is None:
            options = self._options if is_waiting else {**self._options, "store.lock_timeout_s": "0"}
            try:
                self._engine = Engine(options, communicator=communicators.single_process())
            except Busy as error:
                raise Busy(
                    f"another trainer uses Kedge's store for this run ({error.message}): give each that runs at the "
                    'same time in one directory a run of its own, KedgeCheckpointIO({"run": "NAME"}); trainers of one '
                    "program share one KedgeCheckpointIO",
                    path=error.path,
                ) from None
            self._end = weakref.finalize(self, self._engine.finalize)  # at the program's end, if nobody calls teardown
        return self._engine

    def _keep(self, engine: Engine, place: str, taken: SplitState, mark: str) -> list[_torch_files.Part] | None:
        """Commits the state to the store. Returns its storages there if they are in memory, from which the file is
        then written."""
        low, is_open = engine._engine, False
        try:
            low.create(_tag(mark), {"lightning.path": place})
            is_open = True
            written = Written(low, mark)
            written.add(_STATE, taken)
            written.end()
            is_open = False
            low.commit()
            low.wait(_tag(mark), Level.LOCAL)  # with device.snapshot, commit returns before it is local
            return written.parts(_STATE) if written.is_in_memory() else None
        except Error as error:
            # The file is what lasts, and what a start needs.
            _log.warning("%s is not kept in the store: %s", place, error.message)
            return None
        finally:
            if is_open:
                low.abandon()

    def _from_store(self, mark: str, place: str, where: Any, allow_pickle: bool) -> dict[str, Any] | None:
        """None if it is missing or unreadable."""
        # Who only loads, in a directory where nothing was saved, leaves nothing there.
        if self._engine is None and not os.path.isdir(self._option("persistent.path")):
            return None
        try:
            low = self._start(is_waiting=False)._engine
            if low.open(_tag(mark), False) is None:
                return None
        except Error as error:
            _log.warning("%s is loaded from the file: %s", place, error.message)
            return None
        try:
            state: dict[str, Any] = Opened(low).load(_STATE, where, allow_pickle, place)
            return state
        except InvalidArgument:
            raise
        except Error as error:
            _log.warning("%s is loaded from the file, its copy in the store is damaged: %s", place, error.message)
            return None
        finally:
            _close(low)

    def _beside(self, place: str) -> str:
        """The temporary path of the file. The next save overwrites what a crash leaves there: only one process at a
        time uses this name. It contains no part of the real name, or Lightning would take it for a checkpoint."""
        who = f"{os.path.realpath(self._option('persistent.path'))}\0{self._option('run')}\0{_rank()}"
        return os.path.join(os.path.dirname(place), f".kedge-{hashlib.sha256(who.encode()).hexdigest()[:12]}")

    def _option(self, name: str) -> str:
        return self._options.get(name) or _kedge.loaded_option(name)


def _make_known(kind: type) -> None:
    """The CheckpointIO class of the Lightning in use: pytorch_lightning and lightning each accept only their own."""
    for package in ("lightning_fabric", "lightning.fabric"):
        plugins: Any = sys.modules.get(f"{package}.plugins")
        if plugins is not None:
            plugins.CheckpointIO.register(kind)


def _rank() -> int:
    """This process's rank, as Lightning set it."""
    return int(getattr(rank_zero_only, "rank", None) or 0)


def _is_first() -> bool:
    """Whether this process saves: only it uses the store."""
    return _rank() == 0


def _tag(mark: str) -> str:
    return f"checkpoint-{mark}"


def _local(path: Any) -> str:
    text = str(os.fspath(path))
    if "://" in text:
        raise InvalidArgument(f"KedgeCheckpointIO needs a mounted file system, unlike {text}: use Lightning's own")
    return os.path.abspath(text)


def _write(place: str, beside: str, pickled: bytes, parts: list[_torch_files.Part], mark: str) -> None:
    directory = os.path.dirname(place)
    _make_directory(directory)
    try:
        _torch_files.write(beside, pickled, parts, mark)
        os.replace(beside, place)
    except BaseException:
        try:
            os.remove(beside)
        except OSError:
            pass  # never made
        raise
    _torch_files.sync_directory(directory)


def _make_directory(path: str) -> None:
    """Makes a directory and its parents, durably."""
    if os.path.isdir(path):
        return
    _make_directory(os.path.dirname(path))
    os.makedirs(path, exist_ok=True)
    _torch_files.sync_directory(os.path.dirname(path))


def _close(low: _kedge.Engine) -> None:
    try:
        low.close()
    except Error:
        pass  # what could not be loaded, which was said


def _checkpoints(directory: str) -> Iterator[tuple[int, str]]:
    """Checkpoints with the times at which their writing ended."""
    for path, directories, files in os.walk(directory):
        ours = [name for name in directories if name.endswith(_SUFFIX)]
        directories[:] = [name for name in directories if name not in ours]
        found = [(os.path.join(path, name), os.path.join(path, name)) for name in files if name.endswith(_SUFFIX)]
        # The last that DeepSpeed writes.
        found += [(os.path.join(path, name), os.path.join(path, name, "latest")) for name in ours]
        for checkpoint, last in found:
            try:
                yield os.stat(last).st_mtime_ns, checkpoint
            except OSError:
                pass  # removed meanwhile, or incomplete
