#!/usr/bin/python3
"""heat2d with a parallel filesystem: every Nth commit is flushed, what the stores cannot give comes back from the
prefix, also for another run (Source), and the job ends as if nothing had happened; a prefix that is full costs the
flush alone and is reported once.

usage: heat2d_flush_test.py HEAT2D MPIEXEC KEDGE   (KEDGE: the command that looks at checkpoints)

A prefix that fills needs a small filesystem of its own, mounted where nobody else sees it; where that is not allowed,
`not tried` and the reason are printed.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import heat2d_node_loss_test as nodes
from heat2d_node_loss_test import DEATH, EVERY, HEAT2D, MPIEXEC, NEWEST, RANKS, STEPS, Job, check, killed_job, printed

KEDGE = sys.argv[3]
PAGE = 4096


def must(outcome):
    """What was printed by a launch that ended well."""
    code, output = outcome
    check(code == 0, output)
    return output


def kedge(*arguments, **options):
    """(exit code, what was printed)"""
    done = subprocess.run([KEDGE, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, **options)
    return done.returncode, done.stdout


def levels(output):
    """[(step, whether it reached the prefix)] in the order of the log"""
    return [(int(step), "persistent" in level) for step, level in
            re.findall(r"committed step-(\d+) \(generation \d+\): [^,]*, ([^,]*),", output)]


def check_came_back(output, fetched, wanted):
    resumed = printed(output, "resumed") or ""
    check(resumed.startswith(f"step-{NEWEST:06} {NEWEST} fetched "), "resumed", resumed, output)
    check(f" {fetched} fetched" in output, "the log does not say what was fetched:", output)
    check(printed(output, "steps computed") == str(STEPS - NEWEST), output)
    check(printed(output, "checksum") == wanted, "the field differs from that of the undisturbed run", output)


def all_stores_are_wiped(directory, wanted):
    job = killed_job(directory, "auto", range(nodes.NODES), persistent_every=1)
    output = must(job.launch())
    check_came_back(output, RANKS, wanted)
    check(levels(output) == [(step, True) for step in range(NEWEST + EVERY, STEPS + 1, EVERY)], output)
    print("ok all stores wiped: fetched", flush=True)
    return job


def two_nodes_of_a_set_are_lost(directory, wanted):
    job = killed_job(directory, "xor", [1, 2], persistent_every=1)
    check_came_back(must(job.launch()), 2 * nodes.RANKS_PER_NODE, wanted)
    print("ok two nodes of each set lost: their containers fetched, the others in place", flush=True)


def the_newest_persistent_step_is_an_older_one(directory, wanted):
    """Every second commit goes to the prefix: with all stores lost it is what there is."""
    job = Job(directory / "every-second", "partner", persistent_every=2)
    code, output = job.launch("--every", "5", "--die-at", str(DEATH + 2), "--die-rank", "0")
    check(code != 0 and levels(output) == [(5, False), (10, True), (15, False), (20, True), (25, False)], output)
    shutil.rmtree(job.directory / "store")
    check_came_back(must(job.launch("--every", "5")), RANKS, wanted)
    print("ok newer steps were not persistent: fetched the newest that was", flush=True)


def the_command_shows_what_is_there(job):
    prefix = job.directory / "prefix"
    code, listed = kedge("ls", prefix)
    check(code == 0, listed)
    steps = [int(step) for step in re.findall(r"^step-(\d+) ", listed, re.M)]
    check(steps == list(range(STEPS, 0, -EVERY)), "not all are listed, newest first:", listed)
    code, listed = kedge("ls", "--json", prefix)
    check(code == 0 and len(json.loads(listed)["checkpoints"]) == len(steps), listed)

    code, shown = kedge("show", "--prefix", prefix, f"step-{NEWEST:06}")
    check(code == 0, shown)
    for pattern in (rf"ranks +{RANKS}$", r"program +heat2d$", r"temperature +float64 +384 x 512 +8 ", r"step +uint64 +scalar"):
        check(re.search(pattern, shown, re.M), pattern, "is not shown:", shown)
    code, shown = kedge("show", "--prefix", prefix, "step-000001")
    check(code == 2 and "step-000001" in shown, "a tag that is not there:", code, shown)

    tag = f"step-{NEWEST:06}"
    code, verified = kedge("verify", "--prefix", prefix, tag)
    check(code == 0 and f"{RANKS} containers" in verified, code, verified)
    container = next(prefix.glob(f"{tag}.*")) / "data/0/rank-5.h5"
    content = bytearray(container.read_bytes())
    content[len(content) // 2] ^= 1
    container.write_bytes(content)
    code, verified = kedge("verify", "--prefix", prefix, tag)
    check(code == 1 and "rank-5.h5" in verified and "temperature" in verified, code, verified)
    check("rank-4.h5" not in verified, "more is blamed than what is damaged:", verified)
    code, verified = kedge("verify", prefix)
    check(code == 1 and "rank-5.h5" in verified, code, verified)

    # And a job that needs it steps back to the one before; not to what verify warned of.
    for directory in prefix.glob("step-*"):
        if int(directory.name[5:11]) > NEWEST:
            shutil.rmtree(directory)
    shutil.rmtree(job.directory / "store")
    output = must(job.launch())
    check((printed(output, "resumed") or "").startswith(f"step-{NEWEST - EVERY:06} "), output)
    check("rank-5.h5" in output, "the log does not say why it went a step further back:", output)
    print("ok kedge ls, show and verify; a flipped byte", flush=True)


def another_run_begins_with_it(directory, wanted):
    first = Job(directory / "first", "auto", persistent_every=1)
    must(first.launch("--steps", str(NEWEST)))
    prefix = first.directory / "prefix"
    before = sorted((str(path), path.stat().st_mtime_ns) for path in prefix.rglob("*"))
    second = Job(directory / "second", "auto", persistent_every=1, run="second")
    output = must(second.launch("--from", str(prefix)))
    check((printed(output, "resumed") or "").startswith(f"step-{NEWEST:06} {NEWEST} fetched "), output)
    check(printed(output, "checksum") == wanted, output)
    check(before == sorted((str(path), path.stat().st_mtime_ns) for path in prefix.rglob("*")), "its files changed")
    output = must(second.launch("--from", str(prefix), "--steps", str(STEPS + 1)))
    check((printed(output, "resumed") or "").startswith(f"step-{STEPS:06} "), "its own commits come first:", output)
    code, output = Job(directory / "third", "auto").launch("--from", str(directory / "nowhere"))
    check(code != 0 and "not_found" in output and "nowhere" in output, output)
    check("committed" not in output, "it began from the picture instead:", output)
    print("ok a run that begins with another's checkpoint", flush=True)


def free_bytes(directory):
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize


def fill(directory, leave):
    """A file that takes all space but `leave` bytes."""
    with open(directory / "filler", "wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, free_bytes(directory) - leave)


def check_nothing_half(prefix):
    half = [str(tag) for tag in prefix.glob("step-*") if not (tag / "checkpoint.h5").exists()]
    check(not half, "left without a manifest:", half)
    code, verified = kedge("verify", prefix)
    check(code == 0, verified)


def the_prefix_is_full_before_a_flush(job, prefix):
    """It is seen before anything is written; the next start has space again."""
    fill(prefix, 64 << 10)
    listed = sorted(path.name for path in prefix.glob("step-*"))
    output = must(job.launch("--steps", "40"))
    check(levels(output) == [(30, False), (40, False)], output)
    check(output.count("protected (xor)") == 2, "what can be protected is protected all the same:", output)
    refused = re.findall(r"step-(\d+) is not on the parallel filesystem: no_space .* are needed", output)
    check(refused == ["000030"], "it is said once, not with each checkpoint:", output)
    check("the newest checkpoint, step-000040, is only in the node-local stores" in output, output)
    check(sorted(path.name for path in prefix.glob("step-*")) == listed, "something was written:", list(prefix.iterdir()))
    (prefix / "filler").unlink()
    output = must(job.launch("--steps", "50"))
    check(levels(output) == [(50, True)], output)
    check((printed(output, "resumed") or "").startswith("step-000040 40 in place "), output)
    check_nothing_half(prefix)
    print("ok a prefix that is full", flush=True)


def the_prefix_fills_during_a_flush(job, prefix, run_one_start):
    """There is space for the containers, as Kedge looks, and not for the manifest; it comes back while the job runs."""
    manifest = max(path.stat().st_size for path in prefix.glob("step-*/checkpoint.h5"))
    fill(prefix, run_one_start - (manifest + PAGE - 1) // PAGE * PAGE)
    refused = []

    def make_space(line):
        if "is not on the parallel filesystem" in line:
            refused.append(line)
            (prefix / "filler").unlink(missing_ok=True)

    output = must(job.launch("--steps", "400", watch=make_space))
    check(refused and "no_space" in refused[0], "it did not fill:", output)
    check("are needed" not in refused[0], "it was full before the flush:", refused[0])
    print(refused[0].strip())
    reached = [persistent for _, persistent in levels(output)]
    check(len(reached) == 35 and not reached[0] and reached[-1], output)
    check(reached == sorted(reached), "not each flush succeeded once there was space:", output)
    check_nothing_half(prefix)
    print(f"ok a prefix that fills: {len(refused)} refused, then {sum(reached)} of {len(reached)}", flush=True)


def a_prefix_of_its_own(directory):
    """In a mount namespace that only this process sees."""
    job = Job(directory / "small", "xor", persistent_every=1)
    job.environment["TMPDIR"] = str(directory)  # mpirun would take a directory of the root whom this user only acts
    prefix = job.directory / "prefix"
    prefix.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "none", str(prefix)], check=True)
    must(job.launch("--steps", "10"))
    free = free_bytes(prefix)
    must(job.launch("--steps", "20"))
    run_one_start = free - free_bytes(prefix)  # what one more start with one more commit takes
    the_prefix_is_full_before_a_flush(job, prefix)
    the_prefix_fills_during_a_flush(job, prefix, run_one_start)


def the_prefix_fills(directory):
    for unshare in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        probe = subprocess.run([*unshare, "mount", "-t", "tmpfs", "none", str(directory)], capture_output=True, text=True)
        if probe.returncode == 0:
            done = subprocess.run([*unshare, sys.executable, "-B", *sys.argv[:4], "--in-a-namespace", str(directory)])
            check(done.returncode == 0, "a full prefix: see above")
            return
    print("not tried: a full prefix, for no filesystem can be mounted here:", probe.stderr.strip(), flush=True)


def main():
    if sys.argv[4:5] == ["--in-a-namespace"]:
        return a_prefix_of_its_own(pathlib.Path(sys.argv[5]))
    directory = pathlib.Path(tempfile.mkdtemp(prefix="kedge-flush-"))
    try:
        wanted = printed(must(Job(directory / "undisturbed", "auto").launch()), "checksum")
        job = all_stores_are_wiped(directory, wanted)
        the_command_shows_what_is_there(job)
        two_nodes_of_a_set_are_lost(directory, wanted)
        the_newest_persistent_step_is_an_older_one(directory, wanted)
        another_run_begins_with_it(directory, wanted)
        the_prefix_fills(directory)
    finally:
        shutil.rmtree(directory)


main()
