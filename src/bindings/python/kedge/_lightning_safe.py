"""Classes of hyperparameters in Lightning's own checkpoints. Constructing them runs no code from the checkpoint."""

from __future__ import annotations

import collections
import typing
from importlib.util import find_spec
from typing import Any

from ._put_together import allowing, plain_classes


def classes() -> Any:
    """A context in which Lightning's checkpoints may be loaded."""
    return allowing([*plain_classes(), *(_of_omegaconf() if find_spec("omegaconf") else [])])


def _of_omegaconf() -> list[Any]:
    """OmegaConf's containers, in which Lightning keeps such hyperparameters, and their element types."""
    from omegaconf import AnyNode, DictConfig, ListConfig  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from omegaconf.base import ContainerMetadata, Metadata  # type: ignore[import-not-found, import-untyped, unused-ignore]

    elements: list[Any] = [(typing.Any, "typing.Any"), collections.defaultdict, dict, int, list]
    return [AnyNode, DictConfig, ListConfig, ContainerMetadata, Metadata, *elements]
