#!/usr/bin/python3
"""heat2d with pipeline.mode = background under each level of thread support, pipeline.messages and pipeline.interface:
what sends, what the log says, and that the result and the last checkpoint are the same.

usage: thread_levels_test.py HEAT2D MPIEXEC THREAD_LEVEL   (THREAD_LEVEL: thread_level.c as a shared library)
"""
import os
import pathlib
import subprocess
import sys
import tempfile

HEAT2D, MPIEXEC, THREAD_LEVEL = sys.argv[1:4]
RANKS, STEPS, EVERY = 3, 60, 10
TCP, INLINE = "background work sends over TCP", "commits are protected and flushed inside the engine's calls"
WARNING = "[kedge] warning: "
BACKGROUND = "is local; its other stages run in the background"
INITIALIZE = "initialize MPI by MPI_Init_thread with MPI_THREAD_FUNNELED or more, or set pipeline.messages = tcp"


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def run(directory, level, **variables):
    """The log, and the checksum that was printed."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
        "KEDGE_STORE_PATH": f"{directory}/store/{{node}}", "KEDGE_PERSISTENT_PATH": f"{directory}/prefix",
        "KEDGE_PERSISTENT_EVERY": "2", "KEDGE_TEST_RANKS_PER_NODE": "1", "KEDGE_PIPELINE_MODE": "background",
        "KEDGE_LOG_LEVEL": "debug"} | {f"KEDGE_{name.upper()}": value for name, value in variables.items()}
    done = subprocess.run(
        ["timeout", "--kill-after=5", "60", MPIEXEC, "-n", str(RANKS), "env", f"LD_PRELOAD={THREAD_LEVEL}",
         f"KEDGE_TEST_THREADS={level}", HEAT2D, "--steps", str(STEPS), "--every", str(EVERY)],
        env=environment, stdin=subprocess.DEVNULL, text=True, capture_output=True)
    check(done.returncode == 0, level, variables, done.stdout, done.stderr)
    sums = [line for line in done.stdout.splitlines() if line.startswith("checksum ")]
    check(len(sums) == 1, done.stdout)
    check(f"step-{STEPS:06} is persistent" in done.stderr or "and persistent" in done.stderr, done.stderr)
    return done.stderr, sums[0]


with tempfile.TemporaryDirectory(prefix="kedge-levels-") as top:
    results = set()
    for number, (level, variables, says, silent) in enumerate([
            ("multiple", {}, [BACKGROUND], [TCP, INLINE]),
            ("multiple", {"pipeline_messages": "tcp"}, [BACKGROUND, TCP], [INLINE]),
            ("serialized", {}, [BACKGROUND, TCP], [INLINE]),
            ("funneled", {}, [BACKGROUND, TCP], [INLINE]),
            ("funneled", {"pipeline_interface": "no-such,lo"}, [BACKGROUND, TCP + ", on lo"], [INLINE]),
            ("funneled", {"pipeline_interface": "no-such"},
             [INLINE, "the ranks cannot reach each other over TCP (no-such: rank 0: this host has no address on no-such)",
              "name a network that all nodes share (pipeline.interface), initialize MPI with MPI_THREAD_MULTIPLE, or set"],
             [BACKGROUND, TCP]),
            ("funneled", {"pipeline_messages": "mpi"}, [INLINE, "MPI_THREAD_MULTIPLE, or set pipeline.messages to auto"], [BACKGROUND, TCP]),
            ("multiple", {"pipeline_mode": "auto"}, [BACKGROUND], [TCP, INLINE]),
            ("single", {}, [WARNING + INLINE, INITIALIZE], [BACKGROUND, TCP]),
            ("single", {"pipeline_mode": "auto"}, [INLINE, INITIALIZE], [BACKGROUND, TCP, WARNING + INLINE]),
            ("single", {"pipeline_messages": "tcp"}, [BACKGROUND, TCP], [INLINE])]):
        directory = pathlib.Path(top) / str(number)
        directory.mkdir()
        log, result = run(directory, level, **variables)
        for part in says:
            check(part in log, level, variables, "the log does not say", repr(part), log)
        for part in silent:
            check(part not in log, level, variables, "the log says", repr(part), log)
        results.add(result)
    check(len(results) == 1, "results differ:", results)
