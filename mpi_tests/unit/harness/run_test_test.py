"""run_test_test.py CTEST SOURCE_DIR: what ctest is told of tests that ran in one process (mpi_tests/run_test), which one
core they get (on_one_core), and what share/kedge/progress shows of a build."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CTEST, SOURCE = sys.argv[1], Path(sys.argv[2])
TESTS = SOURCE / "mpi_tests"
WORDS = {"Ok": "[       OK ] {} (1 ms)", "Bad": "[  FAILED  ] {} (0 ms)",
         "Each/Bad.Of/7": "[  FAILED  ] {}, where GetParam() = 7 (12 ms)", "Skipped": "[  SKIPPED ] {} (0 ms)"}
#: Prints as GoogleTest does, all of its tests or the one that is named, and ends as told.
PROGRAM = """#!/usr/bin/python3
import os, signal, sys, time
words, how, ran = {words!r}, {how!r}, {ran!r}
named = [one.split("=", 1)[1] for one in sys.argv[1:] if one.startswith("--gtest_filter=")]
with open(ran, "a") as file:
    file.write(" ".join(named or ["all"]) + "\\n")
with open(ran) as file:
    is_first = len(file.readlines()) == 1
failed = False
for name, word in words.items():
    if named and name not in named:
        continue
    print("[ RUN      ] " + name, flush=True)
    if how != "well" and name == "S.Bad" and not named:
        if how == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        if how == "quits":
            sys.exit(0)
        if how == "hangs":
            time.sleep(60)
    if how == "flaky" and name == "S.Bad" and not is_first:
        word = "[       OK ] {{}} (1 ms)"
    if "GTEST_COLOR" in os.environ and not named:
        word = "\\033[0;32m" + word
    print("said by " + name)
    if "FAILED" in word and not named:
        print("[  SKIPPED ] is what the test itself prints")
    print(word.format(name), flush=True)
    failed = failed or "FAILED" in word
if not named:
    if how == "tears":
        print("[  FAILED  ] S: SetUpTestSuite or TearDownTestSuite\\n\\n 1 FAILED TEST SUITE")
    print("[==========] 4 tests from 2 test suites ran. (13 ms total)")
    print("[  SKIPPED ] 1 test, listed below:")
    print("[  SKIPPED ] S.Skipped")
    print("[  FAILED  ] 2 tests, listed below:")
