#!/usr/bin/python3
"""heat2d is suspended: all of its processes are stopped for longer than comm.timeout_s, while some wait in a call for
one that was stopped before, and continued, one a little later than the others. It ends as if nothing had been: under
MPI_THREAD_MULTIPLE, over TCP, and with everything inside its calls.

usage: heat2d_suspended_test.py HEAT2D MPIEXEC [THREAD_LEVEL]   (thread_level.c as a shared library)
"""
import os
import pathlib
import signal
import sys
import tempfile
import time

from heat2d_kill_test import Job, check, processes_of

THREAD_LEVEL = sys.argv[3] if len(sys.argv) > 3 else None
TIMEOUT_S, STOPPED_S, LATE_S = 6, 7, 1  # a busy machine may be late by some seconds
STEPS = 10**9  # until a signal comes


def send(kind, processes):
    for process in processes:
        os.kill(process, kind)


def committed_more(job, than, what):
    deadline = time.monotonic() + 30
    while len(job.steps_logged("committed")) <= than:
        check(time.monotonic() < deadline, what, job.log()[-2000:])
        time.sleep(0.01)
    return len(job.steps_logged("committed"))


def suspended(directory, name, threads=None, **options):
    job = Job(directory / name, ranks=3, comm_timeout_s=TIMEOUT_S, exit_signals="SIGUSR2", test_ranks_per_node=1,
              store_path=f"{directory}/{name}/store/{{node}}", persistent_every=5, persistent_keep=2, **options)
    if threads:
        job.environment |= {"LD_PRELOAD": THREAD_LEVEL, "KEDGE_TEST_THREADS": threads}
    launched = job.launch("--steps", str(STEPS), "--every", "20")
    committed_more(job, 1, "the start")
    ranks = processes_of(launched.pid)
    check(len(ranks) == 3, ranks)
    for turn in range(2):
        send(signal.SIGSTOP, ranks[:1])
        time.sleep(LATE_S)  # the others wait for it
        send(signal.SIGSTOP, ranks[1:])
        time.sleep(STOPPED_S)
        before = len(job.steps_logged("committed"))
        send(signal.SIGCONT, ranks[1:])
        time.sleep(LATE_S / 2)
        send(signal.SIGCONT, ranks[:1])
        committed_more(job, before + 1, f"{name}: it did not go on, turn {turn}:")
    send(signal.SIGUSR2, ranks[2:])
    check(launched.wait() == 0, name, "exit code", launched.returncode, job.log()[-2000:])
    check("timeout" not in job.log(), job.log()[-2000:])
    if threads == "funneled":
        check("background work sends over TCP" in job.log(), job.log())
    print("ok", name, flush=True)


with tempfile.TemporaryDirectory(prefix="kedge-suspended-") as top:
    suspended(pathlib.Path(top), "inline", pipeline_mode="inline")
    suspended(pathlib.Path(top), "background", pipeline_mode="background")
    if THREAD_LEVEL:
        suspended(pathlib.Path(top), "tcp", "funneled", pipeline_mode="background")
