"""Makes DeepSpeed save and load with Kedge."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import deepspeed  # type: ignore[import-not-found, import-untyped, unused-ignore]
import deepspeed.runtime.engine as runtime  # type: ignore[import-not-found, import-untyped, unused-ignore]
from deepspeed.runtime.pipe.engine import PipelineEngine  # type: ignore[import-not-found, import-untyped, unused-ignore]

from .._errors import BadState
from ._checkpoint_engine import KedgeCheckpointEngine
from ._settings import Settings, settings_of

_log = logging.getLogger("kedge.deepspeed")
_installed: Settings | None = None
_is_installed = False


def install(config: Any = None) -> None:
    """Call it before deepspeed.initialize: engines made afterwards save and load by Kedge.

    ``config``: DeepSpeed's configuration (a dict, or the path of the JSON file), for its section "kedge"; a section in
    the configuration that deepspeed.initialize is given takes precedence. Raises kedge.InvalidArgument."""
    global _installed, _is_installed
    if not hasattr(runtime, "create_checkpoint_engine"):
        raise BadState(
            f"DeepSpeed {deepspeed.__version__} has no create_checkpoint_engine to replace: use a version for which Kedge was "
            "tested (0.19.5)"
        )
    _installed = settings_of(config)
    if _is_installed:
        return
    _is_installed = True
    runtime.create_checkpoint_engine = _create
    engine = runtime.DeepSpeedEngine
    engine.load_checkpoint = _loading(engine.load_checkpoint)
    for name in ("save_checkpoint", "save_16bit_model"):
        setattr(engine, name, _saving(getattr(engine, name)))
    engine.__del__ = _ending(engine.__del__)
    if hasattr(engine, "_commit_decoupled_checkpoint"):
        engine._commit_decoupled_checkpoint = _committing(engine._commit_decoupled_checkpoint)
    PipelineEngine.train_batch = _asking(PipelineEngine.train_batch)


def is_installed() -> bool:
    """Whether install was called."""
    return _is_installed


def _create(config_params: Any, **_: Any) -> KedgeCheckpointEngine:
    if (getattr(config_params, "checkpoint_config", None) or {}).get("writer") is not None:
        _log.warning('"checkpoint": {"writer": ...} of DeepSpeed\'s configuration is not used: Kedge writes the checkpoints')
    return KedgeCheckpointEngine(config_params, settings=_installed)


def _saving(original: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps an exception on one rank from leaving the others in commit. Secures the checkpoint if the engine is
    decoupled, for which save_checkpoint does not call commit."""

    @functools.wraps(original)
    def save(self: Any, *arguments: Any, **named: Any) -> Any:
        engine = self.checkpoint_engine
        if not isinstance(engine, KedgeCheckpointEngine):
            return original(self, *arguments, **named)
        try:
            saved = original(self, *arguments, **named)
        except Exception as error:
            if engine.is_saving() and engine.is_decoupled() and original.__name__ == "save_checkpoint":
                _wait_for_all_ranks()
            engine.give_up(error)
            raise
        except BaseException as error:  # KeyboardInterrupt: the other ranks may be anywhere
            if engine.is_saving():
                engine.spoil(error)
            raise
        if engine.is_decoupled():
            engine.secure()
        return saved

    return save


def _wait_for_all_ranks() -> None:
    """Joins the barrier at the end of save_checkpoint, in which the ranks wait that did not fail."""
    try:
        runtime.dist.barrier()
    except Exception as error:
        _log.debug("the barrier at the end of save_checkpoint: %s", error)


def _asking(original: Callable[..., Any]) -> Callable[..., Any]:
    """Called instead of get_commit_info, which the pipeline engine never calls; all ranks call train_batch."""

    @functools.wraps(original)
    def train_batch(self: Any, *arguments: Any, **named: Any) -> Any:
        if isinstance(self.checkpoint_engine, KedgeCheckpointEngine):
            self.checkpoint_engine.advance()
        return original(self, *arguments, **named)

    return train_batch


def _committing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Writes the file latest atomically. DeepSpeed writes it in place on rank 0: a full disk would raise there while
    the others wait, and a kill would leave it empty."""

    @functools.wraps(original)
    def _commit_decoupled_checkpoint(self: Any) -> None:
        if isinstance(self.checkpoint_engine, KedgeCheckpointEngine):
            self.checkpoint_engine.advance()
        else:
            original(self)

    return _commit_decoupled_checkpoint


def _ending(original: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps DeepSpeed's __del__, which the garbage collector calls at any time on each rank, from waiting for other
    ranks. A pending checkpoint stays pending until the next collective call or finalize."""

    @functools.wraps(original)
    def __del__(self: Any) -> None:
        if isinstance(vars(self).get("checkpoint_engine"), KedgeCheckpointEngine):
            self.checkpoint_engine = None
        original(self)

    return __del__


def _loading(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def load_checkpoint(self: Any, load_dir: str, tag: str | None = None, *arguments: Any, **named: Any) -> Any:
        engine = self.checkpoint_engine
        if not isinstance(engine, KedgeCheckpointEngine):
            return original(self, load_dir, tag, *arguments, **named)
        if self.load_universal_checkpoint():  # made of files by DeepSpeed's tool
            engine.drain()
            return original(self, load_dir, tag, *arguments, **named)
        found = engine.open(load_dir, tag, whole=_looks_at_all(self, *arguments, **named))
        try:
            with _from(found):
                loaded = original(self, load_dir, found if found is not None else tag, *arguments, **named)
        except Exception as error:
            engine.close(error)
            raise
        engine.close()
        return loaded

    return load_checkpoint


@contextlib.contextmanager
def _from(tag: str | None) -> Iterator[None]:
    """With ZeRO-3 and load_optimizer_states=False, DeepSpeed ignores the given tag and loads the weights of the tag
    in the file latest."""
    original = runtime.get_fp32_state_dict_from_zero_checkpoint
    if tag is not None:
        runtime.get_fp32_state_dict_from_zero_checkpoint = functools.partial(original, tag=tag)
    try:
        yield
    finally:
        runtime.get_fp32_state_dict_from_zero_checkpoint = original


def _looks_at_all(
    engine: Any, load_module_strict: bool = True, load_optimizer_states: bool = True, *_: Any, **__: Any
) -> bool:
    """Whether ranks load others' partitions."""
    partitioned = engine.zero_optimization_partition_weights()
    return bool((partitioned and not load_optimizer_states) or engine.zero_elastic_checkpoint())