sys.exit(1 if failed or how == "leaves" else 0)
"""


def check(condition, *what):
    if not condition:
        sys.exit("\n".join(str(one) for one in what))


def outcomes(directory, how, words, *arguments, limit_s=2):
    """(what ctest says of each test, which tests were started by themselves, all that was printed)"""
    program, results, ran = directory / "program", directory / "results", directory / "ran"
    program.write_text(PROGRAM.format(words=words, how=how, ran=str(ran)))
    program.chmod(0o755)
    ran.write_text("")
    lines = [f'add_test(program.together "{TESTS}/run_test" --together {limit_s} "{results}" "{program}")']
    for name in words:  # as gtest_discover_tests has it
        lines.append(f'add_test([=[{name}]=] "{TESTS}/run_test" "{results}" "{program}" "--gtest_filter={name}")')
        lines.append(f'set_tests_properties([=[{name}]=] PROPERTIES DEPENDS program.together '
                     'SKIP_REGULAR_EXPRESSION [=[\\[  SKIPPED \\]]=])')
    (directory / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")
    done = subprocess.run([CTEST, "--verbose", *arguments], cwd=directory, text=True, timeout=60, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, "GTEST_COLOR": "yes"})
    found = dict(re.findall(r"Test +#\d+: (\S+) \.*[ *]*(Passed|Failed|Skipped)", done.stdout))
    check((done.returncode == 0) == ("Failed" not in found.values()), done.stdout)
    return found, ran.read_text().split("\n")[:-1], done.stdout


def names(*some):
    return {one if "/" in one else f"S.{one}": WORDS[one] for one in some}


def tests_of_one_process(directory):
    every = names(*WORDS)
    found, ran, output = outcomes(directory, "well", every)
    check(found == {"program.together": "Passed", "S.Ok": "Passed", "S.Bad": "Failed", "Each/Bad.Of/7": "Failed",
                    "S.Skipped": "Skipped"}, found, output)
    check(ran == ["all"], ran)
    check(output.count("said by S.Bad") == 1 and output.count("said by Each/Bad.Of/7") == 1, output)
    check("said by S.Ok" not in output, output)
    # The result of an earlier ctest is none.
    found, ran, output = outcomes(directory, "well", every, "-R", "^S.Ok$")
    check(found == {"S.Ok": "Passed"} and ran == ["S.Ok"], found, ran, output)


def a_process_that_does_not_end_well(directory):
    for how, status in (("crashes", "139"), ("hangs", "124")):
        found, ran, output = outcomes(directory, how, names("Ok", "Bad", "Skipped"))
        check(found == {"program.together": "Failed", "S.Ok": "Passed", "S.Bad": "Failed", "S.Skipped": "Skipped"}, how, output)
        check(ran == ["all", "S.Bad", "S.Skipped"], how, ran)
        check(f"status {status} " in output and "during S.Bad; unfinished" in output, how, output)
    # It ends, with 0, before all tests have run.
    found, ran, output = outcomes(directory, "quits", names("Ok", "Bad", "Skipped"))
    check(found["program.together"] == "Failed" and ran == ["all", "S.Bad", "S.Skipped"], found, ran, output)
    # Its tests passed, and something after them did not: that is red, too; also beside a test that failed.
    found, _, output = outcomes(directory, "leaves", names("Ok", "Skipped"))
    check(found == {"program.together": "Failed", "S.Ok": "Passed", "S.Skipped": "Skipped"}, output)
    found, _, output = outcomes(directory, "tears", names("Ok", "Bad"))
    check(found == {"program.together": "Failed", "S.Ok": "Passed", "S.Bad": "Failed"}, output)
    found, _, output = outcomes(directory, "well", {})
    check(found == {"program.together": "Failed"}, output)


def asked_again(directory):
    """A test that failed once is not made good by a repetition, and a repetition can pass."""
    found, ran, output = outcomes(directory, "flaky", names("Ok", "Bad"), "--repeat", "until-fail:3")
    check(found["S.Bad"] == "Failed" and ran[:3] == ["all"] * 3, found, ran, output)
    found, ran, output = outcomes(directory, "flaky", names("Ok", "Bad"), "--repeat", "until-pass:3")
    check(found["S.Bad"] == "Passed" and ran == ["all", "S.Bad"], found, ran, output)


def two_at_once(directory):
    """The second begins while the first one's tests run, and ends before them."""
    program, results = directory / "program", directory / "results"
    program.write_text("#!/bin/sh\necho '[ RUN      ] S.A'\nsleep $WAIT\necho \"[ $WORD ] S.A (1 ms)\"\n"
                       "echo '[==========] 1 test ran.'\n[ \"$WORD\" != ' FAILED ' ]\n")
    program.chmod(0o755)
    (directory / "CTestTestfile.cmake").write_text(
        f'add_test(together "{TESTS}/run_test" --together 9 "{results}" "{program}")\n'
        f'add_test(S.A "{TESTS}/run_test" "{results}" "{program}" "--gtest_filter=S.A")\n'
        'set_tests_properties(S.A PROPERTIES DEPENDS together)\n')
    calls = [subprocess.Popen([CTEST], cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "WAIT": wait, "WORD": word})
             for wait, word in (("1.5", " FAILED "), ("0.5", "      OK"))]
    said = [call.communicate(timeout=30)[0] for call in calls]
    check("***Failed" in said[0] and "1 tests failed" in said[0] and "100% tests passed" in said[1], *said)
    subprocess.run([CTEST], cwd=directory, stdout=subprocess.DEVNULL, env={**os.environ, "WAIT": "0", "WORD": "      OK"})
    check(len(list(results.iterdir())) == 1, "what earlier runs left is not removed")


def one_core(directory):
    tool, locks = str(TESTS / "on_one_core"), str(directory / "locks")
    cores = [sys.executable, "-c", "import os, sys; print(len(os.sched_getaffinity(0)), *sys.argv[1:])", "a b", "c"]

    def run(*start, **environment):
        return subprocess.run([*start, *cores], text=True, timeout=20, capture_output=True,
                              env={**os.environ, **environment}).stdout

    every = f"{len(os.sched_getaffinity(0))} a b c\n"
    check(run(tool, locks) == "1 a b c\n", run(tool, locks))
    held = [subprocess.Popen([tool, locks, "sleep", "30"]) for _ in os.sched_getaffinity(0)]
    try:
        check(run(tool, locks) == "1 a b c\n", "with all cores in use")
    finally:
        for one in held:
            one.kill()
            one.wait()
    for nowhere in ("/dev/null/none", "/proc"):
        check(run(tool, nowhere) == every, "where it can make no locks:", nowhere)
    bare = directory / "bin"
    bare.mkdir()
    for name in ("mkdir", "sed", "tr"):
        (bare / name).symlink_to(f"/usr/bin/{name}")
    check(run(tool, locks, PATH=str(bare)) == every, "without taskset")


def progress(directory):
    log = directory / "log"
    for text, shown in ((r"[1/2] a\n[2/2] b\n", "2 of 2 steps"), (r"[ 50%%] a\n[100%%] b\n", "100 %"), (r"a\n", "")):
        done = subprocess.run([SOURCE / "share/kedge/progress", log, "sh", "-c", f"printf '{text}'; echo e >&2; exit 3"],
                              text=True, timeout=20, capture_output=True)
        check(done.returncode == 3 and shown in done.stdout and bool(done.stdout) == bool(shown), text, done)
        check(log.read_text().count("\n") == text.count("n") + 1, text, log.read_text())


with tempfile.TemporaryDirectory(prefix="run test ") as name:
    for test in (tests_of_one_process, a_process_that_does_not_end_well, asked_again, two_at_once, one_core, progress):
        (Path(name) / test.__name__).mkdir()
        test(Path(name) / test.__name__)
