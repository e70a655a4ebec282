"""The processes that an engine works with, usually determined by ``default``."""

from __future__ import annotations

import atexit
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

from . import _kedge
from ._errors import BadState, InvalidArgument

__all__ = ["Ranks", "default", "mpi", "single_process", "torch_distributed"]

Ranks = _kedge.Ranks

#: How long a rank that exits without having finalized its engine waits for the others to do the same.
EXIT_WAIT_S = 5.0
#: Engines that were made, and not finalized in order: one entry each.
unfinished: set[int] = set()
#: Those of them that have already waited for the other ranks, and were alone.
missed: set[int] = set()
#: How long the end of the interpreter waits for calls that other threads have begun.
_LAST_CALLS_S = 10.0

#: What launchers of MPI set for each process that they start.
_LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PALS_SIZE", "PMIX_RANK")


def of(given: Any) -> Ranks:
    """The engine's communicator from the argument ``communicator``: one of this module or of mpi4py."""
    if given is None:
        return default()
    if isinstance(given, Ranks):
        return given
    if is_of_mpi4py(given):
        return mpi(given)
    raise InvalidArgument(
        f"communicator is a {kind_of(given)}: give what kedge.communicators makes, such as single_process() or "
        "torch_distributed(group), a communicator of mpi4py, or nothing"
    )


def is_of_mpi4py(given: Any) -> bool:
    """Whether it is an mpi4py communicator; mpi4py need not be installed."""
    mpi4py = sys.modules.get("mpi4py.MPI")
    return mpi4py is not None and isinstance(given, mpi4py.Comm)


def kind_of(given: Any) -> str:
    """A communicator's name for messages."""
    return f"{type(given).__module__}.{type(given).__qualname__}".removeprefix("builtins.")


def default() -> Ranks:
    """COLLECTIVE. The processes that were launched together:

    1. those of MPI_COMM_WORLD, if MPI is initialized;
    2. those of torch.distributed, if that is initialized and torchrun started this process, or no launcher of MPI did;
    3. those of MPI_COMM_WORLD, if a launcher of MPI started this process: initializes MPI, and finalizes it at exit;
    4. this process alone.
    """
    if _kedge.has_mpi and _kedge.mpi_is_running():
        return mpi()
    launched = started_by_mpi(os.environ)
    if _torch_is_initialized() and not launched:
        return torch_distributed()
    if launched and _kedge.has_mpi:
        return mpi()
    if _torch_is_initialized():
        return torch_distributed()
    if launched:
        raise BadState(
            "a launcher of MPI started this process, and this Kedge was built without MPI: build it with -DKEDGE_MPI=ON, "
            "start the program with torchrun, or pass single_process()"
        )
    return single_process()


def single_process() -> Ranks:
    """A communicator of this process alone."""
    return _kedge.single_process()


def mpi(comm: Any = None) -> Ranks:
    """COLLECTIVE over ``comm``, a communicator of mpi4py; None is MPI_COMM_WORLD, for which MPI is initialized if
    needed, and then finalized at exit."""
    if not _kedge.has_mpi:
        raise InvalidArgument("this Kedge was built without MPI: build it with -DKEDGE_MPI=ON, or use another communicator")
    check_mpi4py()
    if comm is not None:
        from mpi4py import MPI  # type: ignore[import-not-found, import-untyped, unused-ignore]

        return _kedge.mpi_at(MPI._addressof(comm))
    if not _kedge.mpi_is_running():
        if not started_by_mpi(os.environ):
            raise BadState(
                "no launcher of MPI started this process: start it with mpirun, or use single_process() or "
                "torch_distributed()"
            )
        _kedge.mpi_init()
        atexit.register(_finalize_mpi, os.getpid())
    return _kedge.mpi_world()


def torch_distributed(group: Any = None) -> Ranks:
    """COLLECTIVE. The ranks of a torch.distributed process group that uses gloo; None for all ranks, over a new
    group. After a timeout neither Kedge nor the program can use the group again."""
    from ._transport import transport_over

    if not _torch_is_initialized():
        raise BadState("torch.distributed is not initialized: call torch.distributed.init_process_group first")
    return _kedge.over_transport(transport_over(group))


def started_by_mpi(environ: Mapping[str, str]) -> bool:
    """Whether an MPI launcher started this process. Processes started by torchrun inherit the launcher's variables,
    but do not belong to that MPI."""
    if "TORCHELASTIC_RUN_ID" in environ:
        return False
    return any(name in environ for name in _LAUNCHERS)


def check_mpi4py() -> None:
    """Raises BadState if mpi4py was built with another MPI than Kedge: two in one process give wrong results."""
    if not _kedge.has_mpi or "mpi4py.MPI" not in sys.modules:
        return
    theirs = sys.modules["mpi4py.MPI"].Get_library_version().split("\n")[0].strip("\0 ")
    ours = _kedge.mpi_library()
    if theirs.split(",")[0] != ours.split(",")[0]:
        raise BadState(
            f"mpi4py uses {theirs}, and Kedge was built with {ours}: install both for the same MPI "
            "(MPI4PY_MPIABI or a build of mpi4py from source; -DMPI_CXX_COMPILER for Kedge)"
        )


def reason_of(kind: type[BaseException], error: BaseException | None) -> str:
    """Why this rank leaves, for the other ranks."""
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return f"it exits with status {error.code}"
    try:
        text = " ".join(str(error or "").split())[:300]
    except Exception:  # whatever __str__ raises, the other ranks must not wait
        text = ""
    return f"{kind.__name__}: {text}" if text else kind.__name__


def end_calls() -> bool:
    """At the interpreter's end: keeps other threads from beginning calls. Returns whether no call is in progress."""
    return _kedge.end_calls(_LAST_CALLS_S)


atexit.register(end_calls)


def _torch_is_initialized() -> bool:
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and bool(distributed.is_initialized())


def _finalize_mpi(process: int) -> None:
    if os.getpid() != process:
        return  # a forked child is no rank
    # A rank that failed must not wait in MPI_Finalize: if it exits without, the launcher ends the job. A rank that left
    # an engine while others continued must not wait either; but if all left theirs, the job ends normally.
    if hasattr(sys, "last_value") or not _kedge.mpi_is_running():
        return
    if end_calls() and not missed:
        _kedge.mpi_finalize(EXIT_WAIT_S if unfinished else math.inf)
