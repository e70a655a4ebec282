"""Memory cgroups of either version for tests: a group of its own below this process's, with a limit.

    with cgroup.Group(300 << 20) as group:
        subprocess.run(command, preexec_fn=group.enter)
"""
import os
import pathlib
import re
import signal
import time

MOUNT = pathlib.Path("/sys/fs/cgroup")
LIMIT_S = 20


class Unavailable(Exception):
    """This machine gives no cgroup; says why."""


def own_group():
    """Where this process's memory is counted, and whether that is version 2."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        for directory in (MOUNT / "memory" / group.lstrip("/"), MOUNT / "memory"):
            if "memory" in controllers.split(",") and (directory / "memory.limit_in_bytes").exists():
                return directory, False
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            for directory in (MOUNT / line[3:].lstrip("/"), MOUNT):
                controllers = directory / "cgroup.controllers"
                if controllers.exists() and "memory" in controllers.read_text().split():
                    return directory, True
    raise Unavailable("no memory controller of cgroups is mounted at /sys/fs/cgroup")


class Group:
    """Its processes may use so many bytes together; ends them all when it is left."""

    def __init__(self, limit_bytes):
        parent, self.is_v2 = own_group()
        self.directory = parent / f"kedge-test-{os.getpid()}"
        try:
            if self.is_v2:
                self._delegate(parent)
            self.directory.mkdir()
        except OSError as error:
            raise Unavailable(f"no memory cgroup can be made below {parent}: {error.strerror}") from error
        try:
            self._write("memory.max" if self.is_v2 else "memory.limit_in_bytes", limit_bytes)
            (self.directory / "cgroup.procs").open("w").close()
        except OSError as error:
            self.directory.rmdir()
            raise Unavailable(f"{self.directory} cannot be limited: {error.strerror}") from error

    @staticmethod
    def _delegate(parent):
        control = parent / "cgroup.subtree_control"
        if "memory" not in control.read_text().split():
            control.write_text("+memory")  # EBUSY where processes live in the group itself

    def _write(self, name, value):
        (self.directory / name).write_text(str(value))

    def _number(self, *names):
        for name in names:
            if (self.directory / name).exists():
                return int((self.directory / name).read_text())
        return None

    def enter(self):
        """Puts the calling process into it."""
        (self.directory / "cgroup.procs").write_text(str(os.getpid()))

    def peak_bytes(self):
        """The most that was ever used, or None where the kernel does not tell."""
        return self._number("memory.peak", "memory.max_usage_in_bytes")

    def used_bytes(self):
        return self._number("memory.current", "memory.usage_in_bytes")

    def stat(self, key):
        text = (self.directory / "memory.stat").read_text()
        found = re.search(rf"^(?:total_)?{key} (\d+)$", text, re.M)
        return int(found[1]) if found else 0

    def killed(self):
        """How many of its processes the kernel killed for want of memory."""
        text = (self.directory / ("memory.events" if self.is_v2 else "memory.oom_control")).read_text()
        return int(re.search(r"^oom_kill (\d+)$", text, re.M)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        deadline = time.monotonic() + LIMIT_S
        while True:
            for pid in (self.directory / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            try:
                return self.directory.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
