#!/usr/bin/python3
"""kedge drop asks at a terminal: only a yes removes, and the command is the one that the job's log ends with, also where
paths have spaces and quotes.

usage: drop_at_terminal_test.py HEAT2D MPIEXEC KEDGE
"""
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

HEAT2D, MPIEXEC, KEDGE = sys.argv[1:4]
LIMIT_S = 60
END_OF_FILE, INTERRUPT = "\x04", "\x03"


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


class Case:
    def __init__(self, directory):
        self.directory = directory
        self.prefix = directory / "pre fix"
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
            "KEDGE_PERSISTENT_EVERY": "1",
            "KEDGE_STORE_PATH": str(directory / "node's own"), "KEDGE_PERSISTENT_PATH": str(self.prefix),
            "PATH": f"{pathlib.Path(KEDGE).parent}:{os.environ['PATH']}"}

    def run(self, steps):
        """What was printed, and the command that the log ends with."""
        done = subprocess.run(
            ["timeout", "--kill-after=5", str(LIMIT_S), MPIEXEC,
             "-n", "2", HEAT2D, "--steps", str(steps), "--every", "10"],
            cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        command = re.search(r"to free it: (kedge drop .*)$", done.stderr.splitlines()[-1])
        check(command, "the log does not end with the command:", done.stderr)
        return done.stdout, command[1]

    def at_terminal(self, command, answer):
        """(exit code, or minus the signal; what the terminal shows), answering its question."""
        pid, terminal = pty.fork()
        if pid == 0:
            try:
                os.execvpe("sh", ["sh", "-c", command], self.environment)
            finally:
                os._exit(126)
        shown, answered, deadline = "", False, time.monotonic() + LIMIT_S
        while True:
            readable, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
            check(readable, "it does not end; so far:", shown)
            try:
                some = os.read(terminal, 4096)
            except OSError:  # its other side is closed
                some = b""
            if not some:
                break
            shown += some.decode()
            if not answered and shown.endswith("[y/N] "):
                os.write(terminal, answer.encode())
                answered = True
        os.close(terminal)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        check(answered, "it did not ask:", code, shown)
        return code, shown.replace("\r\n", "\n")

    def files(self):
        return sorted((str(path), path.stat().st_size) for path in self.directory.rglob("*"))


def all_but_yes_remove_nothing(case, command):
    for answer in ("n\n", "\n", END_OF_FILE, "no\n", "yellow\n", INTERRUPT):
        before = case.files()
        code, shown = case.at_terminal(command, answer)
        if answer == INTERRUPT:
            check(code in (-2, 130), code, shown)
        else:
            check(code == 2 and shown.endswith("\nkedge: nothing was removed\n"), repr(answer), code, shown)
        check(case.files() == before, repr(answer), "removed something:", shown)


def stores_are_freed(case):
    _, command = case.run(20)
    store = next((case.directory / "node's own").iterdir())
    all_but_yes_remove_nothing(case, command)
    printed, again = case.run(30)
    check(again == command and printed.startswith("resumed step-000020 20 in place "), again, printed)
    code, shown = case.at_terminal(command, "y\n")
    check(code == 0 and f"freed {store}\n" in shown and not store.exists(), code, shown)
    printed, _ = case.run(40)
    check(printed.startswith("resumed step-000030 30 fetched "), printed)


def runs_are_removed_and_name_their_stores(case):
    root = case.directory / "node's own"
    case.environment["TMPDIR"] = str(root)  # one of the default places, where stores are looked for
    command = f"cd '{case.directory}' && kedge drop --run main --prefix 'pre fix'"
    all_but_yes_remove_nothing(case, command)
    code, shown = case.at_terminal(command, "yes\n")
    check(code == 0 and not list(case.prefix.glob("step-*")), code, shown)
    store = re.search(r"to free it: (kedge drop .*)$", shown, re.M)
    check(store and len(list(root.iterdir())) == 1, "it does not name the store:", shown)
    code, shown = case.at_terminal(store[1], "y\n")
    check(code == 0 and not list(root.iterdir()), code, shown)


def main():
    # No link in its own name: paths are compared with canonical ones.
    with tempfile.TemporaryDirectory(prefix="kedge-drop-", dir=os.path.realpath(tempfile.gettempdir())) as name:
        case = Case(pathlib.Path(name))
        for part in (stores_are_freed, runs_are_removed_and_name_their_stores):
            part(case)
            print("ok", part.__name__)


if __name__ == "__main__":
    main()
