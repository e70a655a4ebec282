#!/usr/bin/python3
"""A program that 8 ranks saved goes on with 6, 1 and 12: from the node-local stores, with a node lost, and from the
prefix; and ends with the same result as a run that nothing happened to.

usage: other_ranks_test.py [--few] MPIEXEC PROGRAM [ARGUMENT ...]   (--few: each number of ranks once;
       KEDGE_TEST_FULL=1: more losses, in any case)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

IS_FEW = sys.argv[1] == "--few"
MPIEXEC, *PROGRAM = sys.argv[1 + IS_FEW:]
FULL = os.environ.get("KEDGE_TEST_FULL") == "1"
SAVED_BY = 8
DEATH = 25
LAUNCH_LIMIT_S = 90


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def launch(directory, ranks, ranks_per_node, *more):
    """(exit code, output)"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
        "KEDGE_STORE_PATH": f"{directory}/store/{{node}}", "KEDGE_PERSISTENT_PATH": f"{directory}/prefix",
        "KEDGE_PERSISTENT_EVERY": "1", "KEDGE_TEST_RANKS_PER_NODE": str(ranks_per_node),
        "KEDGE_PIPELINE_MODE": "inline", "KEDGE_LOG_LEVEL": "info"}
    begin = time.monotonic()
    job = subprocess.run(
        ["timeout", "--kill-after=5", str(LAUNCH_LIMIT_S), MPIEXEC, "-n", str(ranks), *PROGRAM, *more], env=environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(time.monotonic() - begin < LAUNCH_LIMIT_S, "a launch did not end within its time limit:", job.stdout)
    return job.returncode, job.stdout


def result(output):
    found = re.findall(r"^(?:end \d+ )?checksum (\S+)$", output, re.MULTILINE)
    check(found, "it printed no result:", output)
    return found[-1]


def lose_prefix(directory):
    for name in os.listdir(directory / "prefix"):
        if not name.startswith("."):
            shutil.rmtree(directory / "prefix" / name, ignore_errors=True)


def lose_stores(directory):
    shutil.rmtree(directory / "store")


def lose_node(directory):
    shutil.rmtree(directory / "store" / "node1")


# Ranks per node that save, what is lost, ranks that go on, and how many of them share a node. Nodes on which none of
# these run are lost, too.
CASES = [
    (8, "the prefix", [lose_prefix], 1, 1),
    (2, "the prefix and a node", [lose_prefix], 6, 2),
    (2, "the prefix", [lose_prefix], 12, 3),
    (2, "the stores", [lose_stores], 12, 4),
    (2, "a node", [lose_node], 6, 2),
    (2, "the stores", [lose_stores], 1, 1),
    (2, "the stores", [lose_stores], 6, 3),
    (8, "the prefix", [lose_prefix], 12, 12),
    (2, "the prefix and a node", [lose_prefix, lose_node], 12, 3),
    (2, "all nodes but one", [], 1, 1),
]
QUICK = CASES[:6]
FEW = [
    (2, "the prefix and a node", [lose_prefix], 6, 2),  # from the stores, and rebuilt
    (2, "the stores", [lose_stores], 12, 4),            # from the prefix
    (2, "all nodes but one", [], 1, 1),                 # from both together
]


def main():
    with tempfile.TemporaryDirectory(prefix="kedge-other-ranks-") as root:
        root = pathlib.Path(root)
        code, output = launch(root / "whole", SAVED_BY, 2)
        check(code == 0, output)
        expected = result(output)
        directory = root / "job"
        cases = CASES if FULL else FEW if IS_FEW else QUICK
        for saved_per_node in sorted({case[0] for case in cases}):
            code, output = launch(directory, SAVED_BY, saved_per_node, "--die-at", str(DEATH), "--die-rank", "0")
            check(code != 0, output)
            directory.rename(root / f"saved-{saved_per_node}")
        for saved_per_node, lost, losses, ranks, ranks_per_node in cases:
            shutil.copytree(root / f"saved-{saved_per_node}", directory, symlinks=True)
            for lose in losses:
                lose(directory)
            code, output = launch(directory, ranks, ranks_per_node)
            what = f"{ranks} ranks without {lost}:"
            check(code == 0, what, output)
            check(re.search(f"opened .*saved by {SAVED_BY} ranks", output), what, output)
            check(result(output) == expected, what, "another result:", output)
            shutil.rmtree(directory)


def weights_of(output):
    """CRC-32 of the final weights of each model of train_numpy.py, bit for bit."""
    found = dict(re.findall(r"model (\d+): checksum ([0-9a-f]{8})", output))
    check(len(found) == 24, "models are missing:", output)
    return found


def main_of_models():
    """train_numpy.py, whose models are independent: none may differ in a bit from those of a run that nothing happened to."""
    with tempfile.TemporaryDirectory(prefix="kedge-other-ranks-") as root:
        root = pathlib.Path(root)
        code, output = launch(root / "whole", 2, 2)
        check(code == 0, output)
        expected = weights_of(output)
        directory = root / "job"
        code, output = launch(directory, SAVED_BY, 2, "--die-at", str(DEATH))
        check(code != 0 and "checksum" not in output, output)
        directory.rename(root / "saved")
        quick = [CASES[1], CASES[3], CASES[-1]]  # rebuilt in the stores; from the prefix; from both together
        for _, lost, losses, ranks, ranks_per_node in [case for case in CASES if case[0] == 2] if FULL else quick:
            shutil.copytree(root / "saved", directory, symlinks=True)
            for lose in losses:
                lose(directory)
            code, output = launch(directory, ranks, ranks_per_node)
            what = f"{ranks} ranks without {lost}:"
            check(code == 0, what, output)
            check(re.search(f"opened .*saved by {SAVED_BY} ranks", output) and "resumed at step 20" in output, what, output)
            check(weights_of(output) == expected, what, "other weights:", output)
            shutil.rmtree(directory)


if __name__ == "__main__":
    main_of_models() if any(part.endswith("train_numpy.py") for part in PROGRAM) else main()
