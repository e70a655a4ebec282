#!/usr/bin/python3
"""Launches a Fortran test program on several ranks, with stores and a prefix of its own.

usage: launch.py PROGRAM LAUNCHER RANKS
           all ranks must end with checks.f90's last words
       launch.py --output PROGRAM LAUNCHER RANKS DIRECTORY [ARGUMENT ...]
           only runs it, in a directory that stays
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

LIMIT_S = 120


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def environment(directory, **variables):
    return {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
        "KEDGE_STORE_PATH": f"{directory}/store/{{node}}", "KEDGE_PERSISTENT_PATH": f"{directory}/prefix",
        "KEDGE_PERSISTENT_EVERY": "1", "KEDGE_OPEN_CHAINED": "1"} | {f"KEDGE_{k.upper()}": str(v) for k, v in variables.items()}


def launch(program, launcher, ranks, directory, *arguments, **variables):
    """What became of it: returncode, stdout and stderr."""
    begin = time.monotonic()
    done = subprocess.run(["timeout", "--kill-after=5", str(LIMIT_S), launcher, "-n", str(ranks), program, *arguments], env=environment(directory, **variables),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          cwd=directory)
    check(time.monotonic() - begin < LIMIT_S, program, *arguments, "did not end within its time limit:", done.stderr)
    return done


def run_only(program, launcher, ranks, directory, *arguments):
    done = launch(program, launcher, ranks, directory, *arguments)
    print(done.stdout, done.stderr, flush=True)
    return done.returncode


def main():
    if sys.argv[1] == "--output":
        sys.exit(run_only(*sys.argv[2:]))
    program, launcher, ranks = sys.argv[1:4]
    with tempfile.TemporaryDirectory(prefix="kedge-fortran-") as directory:
        pathlib.Path(directory, "prefix").mkdir()
        done = launch(program, launcher, ranks, directory)
    print(done.stdout, done.stderr, flush=True)
    check(done.returncode == 0, program, "returned", done.returncode)
    check(done.stdout.count(" checks passed") == int(ranks), "not all ranks came to their end")


if __name__ == "__main__":
    main()
