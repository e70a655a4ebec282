#!/usr/bin/python3
"""kedge-bench runs, its JSON parses, its comparison of bytes notices one wrong byte, and it leaves nothing behind.

No time is judged: this runs on whatever machine there is.

usage: bench_test.py KEDGE_BENCH MPIEXEC
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

BENCH, MPIEXEC = sys.argv[1:3]
BASELINES = {"copy", "write", "read"}
ROWS = {"xor": BASELINES | {"blocked", "protect", "checkpoint", "open", "open_load", "rebuild"},
        "single": BASELINES | {"blocked", "open", "open_load"}}
PREFIX_ROWS = {"disk_write", "disk_read", "flush", "commit_flush", "fetch"}


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def launch(folder, *arguments, ranks=4):
    for name in ("store", "prefix"):
        (folder / name).mkdir(exist_ok=True)
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        ["timeout", "--kill-after=5", "150", MPIEXEC, "--oversubscribe", "--bind-to", "none", "--mca",
         "mpi_yield_when_idle", "1", "-n", str(ranks), BENCH, "--store", folder / "store", "--prefix",
         folder / "prefix", "--size", "4MiB", "--rounds", "2", *arguments],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    left = sorted(str(path) for name in ("store", "prefix") for path in (folder / name).iterdir())
    check(not left, "left behind:", left, done.stdout)
    return done


def measures(folder, scheme, *arguments):
    results = folder / f"{scheme}.json"
    done = launch(folder, "--scheme", scheme, "--json", results, *arguments)
    check(done.returncode == 0, done.stdout)
    print(done.stdout)
    found = json.loads(results.read_text())
    check(found["ranks"] == 4 and found["bytes_per_rank"] == 4 << 20 and found["scheme"] == scheme, found)
    rows = {row["key"]: row for row in found["rows"]}
    check(set(rows) == ROWS[scheme] | (PREFIX_ROWS if arguments else set()), sorted(rows))
    for key, row in rows.items():
        seconds = row["seconds"]
        check(0 < seconds["min"] <= seconds["median"] <= seconds["max"] and len(row["all_seconds"]) == 2, key, seconds)
        check(math.isclose(row["gib_per_s"], 4 * (4 << 20) / (1 << 30) / seconds["median"]), key, row)
        check(key in ("write", "disk_write") or row["ratio"]["median"] > 0, key, row)
        check(row["what"] in done.stdout, key, "is not in the table")
    check(("too noisy to judge" in done.stdout) == (found["too_noisy"] or found.get("disk", {}).get("too_noisy", False)),
          done.stdout)
    check(("the prefix lies on" in done.stdout) == ("disk" in found) == bool(arguments), done.stdout)


def notices_a_wrong_byte(folder):
    done = launch(folder, "--spoil", "--json", folder / "none.json")
    check(done.returncode != 0 and "what came back differs" in done.stdout, done.stdout)
    check(not (folder / "none.json").exists(), "figures of a run that gave wrong bytes")


def refuses(folder, *arguments):
    done = launch(folder, *arguments)
    check(done.returncode != 0 and "kedge-bench: " in done.stdout, arguments, done.stdout)


with tempfile.TemporaryDirectory(prefix="kedge-bench-test-") as name:
    here = pathlib.Path(name)
    measures(here, "xor")
    measures(here, "xor", "--persistent")
    measures(here, "single", "--persistent")
    notices_a_wrong_byte(here)
    refuses(here, "--size", "4MiX")
    refuses(here, "--scheme", "rs")
    refuses(here, "--store", str(here / "not-there"))
print("passed")
