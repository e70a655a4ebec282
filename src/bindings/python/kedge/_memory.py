"""Converts NumPy arrays, PyTorch tensors, GPU arrays, arrays of other libraries and plain values to regions: address,
data type, shape."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from . import _dlpack
from ._errors import InvalidArgument

#: The engine's numbers, which are on disk, by the names that NumPy and PyTorch give these types.
_NUMBERS = {
    "int8": 1, "int16": 2, "int32": 3, "int64": 4, "uint8": 5, "uint16": 6, "uint32": 7, "uint64": 8,
    "float16": 9, "bfloat16": 10, "float32": 11, "float64": 12, "complex64": 13, "complex128": 14, "bool": 15,
    "float8_e4m3fn": 17, "float8_e5m2": 18,
}  # fmt: skip
_NAMES = {number: name for name, number in _NUMBERS.items()}
OPAQUE = 16


class Block(NamedTuple):
    """A region's memory, and its owner, which keeps it alive."""

    address: int
    dtype: int
    shape: tuple[int, ...]
    owner: Any
    stream: int | None = None  # of a GPU; None for host memory, or to wait for all of the GPU's work


def dtype_name(number: int) -> str:
    """The type's name, e.g. "float64"; "opaque" for bytes."""
    return _NAMES.get(number, "opaque")


def dtype_number(name: str) -> int:
    """The number of a type's name; opaque for types that Kedge lacks, which are saved as bytes."""
    return _NUMBERS.get(name, OPAQUE)


def is_tensor(value: Any) -> bool:
    """Whether it is a PyTorch tensor. Does not import PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_on_gpu(value: Any) -> bool:
    """Whether to use its CUDA array interface, which CuPy, Numba and others have. An interface without a stream does
    not order pending work (as in JAX), so DLPack is used then."""
    if is_tensor(value):
        return False
    try:
        interface = value.__cuda_array_interface__
    except Exception:  # libraries raise various exceptions for missing interfaces
        return False
    return "stream" in interface or interface.get("mask") is not None or not _dlpack.is_offered(value)


def _number_of(name: str, value: Any, dtype: Any) -> int:
    number = _NUMBERS.get(str(dtype).removeprefix("torch."))
    if number is None:
        advice = "view it as uint8" if is_tensor(value) else "view it as uint8, or use save_object"
        raise InvalidArgument(f"{name!r} has elements of {dtype}, for which Kedge has no type: {advice}")
    return number


#: What arrays of other kinds have beside their values.
_METADATA = ("mask", "unit", "units", "index", "coords")


def _require_plain(name: str, value: Any, *, is_target: bool = False) -> None:
    """Refuses array classes with more than values, such as a mask or unit, which would be lost."""
    kind = type(value)
    if isinstance(value, (list, tuple)):
        for one in value:
            _require_plain(name, one, is_target=is_target)
        return
    if isinstance(value, np.generic) or kind in (np.ndarray, np.memmap, np.recarray):
        return
    if not isinstance(value, np.ndarray) and not (
        hasattr(value, "__array__") and any(hasattr(value, one) for one in _METADATA)
    ):
        return
    called = "a masked array" if isinstance(value, np.ma.MaskedArray) else f"a {kind.__module__}.{kind.__qualname__}"
    if is_target:
        raise InvalidArgument(f"out of {name!r} is {called}: load into a plain array, such as numpy.asarray(out)")
    raise InvalidArgument(
        f"{name!r} is {called}, of which Kedge would save only the values: save numpy.asarray(value), and its mask, units "
        "or labels separately"
    )


def block_of(name: str, value: Any) -> Block:
    """The memory of a value to save; non-contiguous memory is copied into a contiguous buffer."""
    if is_tensor(value):
        return _block_of_tensor(name, value)
    if is_on_gpu(value):
        return _block_on_gpu(name, value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        array = np.frombuffer(value, dtype=np.uint8)
        return Block(array.ctypes.data if array.size else 0, OPAQUE, array.shape, array)
    exported = _dlpack.exported(name, value)
    if exported is not None:
        return _block_exported(name, value, exported)
    _require_plain(name, value)
    array = np.asarray(value)
    if array.dtype.hasobject or array.dtype.kind in "USV" and array.dtype.name not in _NUMBERS:
        raise InvalidArgument(
            f"{name!r} is {type(value).__name__} with elements of {array.dtype}: save arrays of numbers with save, "
            "anything else with save_object"
        )
    if not array.dtype.isnative:
        raise InvalidArgument(f"{name!r} has non-native byte order: save value.astype(value.dtype.newbyteorder('='))")
    array = np.asarray(array, order="C")
    return Block(array.ctypes.data, _number_of(name, value, array.dtype), array.shape, array)


def _check_tensor(name: str, tensor: Any) -> None:
    import torch

    reason = why_not_saved(tensor)
    if reason:
        raise InvalidArgument(f"{name!r} {reason}")
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        raise InvalidArgument(
            f"{name!r} is a {type(tensor).__module__}.{type(tensor).__qualname__}, whose memory is not all that it means: "
            "save the plain tensors that it is made of (of a DTensor its to_local())"
        )
    if tensor.is_meta:
        raise InvalidArgument(f"{name!r} is a meta tensor, which holds no data: materialize it before saving")
    if tensor.layout is not torch.strided:
        raise InvalidArgument(f"{name!r} is a {tensor.layout} tensor: save its indices and values, or to_dense()")
    if tensor.is_nested:
        raise InvalidArgument(f"{name!r} is a nested tensor: save those of its unbind(), or use save_state")
    if tensor.is_quantized:
        raise InvalidArgument(f"{name!r} is quantized: save its int_repr(), scale and zero point")
    if tensor.device.type != "cpu" and not is_cuda(tensor):
        raise InvalidArgument(f"{name!r} is on {tensor.device}, and Kedge supports CPU and CUDA tensors only: save its cpu()")


def why_not_saved(tensor: Any) -> str:
    """Why a tensor cannot be saved in any way, and what to do; empty if it can."""
    import torch

    fake = sys.modules.get("torch._subclasses.fake_tensor")
    if fake is not None and isinstance(tensor, fake.FakeTensor):
        return "is a fake tensor, which holds no data: save the real one, made outside of FakeTensorMode"
    if torch.nn.parameter.is_lazy(tensor):
        return "is not initialized yet: run its lazy module once before saving"
    if tensor.is_mkldnn:
        return "is in MKL-DNN's own layout: save its to_dense()"
    return ""


def is_cuda(memory: Any) -> bool:
    """Whether a tensor or storage is on an NVIDIA GPU. PyTorch for ROCm also calls its devices cuda."""
    import torch

    return memory.device.type == "cuda" and torch.version.hip is None


def stream_of(memory: Any) -> int | None:
    """PyTorch's current stream for this tensor or storage; None for host memory."""
    if not is_cuda(memory):
        return None
    import torch

    return int(torch.cuda.current_stream(memory.device).cuda_stream)


