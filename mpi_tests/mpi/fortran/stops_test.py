#!/usr/bin/python3
"""A failure that a Fortran program does not ask for ends it on all ranks: with its message, not with 0, and soon; or is
reported by a later call.

usage: stops_test.py PROGRAM LAUNCHER
"""
import pathlib
import re
import sys
import tempfile
import time

from launch import check, launch

PROGRAM, LAUNCHER = sys.argv[1:3]
RANKS, SOON_S = 4, 60


def ended(directory, manner, words, went_on):
    pathlib.Path(directory, manner, "prefix").mkdir(parents=True)
    begin = time.monotonic()
    done = launch(PROGRAM, LAUNCHER, RANKS, f"{directory}/{manner}", manner, log_level="off")
    taken_s = time.monotonic() - begin
    print(f"{manner}: {taken_s:.1f} s, returned {done.returncode}\n{done.stderr}", flush=True)
    check(done.returncode == 78, manner, "returned", done.returncode, "and would fail the same way again")
    check("came to its end" not in done.stdout, manner, "went on")
    check(done.stdout.count("went on") == went_on, manner, "went on on", done.stdout.count("went on"), "ranks")
    messages = re.findall(r"^kedge: (.*)", done.stderr, re.M)
    check(messages and all(re.search(words, message) for message in messages), manner, "says", messages)
    check(taken_s < SOON_S, manner, "took", taken_s, "seconds")
    return messages


def main():
    with tempfile.TemporaryDirectory(prefix="kedge-fortran-stops-") as directory:
        said = ended(directory, "all", r"^invalid_argument.*a tag with spaces", 0)
        check(len(said) == 1, "all ranks failed alike, and not one of them says so but", len(said))
        ended(directory, "one", r"^bad_state", 0)
        ended(directory, "unset", r"^invalid_argument.*kedge_options_load first", 0)
        ended(directory, "early", r"^bad_state.*save", 0)
        ended(directory, "late", r"^bad_state.*load", 0)
        ended(directory, "save", r"^invalid_argument on rank 1", RANKS)
        ended(directory, "load", r"^not_found on rank 1.*another", RANKS)


if __name__ == "__main__":
    main()
