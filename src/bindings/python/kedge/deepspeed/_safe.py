"""Classes that DeepSpeed's own states hold, besides tensors and plain values. Constructing them runs no code from the checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler, LossScaler  # type: ignore[import-not-found, import-untyped, unused-ignore]
from deepspeed.runtime.zero.config import ZeroStageEnum  # type: ignore[import-not-found, import-untyped, unused-ignore]
from deepspeed.utils.tensor_fragment import fragment_address  # type: ignore[import-not-found, import-untyped, unused-ignore]


def _of_numpy() -> list[Any]:
    """Arrays and scalars, in losses and states of random generators; under the names that NumPy 1 and 2 pickle them by."""
    made: list[Any] = [np.ndarray, np.dtype, *{type(np.dtype(code)) for code in np.typecodes["All"] if code not in "OSUVMm"}]
    scalar: Any = np.float64(0).__reduce__()[0]
    array: Any = np.zeros(0).__reduce__()[0]
    for function in (scalar, array):
        made += [(function, f"numpy.{module}.multiarray.{function.__name__}") for module in ("core", "_core")]
    return made


_CLASSES = [DynamicLossScaler, LossScaler, ZeroStageEnum, fragment_address, *_of_numpy()]


def classes() -> Any:
    """A context in which these may be loaded."""
    return torch.serialization.safe_globals(_CLASSES)
