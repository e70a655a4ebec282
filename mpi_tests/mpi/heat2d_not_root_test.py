#!/usr/bin/python3
"""heat2d run by a user without privileges, for whom permissions count: a container that the user cannot open, or may
only read, is rebuilt from those of the other nodes, the job ends as if nothing had happened, and later saves go on.

usage: heat2d_not_root_test.py HEAT2D MPIEXEC

Needs root, who changes the permissions and acts as that user with setpriv: else `skipped`, the reason, and exit status
77. The stores lie in memory (/dev/shm) and on a disk; where one of them is missing, `not tried` says so.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HEAT2D, MPIEXEC = sys.argv[1:3]
NOBODY = 65534
RANKS, EVERY = 4, 10
LAUNCH_LIMIT_S = 60


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def as_nobody(*command):
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]


class Job:
    """heat2d on four simulated nodes with a store each, in a directory of the user's own."""

    def __init__(self, place, program):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="kedge-not-root-", dir=place))
        os.chown(self.directory, NOBODY, NOBODY)
        self.program = program
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
            "HOME": str(self.directory), "TMPDIR": str(self.directory),  # Open MPI writes there
            "KEDGE_STORE_PATH": f"{self.directory}/store/{{node}}", "KEDGE_PERSISTENT_PATH": f"{self.directory}/prefix",
            "KEDGE_PERSISTENT_EVERY": "0", "KEDGE_TEST_RANKS_PER_NODE": "1", "KEDGE_REDUNDANCY_SCHEME": "xor",
            "KEDGE_PIPELINE_MODE": "inline"}  # what was committed is protected

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory)

    def launch(self, steps, *more):
        """(exit code, what was printed)"""
        begin = time.monotonic()
        done = subprocess.run(
            as_nobody("timeout", "--kill-after=5", str(LAUNCH_LIMIT_S), MPIEXEC,
                      "-n", str(RANKS), self.program, "--steps", str(steps),
                      "--every", str(EVERY), *map(str, more)),
            cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        check(time.monotonic() - begin < LAUNCH_LIMIT_S, "a launch did not end within its time limit:", done.stdout)
        return done.returncode, done.stdout

    def end(self, steps):
        """What was printed by a launch that came to its end."""
        code, output = self.launch(steps)
        check(code == 0, output)
        return output

    def die(self, steps, at):
        code, output = self.launch(steps, "--die-at", at, "--die-rank", 0)
        check(code != 0 and printed(output, "checksum") is None, "nobody died:", output)
        return output

    def container(self, rank, step):
        tag = f"step-{step:06}".encode()
        found = [file for file in (self.directory / f"store/node{rank}").glob(f"*/rank-{rank}.*.h5")
                 if tag in file.read_bytes()[:4096]]
        check(len(found) == 1, "containers of rank", rank, "with", tag, found)
        check(found[0].stat().st_uid == NOBODY, found[0], "is not the user's")
        return found[0]


def printed(output, key):
    return next((line[len(key) + 1:] for line in output.splitlines() if line.startswith(key + " ")), None)


def check_rebuilt(output, rank, step, container):
    resumed = printed(output, "resumed") or ""
    check(resumed.startswith(f"step-{step:06} {step} rebuilt "), "resumed", resumed, output)
    check(re.search(rf"skipped an unreadable container: {container}: .*permission denied", output), output)
    check(f"rank {rank}: container rebuilt from ranks " in output, "it does not say what was rebuilt:", output)
    for later in (step + EVERY, step + 2 * EVERY):
        check(re.search(rf"committed step-{later:06} .*, protected \(xor\)", output), step, "was not saved:", output)


def containers_without_permission_are_rebuilt(place, program, kind, wanted):
    with Job(place, program) as job:
        job.die(60, at=25)
        closed = job.container(1, 20)
        closed.chmod(0o000)
        output = job.die(60, at=45)
        check_rebuilt(output, 1, 20, closed)
        read_only = job.container(3, 40)
        read_only.chmod(0o400)
        output = job.end(60)
        check_rebuilt(output, 3, 40, read_only)
        check(printed(output, "checksum") == wanted, "the field differs from that of the undisturbed run", output)
        check(f" of {kind} on {RANKS} nodes kept" in output, place, "is not", kind, output)
        output = job.end(70)
        check((printed(output, "resumed") or "").startswith("step-000060 60 in place "), output)
    print(f"ok stores on {place} ({kind})", flush=True)


def runnable(directory):
    """The program, where the user can reach it."""
    for program in (HEAT2D, str(directory / "heat2d")):
        if program != HEAT2D:
            shutil.copy(HEAT2D, program)
        if subprocess.run(as_nobody("test", "-x", program)).returncode == 0:
            return program
    return None


def is_memory(place):
    kind = subprocess.run(["stat", "--file-system", "--format=%T", place], capture_output=True, text=True).stdout
    return kind.strip() in ("tmpfs", "ramfs")


def main():
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        print("skipped: acting as another user needs", "root" if os.geteuid() != 0 else "setpriv (util-linux)")
        return 77
    disk = next((place for place in (tempfile.gettempdir(), "/var/tmp") if not is_memory(place)), None)
    memory = "/dev/shm" if os.path.isdir("/dev/shm") and is_memory("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="kedge-not-root-") as directory:
        os.chmod(directory, 0o755)
        program = runnable(pathlib.Path(directory))
        if program is None:
            print("skipped: user", NOBODY, "can run neither", HEAT2D, "nor a copy in", directory)
            return 77
        with Job(directory, program) as undisturbed:
            wanted = printed(undisturbed.end(60), "checksum")
        for place, kind in ((memory, "memory"), (disk, "disk space")):
            if place is None:
                print("not tried: there is no place for stores on", kind, flush=True)
                continue
            containers_without_permission_are_rebuilt(place, program, kind, wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