def _block_of_tensor(name: str, tensor: Any) -> Block:
    _check_tensor(name, tensor)
    # Conjugated and negated views compute on access: their memory has other bytes.
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return Block(plain.data_ptr(), _number_of(name, tensor, plain.dtype), tuple(plain.shape), plain, stream_of(plain))


def _block_on_gpu(name: str, array: Any) -> Block:
    """Memory of a CUDA array interface of any version."""
    interface = array.__cuda_array_interface__
    shape = tuple(int(extent) for extent in interface["shape"])
    dtype = np.dtype(interface["typestr"])
    if interface.get("mask") is not None:
        raise InvalidArgument(f"{name!r} has a mask, which Kedge does not save: save data and mask as two arrays")
    if dtype.kind not in "biufc" or not dtype.isnative:
        raise InvalidArgument(f"{name!r} has elements of {interface['typestr']}, for which Kedge has no type: view it as uint8")
    if not _dlpack.is_contiguous(shape, interface.get("strides"), dtype.itemsize):
        raise InvalidArgument(f"{name!r} is not C-contiguous: pass cupy.ascontiguousarray(x)")
    return Block(int(interface["data"][0]), _number_of(name, array, dtype), shape, array, interface.get("stream"))


def _block_exported(name: str, value: Any, memory: _dlpack.Exported) -> Block:
    number = _number_of(name, value, memory.dtype)
    if memory.is_contiguous:
        return Block(memory.address, number, memory.shape, memory.owner, memory.stream)
    array = np.ascontiguousarray(_dlpack.on_host(memory))
    return Block(array.ctypes.data, number, memory.shape, array)


