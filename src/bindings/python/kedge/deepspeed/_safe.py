"""Classes in DeepSpeed's own states other than tensors and plain values. Constructing them runs no code from the
checkpoint."""

from __future__ import annotations

from typing import Any

from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler, LossScaler  # type: ignore[import-not-found, import-untyped, unused-ignore]
from deepspeed.runtime.zero.config import ZeroStageEnum  # type: ignore[import-not-found, import-untyped, unused-ignore]
from deepspeed.utils.tensor_fragment import fragment_address  # type: ignore[import-not-found, import-untyped, unused-ignore]

from .._put_together import allowing, plain_classes

_CLASSES = [DynamicLossScaler, LossScaler, ZeroStageEnum, fragment_address, *plain_classes()]


def classes() -> Any:
    """A context in which DeepSpeed's states may be loaded."""
    return allowing(_CLASSES)
