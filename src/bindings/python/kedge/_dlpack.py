"""Arrays that other libraries export by DLPack (``array.__dlpack__`` of the array API standard)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _kedge
from ._errors import InvalidArgument

#: The numbers of dlpack.h, which do not change.
_HOST = {1, 3}  # of the CPU, and that pinned for CUDA
_CUDA = {2, 13}  # of a GPU, and managed
_OTHER_DEVICES = {
    4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm", 11: "ROCm's host", 14: "oneAPI", 15: "WebGPU", 16: "Hexagon",
    17: "MAIA", 18: "Trainium",
}  # fmt: skip
_READ_ONLY = 1
_IS_COPIED = 2

_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
_OTHER_TYPES = {
    (6, 8): "bool", (7, 8): "float8_e3m4", (8, 8): "float8_e4m3", (9, 8): "float8_e4m3b11fnuz", (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz", (12, 8): "float8_e5m2", (13, 8): "float8_e5m2fnuz", (14, 8): "float8_e8m0fnu",
    (15, 6): "float6_e2m3fn", (16, 6): "float6_e3m2fn", (17, 4): "float4_e2m1fn",
}  # fmt: skip

#: The legacy default stream, which DLPack and the driver both call 1. The array's library makes this stream wait for all work
#: on the array, and Kedge waits for this stream. Every library takes it; some refuse 2, the thread's default stream. With -1
#: the library orders nothing: waiting for the whole GPU then misses work that the library has not submitted yet, and waits
#: for work that has nothing to do with the array.
_STREAM = 1


class Exported(NamedTuple):
    """Memory that another library lends while ``owner`` exists."""

    address: int
    dtype: str  #: as NumPy or PyTorch names it
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  #: in bytes; None: C-contiguous
    itemsize: int
    stream: int | None  #: of the GPU that it is on; None: the host
    owner: Any

    @property
    def is_contiguous(self) -> bool:
        return is_contiguous(self.shape, self.strides, self.itemsize)


class _NotExportedError(Exception):
    """The error to raise, with the library's exception as its cause."""


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int) -> bool:
    """Whether these strides, in bytes, are a C-contiguous array's; None counts as such."""
    if strides is None or 0 in shape:
        return True
    step = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def is_offered(value: Any) -> bool:
    """Whether its library exports it by DLPack."""
    return hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")


def exported(name: str, value: Any) -> Exported | None:
    """The memory of a value to save as the region ``name``. None if NumPy should handle it: it does not export
    DLPack, NumPy finds its memory itself, or converts memory that Kedge cannot read. Raises InvalidArgument if
    neither can."""
    is_numpys = isinstance(value, (np.ndarray, np.generic))  # the usual case, and the cheapest question
    if is_numpys or not is_offered(value) or _is_read_by_numpy(value):
        return None
    what = repr(name)
    is_converted = hasattr(value, "__array__")
    try:
        device = _device_of(value)
        if is_converted and device not in (_HOST | _CUDA if _kedge.HAS_CUDA else _HOST):
            return None
        memory = _export(what, value, device, to_write=False)
    except _NotExportedError as refusal:
        if is_converted:
            return None
        raise _in_words(what, refusal) from refusal.__cause__
    if memory.stream is not None and not memory.is_contiguous:
        if is_converted:
            return None
        raise InvalidArgument(f"{what} is not C-contiguous: pass a contiguous copy")
    return memory


def exported_to_write(name: str, out: Any) -> Exported:
    """The memory of an array to load the region ``name`` into. Raises InvalidArgument if loading might not change
    ``out``, or might change more."""
    what = f"out of {name!r}"
    try:
        memory = _export(what, out, _device_of(out), to_write=True)
    except _NotExportedError as refusal:
        raise _in_words(what, refusal) from refusal.__cause__
    if memory.stream is not None and not memory.is_contiguous:
        raise InvalidArgument(f"{what} is not C-contiguous: pass a contiguous array")
    return memory


def on_host(memory: Exported) -> np.ndarray[Any, Any]:
    """A NumPy view of host memory as elements of that many bytes, because NumPy lacks some types."""
    return np.asarray(_Interface(memory))


class _Interface:
    """The array interface that NumPy reads; the view keeps it alive."""

    def __init__(self, memory: Exported) -> None:
        self._memory = memory
        self.__array_interface__ = {
            "version": 3, "shape": memory.shape, "typestr": f"|V{memory.itemsize}", "data": (memory.address, False),
            "strides": memory.strides,
        }  # fmt: skip


