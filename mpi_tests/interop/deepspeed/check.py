#!/usr/bin/env python3
"""Runs DeepSpeed's own checkpoint tests with DeepSpeed's engine and with Kedge's, and compares.

    check.py CHECKOUT [--engines stock kedge kedge-alone] [--runs 3] [--only EXPRESSION] [--work DIRECTORY [--keep]]
        [--in-order]

kedge-alone is the engine with "torch_files": false.

CHECKOUT is a clone of DeepSpeed at the installed version's tag; only its tests are used. Run it with a Python that has
kedge (PYTHONPATH=build/python), deepspeed, torch, pytest<8.4, pytest-forked and transformers. Some of DeepSpeed's tests
fail by chance, so each that fails is run again, at most --runs times; a test that passes once with DeepSpeed's engine must
pass once with Kedge's. With --in-order those of ZeRO-3 do not fail by chance: DeepSpeed's gathers are waited for, whatever
the engine (share/doc/deepspeed.md). Writes table.md into the work directory; the last line is "N passed, N failed".
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITE = "unit/checkpoint"
TEST_TIMEOUT_S = 60
#: What cannot pass without files for torch.load, by a part of the test's name, and why.
NOT_ALONE = {
    "niversal": "converts the checkpoint by a tool that calls torch.load on its files",
    "elastic_checkpoint_change_dp": "loads with another number of ranks",
    "convert_zero_checkpoint_to_fp32": "calls zero_to_fp32, which calls torch.load on the files",
    "checkpoint_shared_weights": "calls zero_to_fp32, which calls torch.load on the files",
    "save_exclude_": "calls torch.load on the files",
    "checkpoint_moe": "calls torch.load on the files of the experts",
}


def environment(work, engine, outcomes, in_order=False):
    path = [HERE, *(Path(part).resolve() for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "DS_ACCELERATOR": "cpu", "LOCAL_SIZE": "8",
            "OMP_NUM_THREADS": "1", "DS_UNITTEST_TIMEOUT": str(TEST_TIMEOUT_S), "DS_BUILD_OPS": "0", "PYTHONHASHSEED": "0",
            "CHECK_ENGINE": engine, "CHECK_WORK": str(work), "CHECK_OUTCOMES": str(outcomes),
            "CHECK_IN_ORDER": "yes" if in_order else "no"}


def outcomes_in(path):
    """The last outcome of each test, and the words of a failure."""
    found = {}
    if path.exists():
        for line in path.read_text().splitlines():
            test, outcome, words = json.loads(line)
            if found.get(test, ("",))[0] != "failed" or outcome == "begun":
                found[test] = (outcome, words)
    return found


def build_operations():
    """What DeepSpeed compiles when it is first used, before any test has a time limit: a build that is killed leaves a
    lock on which all later ones wait."""
    code = """from deepspeed.accelerator import get_accelerator
for name in ("ShareMemCommBuilder", "CPUAdamBuilder", "FusedAdamBuilder"):
    get_accelerator().create_op_builder(name).load()"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "DS_ACCELERATOR": "cpu"})


def require_kedge(tests, work):
    """Before an hour of tests that would use DeepSpeed's engine."""
    tried = subprocess.run([sys.executable, "-c", "import kedge.deepspeed"], cwd=tests, stderr=subprocess.PIPE, text=True,
                           env=environment(work, "kedge", work / "none"))
    if tried.returncode != 0:
        sys.exit(f"{tried.stderr.strip().splitlines()[-1]}: set PYTHONPATH to the directory python of a build with KEDGE_PYTHON")


