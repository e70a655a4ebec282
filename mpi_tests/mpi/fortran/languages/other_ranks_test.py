#!/usr/bin/python3
"""What so many ranks saved in one language goes on with another number of ranks in another one, and in several of them
at once.

usage: other_ranks_test.py MPIEXEC CPP C FORTRAN
"""
import os
import re
import subprocess
import sys
import tempfile

MPIEXEC = sys.argv[1]
PROGRAMS = dict(zip(("C++", "C", "Fortran"), sys.argv[2:5]))
STARTS = [{"C++": 4}, {"Fortran": 3}, {"C": 5}, {"C++": 2}, {"C++": 1, "C": 1, "Fortran": 1}, {"Fortran": 1}]


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def start(directory, languages):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
        "KEDGE_STORE_PATH": f"{directory}/store/{{node}}", "KEDGE_PERSISTENT_PATH": f"{directory}/prefix",
        "KEDGE_PERSISTENT_EVERY": "0", "KEDGE_TEST_RANKS_PER_NODE": "6", "KEDGE_COMM_TIMEOUT_S": "20"}
    launch = []
    for language, ranks in languages.items():
        launch += [*([":"] if launch else []), "-n", str(ranks), PROGRAMS[language]]
    done = subprocess.run(["timeout", "--kill-after=5", "60", MPIEXEC, *launch], env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, languages, "exit code", done.returncode, done.stdout)
    return sorted(re.findall(r"^rank (\d+): (.*)$", done.stdout, re.M))


def main():
    with tempfile.TemporaryDirectory(prefix="kedge-languages-") as directory:
        before = "none"
        for step, languages in enumerate(STARTS):
            ranks = sum(languages.values())
            said = start(directory, languages)
            check(said == [(str(rank), before) for rank in range(ranks)], languages, "after", before, said)
            print("ok", languages, before, flush=True)
            before = f"step {step + 1} of {ranks} ranks, good"


if __name__ == "__main__":
    main()
