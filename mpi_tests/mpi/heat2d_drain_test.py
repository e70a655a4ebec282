#!/usr/bin/python3
"""heat2d killed right after a commit: `kedge drain`, by any number of processes, rebuilds, protects and takes it to the
prefix, once; a job at work, here or elsewhere, is left alone, one that died or ended is not in the way, several runs
are all drained, and so it is node by node. Then all stores are wiped, and the job goes on as if nothing had happened.

usage: heat2d_drain_test.py HEAT2D MPIEXEC KEDGE
"""
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

import heat2d_node_loss_test as nodes
from heat2d_node_loss_test import DEATH, EVERY, HEAT2D, MPIEXEC, NEWEST, RANKS, STEPS, Job, check, killed_job, printed

KEDGE = sys.argv[3]
LIMIT_S = 60
RANK = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"  # in a script


def killed(directory, *arguments, **variables):
    job = Job(directory, "xor", **variables)
    code, output = job.launch("--die-at", str(DEATH), "--die-node", "0", *arguments)
    check(code != 0, "nobody died:", output)
    return job


def killed_without_flushes(directory):
    """One job for all that begin with it: it is run once, and put back as it was."""
    before = directory / "before"
    if not before.exists():
        killed(directory / "job", persistent_every=0)
        shutil.copytree(directory / "job", before, symlinks=True)
    shutil.rmtree(directory / "job")
    shutil.copytree(before, directory / "job", symlinks=True)
    return Job(directory / "job", "xor", persistent_every=0)


def drain(job, *arguments, launcher=MPIEXEC, **environment):
    """(exit code, standard output, standard error)"""
    done = subprocess.run([KEDGE, "drain", "--launcher", str(launcher), *map(str, arguments)],
                          env=job.environment | environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LIMIT_S)
    return done.returncode, done.stdout, done.stderr


def drained(outcome):
    """The step."""
    code, out, error = outcome
    check(code == 0, code, out, error)
    found = re.match(r"drained step-(\d+) \(generation \d+\)(?: of \d+ ranks)?, [\d.]+ [KM]iB: "
                     r"(/.*/prefix/step-\1\.\d+-[0-9a-f]{8})\n$", out)
    check(found, out, error)
    check((pathlib.Path(found[2]) / "checkpoint.h5").exists(), out)
    return int(found[1])


def refused(outcome, code, *words):
    found, out, error = outcome
    check(found == code and out == "", found, out, error)
    for one in words:
        check(one in " ".join(error.split()), one, "is not said:", error)


def goes_on_from_the_prefix(job, wanted, newest=NEWEST):
    shutil.rmtree(job.directory / "store")
    code, output = job.launch()
    check(code == 0, output)
    resumed = printed(output, "resumed") or ""
    check(resumed.startswith(f"step-{newest:06} {newest} fetched "), resumed, output)
    check(printed(output, "checksum") == wanted, "the field differs from that of the undisturbed run", output)


