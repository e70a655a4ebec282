#!/usr/bin/python3
"""heat2d is asked to end: by a signal to one rank, by one to the launcher, by its deadline. It takes a last checkpoint,
ends by itself with exit code 0, and the next start goes on from exactly that step.

usage: heat2d_ends_test.py HEAT2D MPIEXEC [--launcher-forwards SIGNAL]    (a signal that MPIEXEC passes on to its ranks)
"""
import os
import pathlib
import re
import signal
import sys
import tempfile
import time

import heat2d_kill_test as killed
from heat2d_kill_test import Job, check, processes_of

FOREVER = str(10**9)  # steps
MORE = 20
SIGNAL = sys.argv[sys.argv.index("--launcher-forwards") + 1] if "--launcher-forwards" in sys.argv else None


def wait_until(condition, what):
    deadline = time.monotonic() + killed.LAUNCH_LIMIT_S
    while not condition():
        check(time.monotonic() < deadline, "timed out waiting for", what)
        time.sleep(0.01)


def running(job):
    """The launch, and the processes of its ranks once all of them compute."""
    launched = job.launch("--every", "0", "--steps", FOREVER)
    wait_until(lambda: "no checkpoints yet" in job.log() or "opened step-" in job.log(), "the start: " + job.log())
    wait_until(lambda: len(processes_of(launched.pid)) == job.ranks, "its ranks")
    time.sleep(0.3)
    return launched, processes_of(launched.pid)


def stopped_at(job):
    words = job.printed("stopped")
    check(words, "the loop did not end by itself:", job.log()[-2000:])
    return int(words.split()[0])


def goes_on(job, step):
    """The next start begins where this one ended, and ends with the field of a job that was never asked to."""
    check(job.run("--every", "0", "--steps", str(step + MORE)) == 0, job.log())
    resumed, computed, checksum = job.result()
    check((resumed, computed) == (step, MORE), "resumed from", resumed, "and computed", computed, "instead of", step, MORE)
    whole = Job(job.directory.parent / (job.directory.name + "-whole"))
    check(whole.run("--every", "0", "--steps", str(step + MORE)) == 0, whole.log())
    check(whole.result()[2] == checksum, "the field differs from that of the undisturbed run")


def check_last(job, step, level):
    check(re.findall(r"committed step-(\d+) \(generation \d+\): [^,]*, ([^,]*),", job.log())[-1] ==
          (f"{step:06}", level), "the last checkpoint is not that of the last step:", job.log())


def one_rank_gets_a_signal(directory):
    job = Job(directory / "one-rank", persistent_every=10, exit_signals="SIGTERM:SIGUSR1")
    launched, ranks = running(job)
    os.kill(ranks[-1], signal.SIGTERM)
    check(launched.wait() == 0, "exit code", launched.returncode, job.log())
    check(" received SIGTERM" in job.log() and "taking the last checkpoint now, up to level persistent" in job.log(), job.log())
    step = stopped_at(job)
    check_last(job, step, "local and persistent")
    goes_on(job, step)
    print("ok a signal to one rank:", step, "steps", flush=True)


def every_rank_gets_it_behind_the_application(directory):
    job = Job(directory / "all-ranks", persistent_every=10, exit_signals="SIGTERM", pipeline_mode="background")
    launched, ranks = running(job)
    for rank in ranks:
        os.kill(rank, signal.SIGTERM)
    check(launched.wait() == 0, "exit code", launched.returncode, job.log())
    step = stopped_at(job)
    check(re.search(rf"committed step-{step:06} .* and persistent, ", job.log()), job.log())
    goes_on(job, step)
    print("ok a signal to all ranks, flushed in the background:", step, "steps", flush=True)


def the_launcher_gets_it(directory):
    job = Job(directory / "launcher", persistent_every=10, exit_signals=SIGNAL)
    launched, ranks = running(job)
    launcher = int(pathlib.Path(f"/proc/{ranks[0]}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(launcher, getattr(signal, SIGNAL))
    check(launched.wait() == 0, "exit code", launched.returncode, job.log())
    step = stopped_at(job)
    check(f" received {SIGNAL}" in job.log(), job.log())
    goes_on(job, step)
    print("ok", SIGNAL, "to the launcher:", step, "steps", flush=True)


def the_deadline_nears(directory):
    deadline = int(time.time()) + 6
    job = Job(directory / "deadline", persistent_every=10, deadline=deadline, exit_margin_s=1)
    check(job.run("--every", "0", "--steps", FOREVER) == 0, job.log())
    check(time.time() < deadline, "it ended", time.time() - deadline, "s after the deadline")
    check(time.time() > deadline - 4, "it ended", deadline - time.time(), "s before the deadline: too early")
    step = stopped_at(job)
    check_last(job, step, "local and persistent")
    check(re.search(r"the job ends in [^:]*: taking the last checkpoint now, up to level persistent \(estimated [^)]* from recent ones\)", job.log()),
          job.log())
    goes_on(without_deadline(job), step)
    print("ok a deadline:", step, "steps", flush=True)


def without_deadline(job):
    """The same job, which nobody is going to end any more."""
    del job.environment["KEDGE_DEADLINE"]
    return job


def who_did_not_ask_for_it_is_killed(directory):
    job = Job(directory / "not-asked")
    launched, ranks = running(job)
    os.kill(ranks[0], signal.SIGTERM)
    check(launched.wait() != 0, "SIGTERM was caught though no option names it")
    check(job.printed("stopped") is None, job.log())
    print("ok without exit.signals a signal kills", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="kedge-heat2d-ends-") as place:
        place = pathlib.Path(place)
        one_rank_gets_a_signal(place)
        every_rank_gets_it_behind_the_application(place)
        if SIGNAL:
            the_launcher_gets_it(place)
        the_deadline_nears(place)
        who_did_not_ask_for_it_is_killed(place)
