"""examples/heat_cuda over a fake CUDA: killed and started again it ends with the field of heat2d, alone and on any number
of ranks.

usage: heat_cuda_killed_test.py ALONE RANKS HEAT2D MPIEXEC      (heat_cuda without MPI and with it)
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ALONE, RANKS, HEAT2D, MPIEXEC = sys.argv[1:5]


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


class Job:
    """One run with a store and a prefix of its own."""

    def __init__(self, directory, *command):
        self.directory, self.command = directory, command
        directory.mkdir()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("KEDGE_")} | {
            "KEDGE_STORE_PATH": str(directory / "store"), "KEDGE_PERSISTENT_PATH": str(directory / "prefix"),
            "KEDGE_LOG_LEVEL": "warning"}

    def start(self, *more, expect=0):
        done = subprocess.run([*self.command, *more], env=self.environment, capture_output=True, text=True, timeout=60)
        check((done.returncode == 0) == (expect == 0), self.command, *more, "exits with", done.returncode, done.stdout, done.stderr)
        lines = done.stdout.splitlines()
        return {key: line[len(key) + 1:] for key in ("GPU", "resumed", "steps computed", "checksum") for line in lines
                if line.startswith(key + " ")}


def launched(ranks, program):
    return (MPIEXEC, "-n", str(ranks), program)


def main():
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="kedge-heat-cuda-", dir=memory) as name:
        directory = Path(name)
        expected = Job(directory / "heat2d", *launched(2, HEAT2D)).start()["checksum"]
        constant = f"heat2d_checksum={expected} "
        script = Path(__file__).resolve().parents[2] / "share/kedge/test-gpu"
        check(constant in script.read_text(), "share/kedge/test-gpu does not have", constant)
        for ranks in (0, 1, 2, 3):
            command = launched(ranks, RANKS) if ranks else (ALONE,)
            whole = Job(directory / f"whole-{ranks}", *command).start()
            check(whole["checksum"] == expected and whole["steps computed"] == "200", ranks, "ranks:", whole)
            job = Job(directory / f"killed-{ranks}", *command)
            job.start("--die-at", "130", "--die-rank", str(max(ranks - 1, 0)), expect=137)
            again = job.start()
            check(again["resumed"] == "step-000120 120" and again["steps computed"] == "80", ranks, "ranks:", again)
            check(again["checksum"] == expected, ranks, "ranks end with", again["checksum"], "instead of", expected)
            check(again["GPU"].endswith("device 0 of 2"), again)
            print(f"ok {ranks} ranks (0: without MPI)", flush=True)
        Job(directory / "narrow", *launched(3, RANKS), "--height", "2").start(expect=1)  # fewer rows than ranks
        plates = [Job(directory / f"odd-{ranks}", *launched(ranks, RANKS), "--width", "1", "--height", "7").start()
                  for ranks in (1, 3)]
        check(plates[0]["checksum"] == plates[1]["checksum"], plates)


if __name__ == "__main__":
    main()
