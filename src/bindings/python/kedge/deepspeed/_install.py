"""Makes DeepSpeed save and load by Kedge."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import deepspeed  # type: ignore[import-not-found, import-untyped, unused-ignore]
import deepspeed.runtime.engine as runtime  # type: ignore[import-not-found, import-untyped, unused-ignore]

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


def is_installed() -> bool:
    """Whether install was called."""
    return _is_installed


def _create(config_params: Any, **_: Any) -> KedgeCheckpointEngine:
    if (getattr(config_params, "checkpoint_config", None) or {}).get("writer") is not None:
        _log.warning('"checkpoint": {"writer": ...} of DeepSpeed\'s configuration is not used: Kedge writes the checkpoints')
    return KedgeCheckpointEngine(config_params, settings=_installed)


def _saving(original: Callable[..., Any]) -> Callable[..., Any]:
    """An exception on one rank alone must not leave the others in commit."""

    @functools.wraps(original)
    def save(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return original(self, *arguments, **named)
        except Exception as error:
            if isinstance(self.checkpoint_engine, KedgeCheckpointEngine):
                self.checkpoint_engine.give_up(error)
            raise

    return save


def _loading(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def load_checkpoint(self: Any, load_dir: str, tag: str | None = None, *arguments: Any, **named: Any) -> Any:
        engine = self.checkpoint_engine
        # A universal checkpoint is made of files by a tool of DeepSpeed's.
        if not isinstance(engine, KedgeCheckpointEngine) or self.load_universal_checkpoint():
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
    """With ZeRO-3 and load_optimizer_states=False DeepSpeed loads the weights of the tag in the file latest, whatever the
    tag is that it was given."""
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