def by_any_number_of_processes(directory, wanted):
    # Half as many as nodes and as ranks, one for all, as many, and more than there are ranks.
    for processes in (RANKS // 2, 1, RANKS + 1) + ((2, 3, 5, RANKS) if nodes.FULL else ()):
        job = killed_without_flushes(directory)
        check(drained(drain(job, "-n", processes)) == NEWEST, "not the newest")
        listed = sorted(path.name for path in (job.directory / "prefix").glob("step-*"))
        code, out, error = drain(job, "-n", 2)
        check(code == 0 and out.startswith("nothing to drain: step-") and "is already on the prefix" in out, code, out, error)
        check(listed == sorted(path.name for path in (job.directory / "prefix").glob("step-*")), "something was added")
        goes_on_from_the_prefix(job, wanted)
        print(f"ok drained by {processes} of {RANKS}", flush=True)


def lost_nodes(directory, wanted):
    job = killed_job(directory / "lost", "xor", [1], persistent_every=0)
    # Without what told the job's nodes apart: the stores are there, and a start would not look into them.
    refused(drain(job, "-n", 2, KEDGE_TEST_RANKS_PER_NODE="0"), 2, "with the job's options")
    check(drained(drain(job, "-n", 2)) == NEWEST, "not the newest")
    goes_on_from_the_prefix(job, wanted)
    print("ok a lost node is rebuilt", flush=True)

    job = killed_job(directory / "older", "xor", [1, 2], persistent_every=2)  # the first commit is on the prefix
    code, out, error = drain(job, "-n", 2)
    older = 2 * EVERY  # every second commit is flushed
    check(code == 0 and f"step-{older:06}" in out and "is already on the prefix" in out, code, out, error)
    print("ok too many nodes lost: what is on the prefix is the newest", flush=True)

    job = killed_job(directory / "gone", "xor", [1, 2], persistent_every=0)
    refused(drain(job, "-n", 2), 1, "step-000020", "xor")
    print("ok too many nodes lost, and nothing on the prefix", flush=True)


def newer_than_what_was_flushed(directory, wanted):
    """The job had flushed an older one; and died before it committed this one's protection."""
    job = killed(directory / "flushed", "--every", "6", persistent_every=2, redundancy_every=2)
    newest = DEATH // 6 * 6  # the fourth
    check(drain(job, "-n", 4)[1].startswith(f"nothing to drain: step-{newest:06}"), "")
    job = killed(directory / "local", "--every", "8", persistent_every=2, redundancy_every=2)
    check(drained(drain(job, "-n", 4)) == 24, "a commit that was only local is not the one that was drained")
    goes_on_from_the_prefix(job, wanted, 24)
    print("ok a commit that is newer than the flushed one, and not protected", flush=True)


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def on_nodes_that_see_their_own_store(directory, wanted):
    """Nodes by KEDGE_NODE, as processes on real nodes: each sees the store of its own alone."""
    job = Job(directory / "nodes", "xor", persistent_every=0, test_ranks_per_node=0)
    job_rank = script(directory / "job-rank", f'KEDGE_NODE=n$(({RANK} / 2)) exec "$@"\n')
    drain_process = script(directory / "drain-process", f'KEDGE_NODE=n$(({RANK} + ${{FIRST:-0}})) exec "$@"\n')
    done = subprocess.run([MPIEXEC, "-n", str(RANKS), job_rank, HEAT2D, "--steps", str(STEPS), "--every", str(EVERY),
                           "--die-at", str(DEATH), "--die-rank", "0"], env=job.environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=LIMIT_S)
    check(done.returncode != 0, done.stdout, done.stderr)
    launcher = script(directory / "launcher", f'shift; n=$1; shift; exec "{MPIEXEC}" -n "$n" "{drain_process}" "$@"\n')
    # Two of four nodes are there: too few.
    refused(drain(job, "-n", 2, launcher=launcher), 1, "step-000020")
    check(drained(drain(job, "-n", 3, launcher=launcher, FIRST="1")) == NEWEST, "not the newest")
    shutil.rmtree(job.directory / "store")
    code = subprocess.run([MPIEXEC, "-n", str(RANKS), job_rank, HEAT2D, "--steps", str(STEPS)], env=job.environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)
    check(code.returncode == 0 and printed(code.stdout, "checksum") == wanted, code.stdout, code.stderr)
    print("ok three of four nodes, each with its own store", flush=True)


def scavenge(job, *arguments):
    done = subprocess.run([KEDGE, "scavenge", *map(str, arguments)], env=job.environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=LIMIT_S)
    return done.returncode, done.stdout, done.stderr


def said(outcome, *words):
    code, out, error = outcome
    check(code == 0 and error == "", code, out, error)
    for one in words:
        check(one in out, one, "is not said:", out)
    return out


def store_of(job, node):
    return next((job.directory / "store" / f"node{node}").iterdir())


def node_by_node(directory, wanted):
    """Without a launcher: each node copies its own store, and the last one flushes."""
    job = killed_without_flushes(directory)
    prefix, flushed = job.directory / "prefix", f"flushed step-{NEWEST:06} "
    for node in range(nodes.NODES - 1):
        said(scavenge(job, store_of(job, node)), f"{2 * node + 2} of {RANKS} containers have been copied")
    said(scavenge(job, store_of(job, 0)), f"{RANKS - 2} of {RANKS} containers have been copied")  # again: nothing is doubled
    check(not list(prefix.glob("step-*")), "a part was flushed")
    said(scavenge(job, store_of(job, nodes.NODES - 1)), flushed)
    check(not list((prefix / ".kedge/main/scavenged").glob("node-*")), "copies stay behind")
    for node in range(nodes.NODES):
        said(scavenge(job, store_of(job, node)), f"nothing to scavenge: step-{NEWEST:06} ")
    check(drain(job, "-n", 1)[1].startswith("nothing to drain: step-"), "")
    goes_on_from_the_prefix(job, wanted)
    print("ok scavenged node by node", flush=True)

    job = killed_without_flushes(directory)
    prefix = job.directory / "prefix"
    said(scavenge(job, "--finish", prefix), "been copied yet")
    said(scavenge(job, *(store_of(job, node) for node in (0, 3))), f"4 of {RANKS} containers have been copied")
    refused(scavenge(job, "--finish", prefix), 1, f"step-{NEWEST:06}", "xor")  # two of four: too few
    said(scavenge(job, store_of(job, 1)), f"6 of {RANKS} containers have been copied")
    # A copy that is damaged is rebuilt; not also one that is lost: a set survives the loss of one.
    said(scavenge(job, "--finish", prefix), flushed)
    goes_on_from_the_prefix(job, wanted)
    print("ok scavenged with a lost node", flush=True)

    job = killed_without_flushes(directory)
    prefix = job.directory / "prefix"
    said(scavenge(job, *(store_of(job, node) for node in range(nodes.NODES - 1))), "6 of")
    copy = next((prefix / ".kedge/main/scavenged").glob("node-*/kedge-*/rank-*.h5"))
    with open(copy, "r+b") as file:
        file.seek(copy.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    said(scavenge(job, store_of(job, nodes.NODES - 1)), flushed)
    goes_on_from_the_prefix(job, wanted)
    print("ok a copy that is damaged is rebuilt", flush=True)

    job = killed_without_flushes(directory)
    (job.directory / "prefix").rename(job.directory / "elsewhere")
    refused(scavenge(job, store_of(job, 0)), 2, "there is no such prefix")
    refused(scavenge(job, job.directory), 2, "not a store")
    (job.directory / "elsewhere").rename(job.directory / "prefix")
    said(scavenge(job, store_of(job, 0)), "containers have been copied")
    # The run, with what was copied of it, can be removed.
    done = subprocess.run([KEDGE, "drop", "--yes", "--prefix", job.directory / "prefix", "--run", "main"],
                          capture_output=True, text=True, timeout=LIMIT_S)
    check(done.returncode == 0 and not list((job.directory / "prefix/.kedge").iterdir()), done)
    print("ok scavenge says what is wrong", flush=True)


def ranks_of(job):
    """Pids of the processes that run heat2d for this job."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            is_heat2d = (entry / "cmdline").read_bytes().split(b"\0")[0] == HEAT2D.encode()
            if is_heat2d and f"{job.directory}/prefix".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def a_job_that_runs_is_left_alone(directory):
    job = Job(directory / "runs", "xor", persistent_every=0)
    seen = []

    def try_to_drain(line):
        if "committed step-000010" in line and not seen:
            ranks = ranks_of(job)
            for pid in ranks:
                os.kill(pid, signal.SIGSTOP)  # it keeps its stores
            seen.append(scavenge(job, store_of(job, 0)))
            seen.append(drain(job, "-n", 1))
            for pid in ranks:
                os.kill(pid, signal.SIGCONT)

    code, output = job.launch("--steps", "20000", "--every", "10", "--die-at", "200", "--die-rank", "0", watch=try_to_drain)
    check(seen, output)
    for outcome in seen:
        refused(outcome, 75, "is in use by a job (incarnation 1, rank ", "the store on node ")
    check("overtaken" not in output and "committed step-000200" in output, output)
    print("ok a job that runs is left alone", flush=True)


def a_job_that_was_started_again_is_not_overtaken(directory, wanted):
    """It may run where nobody sees its stores."""
    job = killed_without_flushes(directory)
    here = job.environment["KEDGE_STORE_PATH"]
    said(scavenge(job, *(store_of(job, node) for node in range(nodes.NODES - 1))), f"6 of {RANKS} containers")
    job.environment["KEDGE_STORE_PATH"] = f"{directory}/again/elsewhere/{{node}}"
    code, output = job.launch()
    check(code != 0 and "unrecoverable" in output, output)
    check("kedge scavenge --finish" in output and "newer checkpoints than this start finds" in output,
          "the start does not say what waits there:", output)
    job.environment["KEDGE_STORE_PATH"] = here
    refused(drain(job, "-n", 1), 75, "started again (incarnation 2)", "--overtake")
    refused(scavenge(job, "--finish", job.directory / "prefix"), 75, "started again (incarnation 2)", "--overtake")
    said(scavenge(job, "--finish", job.directory / "prefix", "--overtake"), f"flushed step-{NEWEST:06} ")
    # A drain, and the finish of a scavenge, are no starts of the job.
    check(drain(job, "-n", 1)[1].startswith("nothing to drain: step-"), "")
    goes_on_from_the_prefix(job, wanted)
    print("ok a job that was started again is not overtaken", flush=True)


def a_job_that_died_before_its_first_checkpoint_is_not_waited_for(directory, wanted):
    """A crash loop in one allocation: attempts of which the later ones die at once."""
    job = killed_without_flushes(directory)
    for _ in range(2):
        code, output = job.launch("--die-at", str(NEWEST + 1), "--die-rank", "0")
        check(code != 0, output)
    check(drained(drain(job, "-n", 2)) == NEWEST, "what the first start committed is not flushed")
    goes_on_from_the_prefix(job, wanted)
    print("ok a job that died before its first checkpoint is not waited for", flush=True)


def several_runs(directory):
    """One prefix, two runs: one is chosen, or all are drained."""
    job = Job(directory / "several", "xor", persistent_every=0)
    for run in ("cold", "warm"):
        code, output = Job(directory / "several", "xor", persistent_every=0, run=run).launch(
            "--die-at", str(DEATH), "--die-node", "0")
        check(code != 0, output)
    refused(drain(job, "-n", 1), 2, "the runs 'cold', 'warm'", "--run", "--all-runs")
    refused(drain(job, "-n", 1, "--all-runs", "--run", "hot"), 2, "no run on this prefix has checkpoints")
    check(drained(drain(job, "-n", 1, "--run", "cold")) == NEWEST, "not the newest")
    code, out, error = drain(job, "-n", 2, "--all-runs")
    check(code == 0 and re.match(rf"cold: nothing to drain: step-{NEWEST:06} .*\nwarm: drained step-{NEWEST:06} ", out),
          code, out, error)
    # Where one of them is what a job without a name would go on with, the others are not forgotten.
    code, output = Job(directory / "several", "xor", persistent_every=0, run="main").launch("--steps", str(EVERY))
    check(code == 0, output)
    code, out, error = drain(job, "-n", 1)
    check(code == 0 and "the prefix also has 'cold', 'warm' (--run, --all-runs)" in out, code, out, error)
    print("ok several runs of one prefix", flush=True)


def what_is_incomplete_stays(directory, wanted):
    """A drain that steps back removes nothing: the node that is missing may come back."""
    job = Job(directory / "back", "xor", persistent_every=0, redundancy_every=2, store_keep=2,
              store_on_exit="remove_if_persistent")
    code, output = job.launch("--die-at", "35", "--die-node", "0")  # step 30 is local, step 20 protected
    check(code != 0, output)
    away = job.directory / "away"
    (job.directory / "store/node2").rename(away)
    code, out, error = drain(job, "-n", 2)
    check(code == 0 and out.startswith("drained step-000020") and "incomplete" in out, code, out, error)
    shutil.rmtree(job.directory / "store/node2", ignore_errors=True)
    away.rename(job.directory / "store/node2")
    check(drained(drain(job, "-n", 3)) == 30, "what was incomplete is gone")
    goes_on_from_the_prefix(job, wanted, 30)

    job = Job(directory / "copies-back", "xor", persistent_every=0, redundancy_every=2, store_keep=2)
    code, output = job.launch("--die-at", "35", "--die-node", "0")
    check(code != 0, output)
    said(scavenge(job, *(store_of(job, node) for node in (0, 1, 3))), f"6 of {RANKS} containers")
    code, out, error = scavenge(job, "--finish", job.directory / "prefix")
    check(code == 0 and "flushed step-000020" in out and "the copies are kept" in out, code, out, error)
    check("skipped step-000030" in error, "it does not say why:", error)
    said(scavenge(job, store_of(job, 2)), "flushed step-000030")
    goes_on_from_the_prefix(job, wanted, 30)
    print("ok what is incomplete stays until the missing node is back", flush=True)


def damage_on_the_prefix_is_told(directory):
    job = killed_without_flushes(directory)
    check(drained(drain(job, "-n", 2)) == NEWEST, "")
    next((job.directory / "prefix").glob("step-*/data/0/rank-1.h5")).unlink()
    refused(drain(job, "-n", 2), 1, f"step-{NEWEST:06}", "damaged there", "keep the stores")
    refused(scavenge(job, store_of(job, 0)), 1, f"step-{NEWEST:06}", "damaged there", "keep the store")
    print("ok what is damaged on the prefix is not taken for safe", flush=True)


def two_calls_for_one_store(directory, wanted):
    job = killed_without_flushes(directory)
    calls = [subprocess.Popen([KEDGE, "scavenge", str(store_of(job, node))], env=job.environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
             for node in list(range(nodes.NODES)) * 3]
    words = [(*call.communicate(timeout=LIMIT_S), call.returncode) for call in calls]
    for out, error, code in words:
        check(code == 0 or (code == 75 and "another kedge scavenge is copying this store" in " ".join(error.split())),
              code, out, error)
    check(list((job.directory / "prefix").glob(f"step-{NEWEST:06}*/checkpoint.h5")), "nobody flushed:", words)
    check(not list((job.directory / "prefix/.kedge/main/scavenged").glob(".part-*")), "a part stays behind")
    goes_on_from_the_prefix(job, wanted)
    print("ok several calls for the same stores at once", flush=True)


def wrong_calls(directory):
    job = Job(directory / "wrong", "xor")
    refused(drain(job, "-n", 1), 2, "there is no such prefix")
    (job.directory / "prefix").mkdir(parents=True)
    refused(drain(job, "-n", 1), 2, "no run 'main'", "the first line of the job's log")
    check(job.launch("--steps", "20")[0] == 0, "")
    refused(drain(job, "-n", 1, "--run", "other"), 2, "no run 'other'")
    (job.directory / "prefix/.kedge/other.ocean").mkdir()
    refused(drain(job, "-n", 1, "--run", "other"), 2, "runs of parts of it are: 'other.ocean'", "--run")
    shutil.rmtree(job.directory / "store")
    refused(drain(job, "-n", 1), 2, "no store of run 'main' is here", "the newest on the prefix is step-000020")
    done = subprocess.run([KEDGE, "drain", "--launcher", "no-such-launcher"], env=job.environment, capture_output=True,
                          text=True, timeout=LIMIT_S)
    check(done.returncode == 2 and "--launcher" in done.stderr, done)
    print("ok wrong calls say what is wrong", flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="heat2d-drain-") as name:
        directory = pathlib.Path(name)
        code, output = Job(directory / "undisturbed", "xor").launch()
        check(code == 0, output)
        wanted = printed(output, "checksum")
        by_any_number_of_processes(directory, wanted)
        lost_nodes(directory, wanted)
        newer_than_what_was_flushed(directory, wanted)
        on_nodes_that_see_their_own_store(directory, wanted)
        node_by_node(directory, wanted)
        a_job_that_was_started_again_is_not_overtaken(directory, wanted)
        a_job_that_died_before_its_first_checkpoint_is_not_waited_for(directory, wanted)
        several_runs(directory)
        what_is_incomplete_stays(directory, wanted)
        damage_on_the_prefix_is_told(directory)
        two_calls_for_one_store(directory, wanted)
        a_job_that_runs_is_left_alone(directory)
        wrong_calls(directory)


if __name__ == "__main__":
    main()
