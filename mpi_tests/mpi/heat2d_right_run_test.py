#!/usr/bin/python3
"""Whose checkpoints heat2d goes on with: other inputs and other directories beside it, its own directory moved, linked
to, copied, removed.

usage: heat2d_right_run_test.py HEAT2D MPIEXEC KEDGE
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HEAT2D, MPIEXEC, KEDGE = sys.argv[1:4]
LAUNCH_LIMIT_S = 60


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def picture(path, hot_row):
    rows = [" ".join(["255" if row == hot_row else "0"] * 16) for row in range(16)]
    path.write_text("P2\n16 16\n255\n" + "\n".join(rows) + "\n")


class Cases:
    """Directories with a case each, and one place for the stores of all of them, as on a node."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.stores = self.root / "node local"
        self.stores.mkdir()

    def case(self, name, hot_row=3):
        directory = self.root / name
        directory.mkdir()
        picture(directory / "input.pgm", hot_row)
        return directory

    def run(self, directory, steps, *arguments, every=10, **variables):
        """(exit code, resumed step or None, checksum or None, log)"""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
            "KEDGE_PERSISTENT_EVERY": "1",
            "KEDGE_STORE_PATH": str(self.stores)} | {f"KEDGE_{k.upper()}": str(v) for k, v in variables.items()}
        done = subprocess.run(
            ["timeout", "--kill-after=5", str(LAUNCH_LIMIT_S), MPIEXEC,
             "-n", "2", HEAT2D, "input.pgm", "--steps", str(steps), "--every", str(every),
             *arguments],
            cwd=directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        printed = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines() if " " in line)
        resumed = next((int(line.split()[2]) for line in done.stdout.splitlines() if line.startswith("resumed ")), None)
        return done.returncode, resumed, printed.get("checksum"), done.stderr

    def kedge(self, *arguments):
        return subprocess.run([KEDGE, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LAUNCH_LIMIT_S)


def first_line(log):
    return next((line for line in log.splitlines() if line.startswith("[kedge]")), "")


def sweep_in_one_directory(cases):
    case = cases.case("sweep")
    code, resumed, first, log = cases.run(case, 20)
    check(code == 0 and resumed is None, code, resumed, log)
    check("run 'main', incarnation 1" in first_line(log) and "starts from scratch" in first_line(log), log)
    picture(case / "input.pgm", 12)
    code, _, checksum, log = cases.run(case, 20)
    check(code == 78 and checksum is None, "a second input was computed from the first one's end:", code, log)
    for part in ("input.pgm (", "KEDGE_RUN", "KEDGE_START=accept"):
        check(part in log, part, "is not in", log)
    code, resumed, second, log = cases.run(case, 20, run="second")
    check(code == 0 and resumed is None and second not in (None, first), code, resumed, second, log)
    picture(case / "input.pgm", 3)
    code, resumed, checksum, log = cases.run(case, 20, run="main")
    check((code, resumed, checksum) == (0, 20, first), code, resumed, checksum, log)


def two_directories_of_one_name(cases):
    one, two = cases.case("one", 3), cases.case("two", 12)
    _, _, first, _ = cases.run(one, 20, run="same")
    code, resumed, second, log = cases.run(two, 20, run="same")
    check(code == 0 and resumed is None and second != first, code, resumed, second, first, log)
    check(cases.run(one, 20, run="same")[1:3] == (20, first), "the first directory lost its own")


def moved_linked_and_copied(cases):
    case = cases.case("here")
    undisturbed = cases.run(cases.case("undisturbed"), 40)[2]
    cases.run(case, 20)
    there = cases.root / "there, moved"
    case.rename(there)
    code, resumed, _, log = cases.run(there, 30, persistent_every=0)
    check((code, resumed) == (0, 20) and "moved here from" in first_line(log), code, resumed, log)
    link = cases.root / "link"
    link.symlink_to(there)
    copy = cases.root / "copy"
    shutil.copytree(there, copy)
    # Step 30 lies in the stores alone: those of the original.
    code, resumed, _, log = cases.run(copy, 20)
    check((code, resumed) == (0, 20) and "a copy of" in first_line(log), code, resumed, log)
    # As the shell has it that went through the link.
    code, resumed, checksum, log = cases.run(link, 40, persistent_path=link / "checkpoints")
    check((code, resumed, checksum) == (0, 30, undisturbed), code, resumed, checksum, log)


def removed_and_started_again(cases):
    case = cases.case("removed")
    first = cases.run(case, 20, persistent_every=0)[2]
    shutil.rmtree(case / "checkpoints")
    code, _, checksum, log = cases.run(case, 20)
    check(code == 78 and checksum is None, "it resumed from memory what was removed:", code, log)
    for part in ("has no record of run", "KEDGE_START=adopt", "KEDGE_START=fresh", "kedge drop"):
        check(part in log, part, "is not in", log)
    store = log[log.rindex("(" + str(cases.stores)) + 1:log.rindex(")")]
    check(pathlib.Path(store).is_dir(), store)
    code, resumed, _, log = cases.run(case, 20, start="adopt")
    check((code, resumed) == (0, 20), code, resumed, log)
    shutil.rmtree(case / "checkpoints")
    refused = cases.kedge("drop", store)
    check(refused.returncode == 2 and "--yes" in refused.stderr and pathlib.Path(store).is_dir(), refused)
    dropped = cases.kedge("drop", "--yes", store)
    check(dropped.returncode == 0 and store in dropped.stdout and not pathlib.Path(store).exists(), dropped)
    code, resumed, checksum, log = cases.run(case, 20)
    check((code, resumed, checksum) == (0, None, first), code, resumed, checksum, log)
    code, resumed, checksum, log = cases.run(case, 20, start="fresh")
    check((code, resumed, checksum) == (0, None, first) and "starts over" in first_line(log), code, resumed, log)
    gone = cases.kedge("drop", "--yes", "--run", "main", "--prefix", str(case / "checkpoints"))
    check(gone.returncode == 0 and "checkpoints," in gone.stdout, gone)
    check(not list((case / "checkpoints").glob("step-*")) and not (case / "checkpoints/.kedge/main").exists(), gone)


def main():
    # No link in its own name: paths are compared with canonical ones.
    with tempfile.TemporaryDirectory(dir=os.path.realpath(tempfile.gettempdir())) as directory:
        cases = Cases(directory)
        for part in (sweep_in_one_directory, two_directories_of_one_name, moved_linked_and_copied,
                     removed_and_started_again):
            part(cases)
            print("ok", part.__name__)


if __name__ == "__main__":
    main()
