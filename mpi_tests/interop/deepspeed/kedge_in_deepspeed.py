"""Plugin of pytest: DeepSpeed's tests with the engine that CHECK_ENGINE names. Notes each outcome in a file."""

import json
import multiprocessing
import os

WORK = os.environ["CHECK_WORK"]

multiprocessing.set_forkserver_preload(["kedge_in_fork_server"])


def pytest_runtest_setup(item):
    place = os.path.join(WORK, "runs", str(abs(hash(item.nodeid.rsplit("::", 1)[0]))))
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(WORK, "current"), "w") as file:
        file.write(place)


def pytest_runtest_logstart(nodeid, location):
    note(nodeid, "begun")


def pytest_runtest_logreport(report):
    if report.failed:
        note(report.nodeid, "failed", str(report.longrepr)[-4000:])
    elif report.skipped:
        note(report.nodeid, "skipped")
    elif report.when == "call":
        note(report.nodeid, "passed")


def note(test, outcome, words=""):
    with open(os.environ["CHECK_OUTCOMES"], "a") as file:
        file.write(json.dumps([test, outcome, words]) + "\n")
