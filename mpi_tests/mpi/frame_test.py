#!/usr/bin/python3
"""mpi_main: an error that all ranks throw is said once, in words; one of a single rank is said and ends the job.

Nor does it wait for programs of the launch that are not in it.

usage: frame_test.py FRAME MPIEXEC BESIDE      (BESIDE: a program without Kedge)
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

FRAME, MPIEXEC, BESIDE = sys.argv[1:4]


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def children(process):
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def is_living_rank(process):
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            name, fields = file.read().split("(", 1)[1].rsplit(")", 1)
    except OSError:
        return False
    programs = [os.path.basename(program)[:15] for program in (FRAME, BESIDE)]
    return name in programs and fields.split()[0] not in "ZX"


def end_of(launcher, output, mode):
    """Waits for the launcher. None: it does not end although a rank ended 15 seconds ago.

    Open MPI 4.1.4 with PMIx 4.2.2 hangs in PMIx_server_finalize in 1 of 4 launches in which some ranks exit without
    MPI_Finalize while others wait in it, whether or not they use Kedge.
    """
    begin = time.monotonic()
    most = 0
    since = None
    while launcher.poll() is None:
        now = time.monotonic()
        living = sum(is_living_rank(child) for child in children(launcher.pid))
        most = max(most, living)
        since = None if living == most else since or now
        if since is not None and now - since > 15:
            return None
        if now - begin > 60:
            launcher.kill()
            output.seek(0)
            check(False, mode, "did not end in time:", output.read())
        time.sleep(0.02)
    return launcher.returncode


def kill(launcher):
    for process in [*children(launcher.pid), launcher.pid]:
        os.kill(process, signal.SIGKILL)
    launcher.wait()


def launch_once(mode, directory, beside):
    with tempfile.TemporaryFile("w+") as output:
        launcher = subprocess.Popen(
            [MPIEXEC, "-n", "3", FRAME, mode, directory, *([":", "-n", "2", BESIDE] if beside else [])], cwd=directory,
            env={k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        code = end_of(launcher, output, mode)
        if code is None:
            kill(launcher)
        output.seek(0)
        return code, output.read()


def launch(mode, directory, beside=False):
    """The exit status, what programs said, and the whole output."""
    for _ in range(3):
        code, text = launch_once(mode, directory, beside)
        if code is not None:
            said = [line for line in text.splitlines() if line.startswith("frame: ")]
            return code, said, text
        print(f"the launcher did not end after ranks of '{mode}' had ended: trying again")
    return check(False, mode, "did not end three times:", text)


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
        check(code != 0 and said == ["frame: only here"], output)
        check("came to its end" not in output, output)
        for word in ("terminate called", "Aborted", "signal 6"):
            check(word not in output, "an error that was foreseen leaves a core:", output)

        code, said, output = launch("half", directory, beside=True)
        check(code == 0 and not said, output)
        check(output.count("beside came to its end") == 2 and "\ncame to its end" in "\n" + output, output)

        code, said, output = launch("half-throws", directory, beside=True)
        check(code != 0 and said and all("/dev/null" in line for line in said), output)

        code, said, output = launch("world", directory, beside=True)
        check(code != 0 and said and all("timed out" in line for line in said), output)
        check("MPI_Comm_split" in said[0], output)
        if "Open MPI" in subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True).stdout:
            check("ranks 3 to 4 were started as another program" in said[0], output)


if __name__ == "__main__":
    main()
