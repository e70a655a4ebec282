"""A directory for a test's stores and prefix, and options that lead there."""

import contextlib
import importlib.util
import shutil
import sys
import tempfile


def options(directory, **more):
    chosen = {"store.path": f"{directory}/store/{{node}}", "persistent.path": f"{directory}/prefix",
              "open.chained": "true",  # a test starts again in its own process
              "log.level": "warning"}
    return {**chosen, **more}


@contextlib.contextmanager
def directory():
    path = tempfile.mkdtemp(prefix="kedge-python-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def has(module):
    """Whether it is installed."""
    return importlib.util.find_spec(module) is not None


def need(*modules):
    """Skips the whole test, with the reason, where one of these is not installed."""
    missing = [name for name in modules if not has(name)]
    if missing:
        print(f"skipped: {sys.executable} has no {', '.join(missing)}")
        sys.exit(77)


#: For programs with DeepSpeed on a machine without accelerators: with a LOCAL_SIZE that is not the number of ranks it leaves
#: communication to torch.distributed.
DEEPSPEED = {"DS_ACCELERATOR": "cpu", "LOCAL_SIZE": "99", "OMP_NUM_THREADS": "1"}
