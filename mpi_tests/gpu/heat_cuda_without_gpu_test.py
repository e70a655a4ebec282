"""examples/heat_cuda where there is no GPU: one line that says so and what to do, and the exit status 77.

usage: heat_cuda_without_gpu_test.py HEAT_CUDA [MPIEXEC]      (where there is a GPU, it is hidden from the program)
"""

import os
import subprocess
import sys
import tempfile

HEAT_CUDA, *MPIEXEC = sys.argv[1:]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("KEDGE_")} | {"CUDA_VISIBLE_DEVICES": ""}


def run(*command):
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)


def check(done, expected, *words):
    assert done.returncode == expected, f"{done.args} exits with {done.returncode}: {done.stdout}{done.stderr}"
    for word in words:
        assert word in done.stdout + done.stderr, f"{done.args} does not say {word!r}: {done.stdout}{done.stderr}"


def main():
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        check_all()
        assert not os.listdir(directory), "it began a run"


def check_all():
    alone = run(HEAT_CUDA)
    check(alone, 77, "no GPU: ", "run heat_cuda where there is an NVIDIA GPU")
    assert alone.stdout.count("\n") == 1 and not alone.stderr, f"more than one line: {alone.stdout}{alone.stderr}"
    if MPIEXEC:
        ranks = run(*MPIEXEC, "-n", "2", HEAT_CUDA)
        check(ranks, 77, "(rank 0)")
        assert ranks.stdout.count("no GPU: ") == 1, f"each rank says it: {ranks.stdout}"
    check(run(HEAT_CUDA, "--help"), 0, "usage: ")
    check(run(HEAT_CUDA, "--width", "0"), 1, "--width must be 1 to ")
    check(run(HEAT_CUDA, "--size", "4"), 1, "unknown option --size; see --help")


if __name__ == "__main__":
    main()
