#!/usr/bin/python3
"""kedge-bench runs, its JSON parses, its comparison of bytes notices one wrong byte, and it leaves nothing behind.

No time is judged, as this runs on whatever machine there is; but a stage that sleeps must fail --check.

The targets in share/doc/performance.md are those of the program.

usage: bench_test.py KEDGE_BENCH MPIEXEC PERFORMANCE_MD
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

BENCH, MPIEXEC, DOCUMENT = sys.argv[1:4]
BASELINES = {"copy", "copy_cpu", "write", "read", "memory"}
SMALL = {"second", "pieces", "small", "save_small", "save_tiny", "restore_reads", "open_load_reads",
         "equal_fewer", "fewer", "fewer_reads", "equal_more", "more", "more_reads", "plan_home", "plan_memory",
         "slab_reads", "cube_reads", "cube_of_slabs_reads"}
UNITS = {"memory": "MiB", "restore_reads": "B/B", "fewer_reads": "B/B", "more_reads": "B/B", "slab_reads": "B/B",
         "cube_reads": "B/B", "fewer_prefix_reads": "B/B", "plan_home": "s", "plan_memory": "KiB"}
ALONE = BASELINES | {"blocked", "blocked_copy", "save_cpu", "restore", "open", "open_load"}
PROTECTED = ALONE | {"exchange", "protect", "protect_exchange", "checkpoint", "rebuild", "rebuild_alone"}
ROWS = {"single": ALONE, "partner": PROTECTED, "xor": PROTECTED, "rs": PROTECTED}
TAG_ROWS = {"tags_few", "tags_many", "tags_lowered"}
PREFIX_ROWS = {"disk_write", "disk_read", "disk_read_cold", "refill", "flush", "commit_flush", "fetch", "fetch_cold",
               "blocked_behind", "persistent_behind", "compute", "compute_behind", "alltoall", "alltoall_behind",
               "alltoall_capped", "alltoall_paused"}
GROWTH_ROWS = {"held", "held_later"}
FIRST_PREFIX_ROWS = {"prefix_read", "fewer_prefix", "fewer_prefix_reads"}
WITHOUT_RATIO = {"copy_cpu", "write", "tags_few", "disk_write", "memory", "held", "save_small", "save_tiny", "restore_reads",
                 "open_load_reads", "compute", "alltoall", "equal_fewer", "fewer_reads", "equal_more",
                 "more_reads", "prefix_read", "fewer_prefix_reads", "plan_home", "plan_memory", "slab_reads",
                 "cube_reads", "cube_of_slabs_reads"}
SIZE = 4 << 20


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def launch(directory, *arguments, ranks=4):
    for name in ("store", "prefix"):
        (directory / name).mkdir(exist_ok=True)
    environment = dict(os.environ)
    done = subprocess.run(
        ["timeout", "--kill-after=5", "150", MPIEXEC,
         "-n", str(ranks), BENCH, "--store", directory / "store", "--prefix",
         directory / "prefix", "--size", str(SIZE), "--rounds", "2", *arguments],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    left = sorted(str(path) for name in ("store", "prefix") for path in (directory / name).iterdir())
    check(not left, "left behind:", left, done.stdout)
    return done


def measures(directory, schemes, *arguments, nodes=4):
    results = directory / "results.json"
    done = launch(directory, "--scheme", ",".join(schemes), "--json", results, *arguments)
    check(done.returncode == 0, done.stdout)
    print(done.stdout)
    found = json.loads(results.read_text())
    check((found["ranks"], found["nodes"], found["bytes_per_rank"]) == (4, nodes, SIZE), found)
    check([table["scheme"] for table in found["tables"]] == schemes, found)
    persistent = "--persistent" in arguments
    check(("the prefix lies on" in done.stdout) == ("disk" in found) == persistent, done.stdout)
    for number, table in enumerate(found["tables"]):
        rows = {row["key"]: row for row in table["rows"]}
        wanted = ROWS[table["scheme"]] | (SMALL if number == 0 else set()) | (PREFIX_ROWS if persistent else set())
        wanted |= TAG_ROWS if "--tags" in arguments else set()
        wanted |= GROWTH_ROWS | FIRST_PREFIX_ROWS if persistent and number == 0 else set()
        check(set(rows) == wanted, sorted(rows))
        for row in rows.values():
            is_sound(row, found["targets"], done.stdout)
        if number == 0:
            # These count: they are what they are on any machine.
            check(1 <= rows["restore_reads"]["value"]["max"] <= 1.02, rows["restore_reads"])
            for key in ["fewer_reads", "more_reads"] + (["fewer_prefix_reads"] if persistent else []):
                check(1 <= rows[key]["value"]["max"] <= 1.03, rows[key])
            check(rows["slab_reads"]["verdict"] == rows["cube_reads"]["verdict"] == "reached", rows)
            check(2 <= rows["open_load_reads"]["value"]["min"] <= 2.02, rows["open_load_reads"])
        check(all(rows[key]["bytes"] == 4 * SIZE for key in {"write", "small"} & set(rows)), rows)
    return found


def is_sound(row, targets, printed):
    value = row["value"]
    check(value["min"] <= value["median"] <= value["max"], row)
    check(len(row["all_values"]) == (1 if row["unit"] == "MiB" else 2), row)
    if row["key"] != "rebuild_alone":  # a difference: noise can make it negative
        check(value["min"] > 0, row)
    if "gib_per_s" in row:
        check(math.isclose(row["gib_per_s"], row["bytes"] / (1 << 30) / value["median"]), row)
    check(("ratio" in row) != (row["key"] in WITHOUT_RATIO), row)
    if "target" in row:
        check(any((row["key"], row.get("against", ""), row["target"]) ==
                  (target["row"], target["against"], target["at_most"]) for target in targets), row)
        check(row["verdict"] in printed, row)
    check(row["what"] in printed, row, "is not in the table")


def checks(directory):
    """Two rounds are too few: that is no pass, whatever they were like. A stage that sleeps misses whatever W was."""
    check(launch(directory, "--check", "--scheme", "xor").returncode in (1, 2), "passed")
    slow = launch(directory, "--check", "--scheme", "xor", "--slow", "protect:3", "--rounds", "1", "--json", directory / "slow.json")
    check(slow.returncode == 1, slow.stdout)
    found = json.loads((directory / "slow.json").read_text())
    rows = {row["key"]: row for row in found["tables"][0]["rows"]}
    check(found["exit_code"] == 1 and rows["protect"]["verdict"] == "MISSED", rows["protect"])
    check(rows["protect"]["value"]["min"] > 3 > rows["blocked"]["value"]["median"], rows)
    check(launch(directory, "--scheme", "xor", "--slow", "protect:1", "--rounds", "1").returncode == 0, "judged without --check")


def are_written_down(targets):
    """The first four columns of the document's table have exactly these."""
    wanted = []
    for target in targets:
        scheme = target["scheme"] or "any"
        scheme += f", {target['parity']} of {target['members']}" if target["members"] else ""
        scheme += ", over a network" if target["messages"] == "network" else ""
        to = f"`{target['against']}`" if target["against"] else UNITS[target["row"]]
        wanted.append(f"| `{target['row']}` | {scheme} | {to} | {target['at_most']:g} |")
    section = pathlib.Path(DOCUMENT).read_text(encoding="utf-8").split("## Targets")[1].split("\n## ")[0]
    found = ["|".join(line.split("|")[:5]) + "|" for line in section.splitlines() if line.startswith("| `")]
    check(found == wanted, "performance.md has", found, "instead of", wanted)


