#!/usr/bin/python3
"""heat2d on four hosts loses one of them, is started again, and must end as if nothing had happened; or `kedge drain`
and `kedge scavenge` take its checkpoint to the prefix.

usage: node_loss_test.py HEAT2D MPIEXEC DIRECTORY KEDGE

The test bed is made below DIRECTORY, which all hosts share. Exit status 77: this machine does not allow a test bed.
"""
import argparse
import collections
import functools
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import testbed

RANKS, STEPS, EVERY = 8, 200, 20
LAUNCH_LIMIT_S = 40


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


class Run:
    """One run of heat2d with a store on each host and a prefix of its own; may be launched several times.

    steps: how many an undisturbed launch computes in all; more than a disturbed one had committed.
    """

    def __init__(self, bed, heat2d, name, **variables):
        self.bed, self.heat2d, self.steps = bed, heat2d, STEPS
        self.variables = {"KEDGE_STORE_PATH": bed.store / name, "KEDGE_PERSISTENT_PATH": bed.shared / name,
                          "KEDGE_PIPELINE_MODE": "inline"} | {
            f"KEDGE_{key.upper()}": value for key, value in variables.items()}

    def start(self, steps=None):
        command = [self.heat2d, "--steps", steps or self.steps, "--every", EVERY]
        return self.bed.start_mpi(self.bed.hosts, RANKS, command, self.variables, LAUNCH_LIMIT_S)

    def disturb(self, what, *hosts):
        """Does this to the hosts after the second commit; the newest commit that the job told of."""
        job = self.start(100 * STEPS)  # However late this process hears of the commit, the job still computes.
        job.wait_for(rf"committed step-{2 * EVERY:06} ")
        for host in hosts:
            what(host)
        result = job.wait()
        check("steps computed" not in result.output, "heat2d ended before it was killed")
        check(result.code != 0, "mpirun did not notice that", *hosts, "died")
        committed = max(int(step) for step in re.findall(r"committed step-(\d+) ", result.output))
        self.steps = STEPS * (committed // STEPS + 2)
        return committed

    def finish(self, source=None, committed=0):
        """The checksum of a launch that comes to its end; it resumed from that source, or began from zero if None."""
        code, output = self.start().wait()
        check(code == 0, "heat2d failed:", output)
        resumed = re.findall(r"^resumed (step-\d+) (\d+) (.+) (\d+)$", output, re.M)
        check(len(resumed) == (0 if source is None else 1), output)
        first = 0
        for tag, step, found, size_bytes in resumed:
            first = int(step)
            check(tag == f"step-{first:06}", "the tag", tag, "is not that of the step that was loaded,", step)
            check(found == source, "expected", source, "and found", found, output)
            check(committed <= first < self.steps, "resumed", tag, "although", committed, "was committed", output)
            check(int(size_bytes) > 0, output)
            print(f"   committed {committed}, resumed {tag} {found} ({size_bytes} bytes)", flush=True)
        check(f"steps computed {self.steps - first}\n" in output, output)
        return re.search(r"^checksum (\w+)$", output, re.M)[1]

    def finish_in_vain(self):
        """A launch that must say that nothing can be had, and not begin from zero."""
        code, output = self.start().wait()
        check(code != 0, "it began although a host's containers are lost:", output)
        check("unrecoverable" in output, "it did not say why:", output)
        for word in ("resumed ", "committed ", "steps computed"):
            check(word not in output, "it began from zero:", output)


def ranks_of(bed, hosts, ranks):
    """{host: number of ranks that ran there}, counted in lines of their own: mpirun's may stand between."""
    code, output = bed.run_mpi(hosts, ranks, ["hostname"], {}, LAUNCH_LIMIT_S)
    check(code == 0, output)
    return collections.Counter(re.findall(r"^[a-z0-9-]+$", output, re.M))


def test_hosts_are_separate(bed, _heat2d):
    for layout in (dict.fromkeys(bed.hosts, 2), dict(zip(bed.hosts, (3, 1)))):
        found = ranks_of(bed, layout, sum(layout.values()))
        check(found == layout, "expected", layout, "and found", found)
    for directory in (bed.store, "/dev/shm"):
        for host in bed.hosts:
            check(bed.run_on(host, f"touch {directory}/of-{host}; cd {directory}; echo of-*").split() == [f"of-{host}"], host)
    check(not list(bed.store.iterdir()), "the hosts' store is that of this machine")
    check(not any(host in pathlib.Path("/etc/hosts").read_text() for host in bed.hosts), "/etc/hosts was changed")

    old, new = bed.hosts[1], "spare"
    bed.kill_processes(old)
    check(bed.run_on(old, f"ls {bed.store}").split() == [f"of-{old}"], "the store went with the processes")
    bed.kill(old)
    check(bed.run_mpi(bed.hosts, RANKS, ["hostname"], {}, LAUNCH_LIMIT_S).code != 0, "a dead host answered")
    for before, after in ((old, new), (new, old)):
        bed.replace(before, after)
        check(bed.hosts[1] == after, bed.hosts)
        check(bed.run_on(after, f"find {bed.store} /dev/shm -type f") == "", "the new host is not empty")
        check(ranks_of(bed, bed.hosts, RANKS) == dict.fromkeys(bed.hosts, 2), bed.hosts)


@functools.cache
def undisturbed(bed, heat2d, steps):
    run = Run(bed, heat2d, f"undisturbed-{steps}")
    run.steps = steps
    return run.finish()


def test_processes_of_a_host_die(bed, heat2d):
    run = Run(bed, heat2d, "processes")
    committed = run.disturb(bed.kill_processes, bed.hosts[2])
    checksum = run.finish("in place", committed)
    check(checksum == undisturbed(bed, heat2d, run.steps), "the field differs from that of the undisturbed run")


def test_host_lost_without_redundancy(bed, heat2d):
    run = Run(bed, heat2d, "lost", redundancy_scheme="single")
    run.disturb(bed.kill, bed.hosts[3])
    bed.replace(bed.hosts[3])
    run.finish_in_vain()


def test_host_lost_with_redundancy(bed, heat2d):
    # Also the host of rank 0, and a new host under its name as well as under another.
    losses = [("xor", 0, None), ("partner", 1, "spare-a")]
    if "KEDGE_TEST_FULL" in os.environ:
        losses += [("xor", 2, "spare-b"), ("partner", 0, None)]
    for scheme, lost, name in losses:
        run = Run(bed, heat2d, f"{scheme}-{lost}", redundancy_scheme=scheme)
        committed = run.disturb(bed.kill, bed.hosts[lost])
        bed.replace(bed.hosts[lost], name)
        print(f"   {scheme}, host {lost} lost", flush=True)
        checksum = run.finish("rebuilt", committed)
        check(checksum == undisturbed(bed, heat2d, run.steps), "the field differs from that of the undisturbed run")
    run = Run(bed, heat2d, "two-lost", redundancy_scheme="xor")
    run.disturb(bed.kill, *bed.hosts[1:3])
    for host in bed.hosts[1:3]:
        bed.replace(host)
    run.finish_in_vain()


def end_of_job(bed, heat2d, name):
    """A job that flushed nothing, and whose processes on one host died: its run, and the step that counts."""
    run = Run(bed, heat2d, name, persistent_every=0)
    committed = run.disturb(bed.kill_processes, bed.hosts[2])
    bed.wait_until_idle()
    return run, committed


def goes_on_from_the_prefix(bed, heat2d, run, committed):
    """Although no host has a store any more."""
    for host in bed.hosts:
        bed.replace(host)
    checksum = run.finish("fetched", committed)
    check(checksum == undisturbed(bed, heat2d, run.steps), "the field differs from that of the undisturbed run")


def test_drain_by_fewer_processes(bed, heat2d):
    """One process on each of the hosts that are left, for eight ranks."""
    run, committed = end_of_job(bed, heat2d, "drain")
    bed.kill(bed.hosts[0])
    left = bed.hosts[1:]
    settings = [f"store.path={bed.store / 'drain'}", f"persistent.path={bed.shared / 'drain'}"]
    command = [pathlib.Path(KEDGE).parent / "kedge-mpi", "drain"] + [word for one in settings for word in ("--set", one)]
    for wanted in (f"drained step-{committed:06} ", "nothing to drain: "):
        code, output = bed.run_mpi(left, len(left), command, {}, LAUNCH_LIMIT_S)
        check(code == 0 and wanted in output, code, output)
    goes_on_from_the_prefix(bed, heat2d, run, committed)


def test_scavenge_node_by_node(bed, heat2d):
    """Each host copies its own, without the launcher; the last one, or who is told that no other comes, flushes."""
    for lost in (None, bed.hosts[1]):
        name = "scavenge" if lost is None else "scavenge-lost"
        run, committed = end_of_job(bed, heat2d, name)
        if lost is not None:
            bed.kill(lost)
        said = [bed.run_on(host, f"{KEDGE} scavenge {bed.store / name}/kedge-*") for host in bed.hosts if host != lost]
        for words in said[:-1]:
            check(f" of {RANKS} containers have been copied" in words, words)
        if lost is not None:
            check(f"6 of {RANKS} containers have been copied" in said[-1], said[-1])
            said.append(bed.run_on(bed.hosts[0], f"{KEDGE} scavenge --finish {bed.shared / name}"))
        check(f"flushed step-{committed:06} " in said[-1], said)
        check(not list((bed.shared / name / ".kedge").glob("*/scavenged/*/*")), "copies stay behind")
        again = bed.run_on(bed.hosts[0], f"{KEDGE} scavenge {bed.store / name}/kedge-*")
        check("nothing to scavenge: step-" in again, again)
        goes_on_from_the_prefix(bed, heat2d, run, committed)


def test_nothing_stays(bed, _heat2d):
    """However the process that made a bed ends, the bed ends; its directory goes too unless that was SIGKILL."""
    program = ("import testbed, time; testbed.end_on_signals()\n"
               "with testbed.TestBed(2, below='.') as bed:\n"
               "  print(bed.directory, *(host.namespace for host in (bed.login, *bed.nodes.values())), flush=True)\n"
               "  time.sleep({})")
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(__file__).parent), "PYTHONDONTWRITEBYTECODE": "1"}
    for number in (0, signal.SIGTERM, signal.SIGKILL):
        owner = subprocess.Popen([sys.executable, "-c", program.format(60 if number else 0)], cwd=bed.shared, text=True,
                                 env=environment, stdout=subprocess.PIPE)
        directory, *namespaces = owner.stdout.readline().split()
        check(len(namespaces) == 3, namespaces)
        if number:
            check(namespaces_in_use(namespaces) == set(namespaces), "the bed did not begin")
            owner.send_signal(number)
        owner.wait(testbed.LIMIT_S)
        testbed.wait_until(lambda: not namespaces_in_use(namespaces), 10, lambda: f"signal {number}: processes remain")
        check(pathlib.Path(directory).exists() == (number == signal.SIGKILL), "signal", number, "and the directory", directory)


def namespaces_in_use(wanted):
    pids = [entry for entry in os.listdir("/proc") if entry.isdigit()]
    return {testbed.namespace_of(pid) for pid in pids} & set(wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heat2d")
    parser.add_argument("mpiexec")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("kedge")
    arguments = parser.parse_args()
    global KEDGE
    KEDGE = arguments.kedge
    testbed.end_on_signals()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    try:
        bed = testbed.TestBed(4, below=arguments.directory, mpirun=arguments.mpiexec)
    except testbed.Unavailable as reason:
        print("skipped:", reason)
        return 77
    with bed:
        for test in (test_hosts_are_separate, test_processes_of_a_host_die, test_host_lost_without_redundancy,
                     test_host_lost_with_redundancy, test_drain_by_fewer_processes, test_scavenge_node_by_node,
                     test_nothing_stays):
            begin = time.monotonic()
            test(bed, arguments.heat2d)
            print(f"ok {test.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
    check(not bed.directory.exists(), bed.directory, "stayed behind")
    return 0


if __name__ == "__main__":
    sys.exit(main())