def _target_exported(name: str, out: Any) -> tuple[Block, Any]:
    memory = _dlpack.exported_to_write(name, out)
    number = _number_of(name, out, memory.dtype)
    if memory.is_contiguous:
        return Block(memory.address, number, memory.shape, memory.owner, memory.stream), None
    view = _dlpack.on_host(memory)
    buffer = np.empty(view.shape, dtype=view.dtype)
    return Block(buffer.ctypes.data, number, memory.shape, buffer), lambda: np.copyto(view, buffer)


def empty_array(name: str, dtype: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Makes an array to load into."""
    if dtype == OPAQUE:
        return np.empty(shape, dtype=np.uint8)
    try:
        return np.empty(shape, dtype=np.dtype(dtype_name(dtype)))
    except TypeError:
        raise InvalidArgument(
            f"{name!r} is of {dtype_name(dtype)}, which NumPy does not have: use load_tensor, or import ml_dtypes"
        ) from None


def empty_tensor(dtype: int, shape: tuple[int, ...]) -> Any:
    """Makes a tensor to load into."""
    import torch

    return torch.empty(shape, dtype=torch.uint8 if dtype == OPAQUE else getattr(torch, dtype_name(dtype)))


def target_of(name: str, out: Any) -> tuple[Block, Any]:
    """The memory to load into, and a function to call afterwards if that is not ``out`` itself."""
    if is_tensor(out):
        return _target_of_tensor(name, out)
    if is_on_gpu(out):
        if out.__cuda_array_interface__["data"][1]:
            raise InvalidArgument(f"out of {name!r} is read-only: pass a writable array")
        return _block_on_gpu(name, out), None
    if not isinstance(out, np.ndarray):
        if _dlpack.is_offered(out):
            return _target_exported(name, out)
        raise InvalidArgument(
            f"out of {name!r} is a {type(out).__name__}: give a NumPy array, a PyTorch tensor, a GPU array, or an array that "
            "has __dlpack__"
        )
    _require_plain(name, out, is_target=True)
    if not out.flags.writeable:
        raise InvalidArgument(f"out of {name!r} is read-only: pass a writable array")
    if not out.dtype.isnative:
        raise InvalidArgument(f"out of {name!r} has non-native byte order: load into an array of native byte order")
    number = _number_of(name, out, out.dtype)
    if out.flags.c_contiguous:
        return Block(out.ctypes.data, number, out.shape, out), None
    buffer = np.empty(out.shape, dtype=out.dtype)
    return Block(buffer.ctypes.data, number, out.shape, buffer), lambda: np.copyto(out, buffer)


def host_target_of(name: str, out: Any) -> tuple[Block, Any]:
    """As target_of, with host memory for tensors of a GPU. Refuses other GPU arrays."""
    if is_tensor(out):
        return _target_of_tensor(name, out, is_direct=out.device.type == "cpu")
    return target_of(name, out)


def check_apart(targets: list[tuple[str, Any, Any]]) -> None:
    """Raises InvalidArgument if two of these, with their names and their functions of target_of, share memory. The
    engine sees only contiguous memory."""
    arrays = [(name, _array_on(out), finish) for name, out, finish in targets]
    for place, (name, array, finish) in enumerate(arrays):
        for other, before, its in arrays[:place]:
            if array is None or before is None or (finish is None and its is None):
                continue
            if np.may_share_memory(array, before) and np.shares_memory(array, before):
                raise InvalidArgument(f"{other!r} and {name!r} are to be loaded into the same memory: give each its own")


def _array_on(out: Any) -> Any:
    """A NumPy array on this host memory; None if there is none."""
    if isinstance(out, np.ndarray):
        return out
    try:
        if is_tensor(out):
            import torch

            sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
            return out.detach().view(sizes[out.element_size()]).numpy()
        return np.from_dlpack(out)
    except Exception:  # libraries raise various exceptions for memory of devices
        return None


def _target_of_tensor(name: str, out: Any, is_direct: bool = True) -> tuple[Block, Any]:
    import torch

    _check_tensor(name, out)
    number = _number_of(name, out, out.dtype)
    target = out.detach()
    if is_direct and target.is_contiguous() and not target.is_conj() and not target.is_neg():
        return Block(target.data_ptr(), number, tuple(out.shape), target, stream_of(target)), None
    buffer = torch.empty(out.shape, dtype=out.dtype)
    return Block(buffer.data_ptr(), number, tuple(out.shape), buffer), lambda: target.copy_(buffer)