def notices_a_wrong_byte(directory):
    done = launch(directory, "--spoil", "--json", directory / "none.json")
    check(done.returncode == 3 and "what came back differs" in done.stdout, done.stdout)
    check(not (directory / "none.json").exists(), "figures of a run that gave wrong bytes")


def refuses(directory, *arguments):
    done = launch(directory, *arguments)
    check(done.returncode == 3 and "kedge-bench: " in done.stdout, arguments, done.stdout)


def measures_a_gpu(directory):
    """Or says that there is none."""
    arguments = [BENCH, "--device", "--bytes", "1048576", "--rounds", "1", "--store", str(directory)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=100, check=False)
    check(done.returncode == 0 or (done.returncode == 77 and done.stdout.startswith("skipped: ")), done)
    done = subprocess.run(["timeout", "60", MPIEXEC, "-n", "2", *arguments], capture_output=True, text=True, check=False)
    check(done.returncode != 0 and "run it without mpirun" in done.stderr, done)


with tempfile.TemporaryDirectory(prefix="kedge-bench-test-") as name:
    here = pathlib.Path(name)
    are_written_down(measures(here, ["xor", "rs", "single"])["targets"])
    measures(here, ["xor"], "--persistent", "--tags", "30")
    measures(here, ["partner"], "--nodes", "2", "--set-size", "2", nodes=2)
    checks(here)
    notices_a_wrong_byte(here)
    measures_a_gpu(here)
    refuses(here, "--size", "4MiX")
    refuses(here, "--scheme", "xor,none")
    refuses(here, "--slow", "nothing")
    refuses(here, "--nodes", "3")
    refuses(here, "--store", str(here / "not-there"))
print("passed")