def watch(running, outcomes):
    """Until it ends. Where a test hangs, pytest's own end may hang too: then it is killed."""
    begun = time.time()
    while running.poll() is None:
        time.sleep(1)
        last = outcomes.stat().st_mtime if outcomes.exists() else begun
        if time.time() - max(last, begun) > TEST_TIMEOUT_S + 30:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def run(tests, work, engine, number, wanted, only, in_order):
    """Runs these tests (if None, all that fit the expression) until each has an outcome: a test that hangs ends pytest."""
    outcomes = work / f"{engine}-{number}.jsonl"
    outcomes.unlink(missing_ok=True)
    while True:
        done = outcomes_in(outcomes)
        left = None if wanted is None else [test for test in wanted if test not in done]
        if left == []:
            break
        shutil.rmtree(work / "runs", ignore_errors=True)
        arguments = left or [SUITE, *(["-k", only] if only else []), *(f"--deselect={test}" for test in done)]
        with (work / f"{engine}-{number}.log").open("a") as log:
            running = subprocess.Popen([sys.executable, "-m", "pytest", "-q", "-p", "kedge_in_deepspeed",
                                        "-p", "no:cacheprovider", f"--basetemp={work}/tmp", *arguments], cwd=tests,
                                       env=environment(work, engine, outcomes, in_order), stdout=log,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            watch(running, outcomes)
        now = outcomes_in(outcomes)
        if len(now) == len(done):
            break  # nothing is left
        for test, (outcome, _) in now.items():
            if outcome == "begun":
                with outcomes.open("a") as file:
                    file.write(json.dumps([test, "failed", f"no end within {TEST_TIMEOUT_S} s"]) + "\n")
    return outcomes_in(outcomes)


def best(tests, work, engine, arguments):
    """The best outcome of each test in that many runs; what passed or was skipped is not run again."""
    kept = work / f"{engine}.json"
    if arguments.keep and kept.exists():
        print(f"{engine}: as in {kept}", flush=True)
        return json.loads(kept.read_text())
    wanted = None
    only = arguments.only
    if engine == "kedge-alone":
        left_out = " or ".join(NOT_ALONE)
        only = f"({only}) and not ({left_out})" if only else f"not ({left_out})"
    found = {}
    for number in range(1, arguments.runs + 1):
        found.update(run(tests, work, engine, number, wanted, only, arguments.in_order))
        wanted = [test for test, (outcome, _) in found.items() if outcome == "failed"]
        print(f"{engine}, run {number}: {len(found)} tests, {len(wanted)} failed so far", flush=True)
        if engine != "stock" and not (work / f"{engine}-made").exists():
            sys.exit(f"{engine} was never used: see {work}/{engine}-1.log")
        if not wanted:
            break
    kept.write_text(json.dumps(found))
    return found


def count(found, outcome):
    return sum(1 for kind, _ in found.values() if kind == outcome)


def table(results):
    lines = ["| engine | passed | skipped | failed | lost |", "|---|---|---|---|---|"]
    for engine, found in results.items():
        lines.append(f"| {engine} | {count(found, 'passed')} | {count(found, 'skipped')} | {count(found, 'failed')} | "
                     f"{len(lost(results, engine))} |")
    return "\n".join(lines) + "\n"


def lost(results, engine):
    """What passes with DeepSpeed's engine and not with this one."""
    return [test for test, (outcome, _) in results.get("stock", {}).items()
            if outcome == "passed" and not is_left_out(test, engine) and results[engine].get(test, ("missing",))[0] != "passed"]


def is_left_out(test, engine):
    return engine == "kedge-alone" and any(part in test for part in NOT_ALONE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--engines", nargs="+", default=["stock", "kedge"], choices=["stock", "kedge", "kedge-alone"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", help="an expression of pytest's -k")
    parser.add_argument("--work", type=Path, help="a directory for logs; by default a new one")
    parser.add_argument("--keep", action="store_true", help="do not run again an engine of which --work has the outcomes")
    parser.add_argument("--in-order", action="store_true", help="wait for DeepSpeed's gathers")
    arguments = parser.parse_args()
    work = (arguments.work or Path(tempfile.mkdtemp(prefix="kedge-deepspeed-"))).resolve()
    work.mkdir(parents=True, exist_ok=True)
    # A copy: beside the checkout's own package, pytest and its processes would import different ones.
    tests = work / "tests"
    shutil.rmtree(tests, ignore_errors=True)
    shutil.copytree(arguments.checkout / "tests", tests)

    if arguments.engines != ["stock"]:
        require_kedge(tests, work)
    build_operations()
    results = {engine: best(tests, work, engine, arguments)
               for engine in arguments.engines}
    (work / "table.md").write_text(table(results))
    print(table(results), end="")
    if "kedge-alone" in results:
        for part, reason in NOT_ALONE.items():
            count_of = sum(part in test for test in results.get("stock", {}))
            print(f"left out of kedge-alone: {count_of} tests *{part}*: {reason}")
    failed = 0
    if "stock" in results and count(results["stock"], "passed") == 0:
        failed += 1
        print(f"nothing passed with DeepSpeed's own engine: see {work}/stock-1.log")
    for engine in arguments.engines:
        for test in lost(results, engine):
            failed += 1
            words = results[engine].get(test, ("", "not run"))[1].strip().splitlines()
            print(f"{engine} lost {test}: {words[-1] if words else 'no words'}")
    passed = sum(count(found, "passed") for engine, found in results.items() if engine != "stock")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
