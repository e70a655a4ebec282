#!/usr/bin/python3
"""What 8 ranks of heat2d saved and did not flush is on the prefix after `kedge drain` (or `kedge scavenge`), although
6, 12 or 1 ranks had opened it, rebuilt what a lost node held, and ended or died; and then 8 ranks and others go on
from there without any store. What those ranks committed themselves is drained as what it is: the newest. And a drain
on fewer nodes than a scheme needs flushes what is there.

usage: drain_other_ranks_test.py HEAT2D MPIEXEC KEDGE   (KEDGE_TEST_FULL=1: more numbers of ranks)
"""
import pathlib
import re
import shutil
import subprocess
import tempfile

import heat2d_drain_test as drains
from heat2d_drain_test import HEAT2D, MPIEXEC, check, drain, drained, printed, refused, said, scavenge

FULL = drains.nodes.FULL
SAVED_BY, STEPS, EVERY, DEATH, SAVED = 8, 40, 10, 25, 20
LIMIT_S = 90


class Job(drains.Job):
    """Of any number of ranks, on nodes of any number of ranks each."""

    def run(self, ranks, per_node, *more, **variables):
        """(exit code, output)"""
        environment = self.environment | {"KEDGE_TEST_RANKS_PER_NODE": str(per_node), "KEDGE_LOG_LEVEL": "info"} | {
            f"KEDGE_{k.upper()}": str(v) for k, v in variables.items()}
        done = subprocess.run(["timeout", "--kill-after=5", str(LIMIT_S), MPIEXEC, "-n", str(ranks), HEAT2D, "--steps",
                               str(STEPS), "--every", str(EVERY), *map(str, more)], env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout


def saved(directory, per_node=2, **variables):
    """A job of 8 ranks that died without having flushed anything."""
    job = Job(directory, "auto", persistent_every=0, test_ranks_per_node=per_node, **variables)
    code, output = job.run(SAVED_BY, per_node, "--die-at", DEATH, "--die-rank", 0)
    check(code != 0 and f"committed step-{SAVED:06}" in output, output)
    return job


def opened(job, ranks, per_node, dies=False, **variables):
    """Opens it, and ends or dies before it commits anything. Returns the log."""
    arguments = ["--die-at", SAVED, "--die-rank", 0] if dies else ["--steps", SAVED]
    code, output = job.run(ranks, per_node, *arguments, **variables)
    check((code != 0) == dies, output)
    check(re.search(f"opened step-{SAVED:06} .*saved by {SAVED_BY} ranks", output), output)
    return output


def goes_on_from_the_prefix(job, wanted, step, *sizes):
    """Each number of ranks, without any store and without what the others left on the prefix."""
    shutil.rmtree(job.directory / "store", ignore_errors=True)
    prefix, kept = job.directory / "prefix", job.directory / "kept"
    shutil.copytree(prefix, kept, symlinks=True)
    for ranks, per_node in sizes:
        code, output = job.run(ranks, per_node)
        check(code == 0, output)
        check((printed(output, "resumed") or "").startswith(f"step-{step:06} {step} "), ranks, output)
        check(printed(output, "checksum") == wanted, "the field differs from that of the undisturbed run", output)
        shutil.rmtree(job.directory / "store", ignore_errors=True)
        shutil.rmtree(prefix)
        shutil.copytree(kept, prefix, symlinks=True)
    shutil.rmtree(kept)


def only_opened(root, wanted):
    cases = [(6, 2, 2, False), (12, 3, 2, True), (1, 1, 8, False)]
    cases += [(1, 1, 8, True), (6, 2, 2, True), (12, 3, 2, False), (7, 2, 2, False)] if FULL else []
    for number, (ranks, per_node, saved_per_node, dies) in enumerate(cases):
        job = saved(root / f"opened-{number}", saved_per_node)
        opened(job, ranks, per_node, dies)
        check(not list((job.directory / "prefix").glob("step-*")), "the start flushed it")
        check(drained(drain(job, "-n", 2)) == SAVED, "not what was saved")
        goes_on_from_the_prefix(job, wanted, SAVED, (SAVED_BY, 2), (ranks, per_node))
        print(f"ok opened by {ranks} ranks, which {'died' if dies else 'ended'}, and drained", flush=True)


def rebuilt_by_others(root, wanted):
    """The containers of the lost node are in the stores of others; all parity is taken away before the drain."""
    for ranks, per_node, lost in [(6, 2, 1), (12, 3, 2)]:
        job = saved(root / f"rebuilt-{ranks}")
        if ranks == 6:
            job.lose(3)  # 6 ranks do not see node 3 either, and a set survives one loss
        else:
            job.lose(lost)
        output = opened(job, ranks, per_node)
        gone = "6, 7" if ranks == 6 else "4, 5"
        line = f"the containers of ranks {gone} are in no store of this job's nodes, and were rebuilt."
        check(line in output, output)
        check("kedge drop on them frees their memory" in output, output)
        for path in (job.directory / "store").glob("node*/kedge-*/*"):
            if path.name.startswith(("parity-", "set-")):
                path.unlink()
        shutil.copytree(job.directory, root / "copy", symlinks=True)
        check(drained(drain(job, "-n", 3)) == SAVED, "not what was saved")
        goes_on_from_the_prefix(job, wanted, SAVED, (SAVED_BY, 2), (ranks, per_node))
        shutil.rmtree(job.directory)
        (root / "copy").rename(job.directory)
        stores = sorted({path.parent for path in (job.directory / "store").glob("node*/kedge-*/rank-*.h5")})
        for store in stores[:-1]:
            said(scavenge(job, store), f" of {SAVED_BY} containers have been copied; waiting")
        said(scavenge(job, stores[-1]), f"; flushed step-{SAVED:06} (generation ")
        goes_on_from_the_prefix(job, wanted, SAVED, (SAVED_BY, 2), (ranks, per_node))
        print(f"ok rebuilt by {ranks} ranks, drained and scavenged", flush=True)


def with_a_commit_of_their_own(root, wanted):
    for ranks, per_node in [(6, 2), (12, 3)] if FULL else [(6, 2)]:
        job = saved(root / f"committed-{ranks}")
        code, output = job.run(ranks, per_node, "--die-at", 35, "--die-rank", 0)
        check(code != 0 and "committed step-000030" in output, output)
        check(drained(drain(job, "-n", 2)) == 30, "not the newest")
        goes_on_from_the_prefix(job, wanted, 30, (ranks, per_node), (SAVED_BY, 2))
        print(f"ok a checkpoint of the {ranks} ranks' own is drained", flush=True)

    # Theirs is lost with a node, and the older one of more ranks is rebuilt.
    job = saved(root / "older")
    code, output = job.run(6, 2, "--die-at", 35, "--die-rank", 0, redundancy_every=0, store_keep=3)
    check(code != 0 and "committed step-000030" in output, output)
    job.lose(1)
    code, out, error = drain(job, "-n", 2)
    check(code == 0 and re.match(rf"drained step-{SAVED:06} \(generation \d+\) of {SAVED_BY} ranks, ", out), out, error)
    check("skipped step-000030" in error, "it does not say why:", error)
    check("start it with" not in error, "advice for a job:", error)
    goes_on_from_the_prefix(job, wanted, SAVED, (6, 2), (SAVED_BY, 2))
    print("ok the older one of more ranks, where the newest is lost", flush=True)


def stores_are_not_removed(root, wanted):
    job = saved(root / "removed")
    output = opened(job, 6, 2, store_on_exit="remove_if_persistent")
    check(len(list((job.directory / "store").glob("node*/kedge-*/rank-*.h5"))) >= SAVED_BY, "stores are gone:", output)
    check(drained(drain(job, "-n", 2)) == SAVED, "not what was saved")
    # Now the prefix has it, and this start may remove its stores, but has nothing that was not flushed.
    opened(job, 6, 2, store_on_exit="remove_if_persistent")
    code, out, error = drain(job, "-n", 2)
    check((code == 0 and out.startswith(f"nothing to drain: step-{SAVED:06}")) or
          (code == 2 and f"the newest on the prefix is step-{SAVED:06}" in " ".join(error.split())), code, out, error)
    goes_on_from_the_prefix(job, wanted, SAVED, (SAVED_BY, 2), (6, 2))
    print("ok remove_if_persistent leaves what a drain needs", flush=True)


def too_little_is_left(root):
    job = saved(root / "lost")
    job.lose(1)
    job.lose(2)
    refused(drain(job, "-n", 2), 1, f"step-{SAVED:06}", "xor")
    print("ok too many nodes lost", flush=True)


def on_fewer_nodes_than_the_scheme_needs(root, wanted):
    """A drain protects as far as the nodes that are left allow: the one that is left has everything, as copies."""
    job = Job(root / "one", "partner", persistent_every=0, test_ranks_per_node=0)
    job_rank = drains.script(root / "one-rank", f'KEDGE_NODE=n$(({drains.RANK} / 4)) exec "$@"\n')
    launch = [MPIEXEC, "-n", str(SAVED_BY), job_rank, HEAT2D, "--steps", str(STEPS), "--every", str(EVERY)]
    done = subprocess.run([*launch, "--die-at", str(DEATH), "--die-rank", "0"], env=job.environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)
    check(done.returncode != 0, done.stdout, done.stderr)
    shutil.rmtree(job.directory / "store/n1")
    check(drained(drain(job, "-n", 1, KEDGE_NODE="n0")) == SAVED, "not the newest")
    shutil.rmtree(job.directory / "store")
    done = subprocess.run(launch, env=job.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LIMIT_S)
    check(done.returncode == 0 and printed(done.stdout, "checksum") == wanted, done.stdout, done.stderr)
    print("ok one of two nodes, of a job that asked for a scheme", flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="kedge-drain-other-ranks-") as name:
        root = pathlib.Path(name)
        code, output = Job(root / "undisturbed", "auto").run(SAVED_BY, 2)
        check(code == 0, output)
        wanted = printed(output, "checksum")
        only_opened(root, wanted)
        rebuilt_by_others(root, wanted)
        with_a_commit_of_their_own(root, wanted)
        stores_are_not_removed(root, wanted)
        too_little_is_left(root)
        on_fewer_nodes_than_the_scheme_needs(root, wanted)


if __name__ == "__main__":
    main()
