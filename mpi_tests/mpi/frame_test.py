#!/usr/bin/python3
"""mpi_main: an error that all ranks throw is said once, in words; one of a single rank is said and ends the job.

Nor does it wait for programs of the launch that are not in it.

usage: frame_test.py FRAME MPIEXEC BESIDE      (BESIDE: a program without Kedge)
"""
import os
import subprocess
import sys
import tempfile
import time

FRAME, MPIEXEC, BESIDE = sys.argv[1:4]


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def launch(mode, directory, beside=False):
    begin = time.monotonic()
    job = subprocess.run(
        ["timeout", "--kill-after=5", "60", MPIEXEC, "-n", "3", FRAME, mode, directory,
         *([":", "-n", "2", BESIDE] if beside else [])], cwd=directory,
        env={k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(time.monotonic() - begin < 60, mode, "did not end in time:", job.stdout)
    said = [line for line in job.stdout.splitlines() if line.startswith("frame: ")]
    return job.returncode, said, job.stdout


def main():
    with tempfile.TemporaryDirectory(prefix="kedge-frame-") as directory:
        code, said, output = launch("fine", directory)
        check(code == 0 and not said and "came to its end" in output, output)

        code, said, output = launch("all", directory)
        check(code == 75 and len(said) == 1 and "/dev/null" in said[0], output)
        for word in ("terminate called", "signal", "came to its end"):
            check(word not in output, "it does not end in words:", output)

        code, said, output = launch("option", directory)
        check(code == 78 and len(said) == 1 and "redundancy.set_size" in said[0], code, output)
        code, said, output = launch("own", directory)
        check(code == 1 and said == ["frame: my own"], code, output)
        code, said, output = launch("one-busy", directory)
        check(code == 78 and len(said) == 1, code, output)

        code, said, output = launch("one", directory)
        check(code not in (0, 124) and said == ["frame: only here"], output)
        check("came to its end" not in output, output)
        for word in ("terminate called", "Aborted", "signal 6"):
            check(word not in output, "an error that was foreseen leaves a core:", output)

        code, said, output = launch("half", directory, beside=True)
        check(code == 0 and not said, output)
        check(output.count("beside came to its end") == 2 and "\ncame to its end" in "\n" + output, output)

        code, said, output = launch("half-throws", directory, beside=True)
        check(code not in (0, 124) and said and all("/dev/null" in line for line in said), output)

        code, said, output = launch("world", directory, beside=True)
        check(code not in (0, 124) and said and all("timed out" in line for line in said), output)
        check("MPI_Comm_split" in said[0], output)
        if "Open MPI" in subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True).stdout:
            check("ranks 3 to 4 were started as another program" in said[0], output)


if __name__ == "__main__":
    main()