def _is_read_by_numpy(value: Any) -> bool:
    if hasattr(value, "__array_interface__") or hasattr(value, "__array_struct__"):
        return True
    try:
        memoryview(value).release()
    except Exception:  # TypeError and BufferError, unless the class has a __buffer__ of its own
        return False
    return True


def _in_words(what: str, refusal: _NotExportedError) -> InvalidArgument:
    error = refusal.__cause__
    return InvalidArgument(
        f"{what} could not be exported through DLPack ({type(error).__name__}: {error}): copy it to a NumPy array or a PyTorch "
        "tensor first"
    )


def _device_of(value: Any) -> int:
    try:
        return int(value.__dlpack_device__()[0])
    except Exception as error:
        raise _NotExportedError from error


def _export(what: str, value: Any, device: int, *, to_write: bool) -> Exported:
    if device not in _HOST | _CUDA:
        place = _OTHER_DEVICES.get(device, f"device type {device}")
        raise InvalidArgument(f"{what} is in memory of {place}, which Kedge does not support: copy it to host memory first")
    # By the standard only memory of devices has streams: the host's is ready when it is exported, pinned or not.
    stream = _STREAM if device in _CUDA else None
    capsule = _capsule_of(value, stream, to_write)
    try:
        tensor = _kedge.DlpackTensor(what, capsule)
    finally:
        del capsule  # one that was refused releases the array now, and not as late as the traceback
    if tensor.device_type not in (_CUDA if device in _CUDA else _HOST):
        raise InvalidArgument(
            f"{what} has inconsistent DLPack devices (__dlpack_device__: {device}, __dlpack__: {tensor.device_type}): copy it "
            "to a NumPy array or a PyTorch tensor first"
        )
    dtype, itemsize = _type_of(tensor)
    strides = None if tensor.strides is None else tuple(stride * itemsize for stride in tensor.strides)
    if to_write:
        _check_writable(what, tensor)
    return Exported(tensor.address, dtype, tensor.shape, strides, itemsize, stream, tensor)


def _capsule_of(value: Any, stream: int | None, to_write: bool) -> object:
    asked: dict[str, Any] = {} if stream is None else {"stream": stream}
    newest: dict[str, Any] = {"max_version": (1, 0)}
    forms: list[dict[str, Any]] = [newest, {}]  # the second is that of the standard before 2023
    if to_write:
        forms.insert(0, {**newest, "copy": False})  # what is written to a copy is lost
    try:
        for form in forms[:-1]:
            try:
                return value.__dlpack__(**asked, **form)
            except TypeError:
                continue
        return value.__dlpack__(**asked, **forms[-1])
    except Exception as error:  # BufferError by the standard, but not in all libraries
        raise _NotExportedError from error


def _type_of(tensor: _kedge.DlpackTensor) -> tuple[str, int]:
    """The element type's name in NumPy or PyTorch, even if Kedge lacks it, and its size in bytes."""
    code, bits, lanes = tensor.dtype
    if code in _KINDS:
        name = f"{_KINDS[code]}{bits}"
    else:
        name = _OTHER_TYPES.get((code, bits), f"DLPack type code {code} ({bits} bits)")
    return (name if lanes == 1 else f"{name}x{lanes}"), bits * lanes // 8


def _check_writable(what: str, tensor: _kedge.DlpackTensor) -> None:
    flags = tensor.flags
    if flags is None:
        # JAX exports so, and its arrays must never change.
        raise InvalidArgument(
            f"{what} uses DLPack older than 1.0, which cannot mark memory as writable: load into a NumPy array or a PyTorch "
            "tensor and convert it"
        )
    if flags & _READ_ONLY:
        raise InvalidArgument(f"{what} is read-only: pass a writable array")
    if flags & _IS_COPIED:
        raise InvalidArgument(f"{what} is exported by its library as a copy: load into a NumPy array, and convert that")
    if _overlaps(tensor.shape, tensor.strides or ()):
        raise InvalidArgument(f"{what} has overlapping elements (a broadcast view?): pass a copy")


def _overlaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements may overlap: whether a step in one dimension reaches elements that smaller steps reach, too.
    Strides are in elements."""
    if 0 in shape:
        return False
    reach = 0
    for stride, extent in sorted((abs(stride), extent) for stride, extent in zip(strides, shape) if extent > 1):
        if stride <= reach:
            return True
        reach += stride * (extent - 1)
    return False
