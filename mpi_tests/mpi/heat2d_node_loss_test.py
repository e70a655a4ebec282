#!/usr/bin/python3
"""heat2d on simulated nodes: a node is lost with its store in mid-run, and the job ends as if nothing had happened.

usage: heat2d_node_loss_test.py HEAT2D MPIEXEC   (KEDGE_TEST_FULL=1: every node in turn with every scheme)
"""
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HEAT2D, MPIEXEC = sys.argv[1:3]
FULL = os.environ.get("KEDGE_TEST_FULL") == "1"
RANKS, RANKS_PER_NODE, NODES = 8, 2, 4
STEPS, EVERY, DEATH = 40, 10, 25
NEWEST = DEATH // EVERY * EVERY
LAUNCH_LIMIT_S = 60


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


class Job:
    """heat2d on simulated nodes with a store each and a prefix; heat2d_flush_test.py uses it too."""

    def __init__(self, directory, scheme, **variables):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
            "KEDGE_STORE_PATH": f"{directory}/store/{{node}}", "KEDGE_PERSISTENT_PATH": f"{directory}/prefix",
            "KEDGE_TEST_RANKS_PER_NODE": str(RANKS_PER_NODE), "KEDGE_REDUNDANCY_SCHEME": scheme,
            "KEDGE_PIPELINE_MODE": "inline"  # what was committed is protected
        } | {f"KEDGE_{k.upper()}": str(v) for k, v in variables.items()}

    def launch(self, *more, watch=lambda line: None):
        """(exit code, the lines that were printed); `watch` is called with each line as it comes."""
        begin, output = time.monotonic(), ""
        with subprocess.Popen(
                ["timeout", "--kill-after=5", str(LAUNCH_LIMIT_S), MPIEXEC,
                 "-n", str(RANKS), HEAT2D, "--steps", str(STEPS), "--every",
                 str(EVERY), *more],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True) as job:
            for line in job.stdout:
                output += line
                watch(line)
        check(time.monotonic() - begin < LAUNCH_LIMIT_S, "a launch did not end within its time limit:", output)
        return job.returncode, output

    def lose(self, node):
        shutil.rmtree(self.directory / "store" / f"node{node}")


def printed(output, key):
    return next((line[len(key) + 1:] for line in output.splitlines() if line.startswith(key + " ")), None)


def killed_job(directory, scheme, lost, **variables):
    job = Job(directory / f"{scheme}-{'-'.join(map(str, lost))}", scheme, **variables)
    code, output = job.launch("--die-at", str(DEATH), "--die-node", str(lost[0]))
    check(code != 0, "nobody died:", output)
    check(printed(output, "checksum") is None, "it came to its end:", output)
    for node in lost:
        job.lose(node)
    return job


def lost_nodes_are_rebuilt(directory, scheme, nodes, wanted):
    job = killed_job(directory, scheme, nodes)
    code, output = job.launch()
    check(code == 0, output)
    resumed = printed(output, "resumed") or ""
    check(resumed.startswith(f"step-{NEWEST:06} {NEWEST} rebuilt "), scheme, nodes, "resumed", resumed, output)
    check(printed(output, "steps computed") == str(STEPS - NEWEST), output)
    check(printed(output, "checksum") == wanted, "the field differs from that of the undisturbed run", output)
    for rank in [node * RANKS_PER_NODE + i for node in nodes for i in range(RANKS_PER_NODE)]:
        check(f"rank {rank}: container rebuilt from rank" in output, "it does not say what was rebuilt:", output)
    print(f"ok {scheme}: nodes {nodes} lost, resumed {resumed}", flush=True)


def too_many_nodes_of_a_set_are_unrecoverable(directory, scheme, lost):
    job = killed_job(directory, scheme, lost)
    code, output = job.launch()
    check(code != 0 and "unrecoverable" in output, output)
    for word in ("resumed ", "committed ", "steps computed"):
        check(word not in output, "it began from zero:", output)
    for node in lost:
        check(f"/node{node}/" in output, "node", node, "is not named:", output)
    print(f"ok {scheme}: nodes {lost} lost, unrecoverable", flush=True)


def main():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="kedge-node-loss-"))
    try:
        undisturbed = Job(directory / "undisturbed", "auto")
        code, output = undisturbed.launch()
        check(code == 0, output)
        wanted = printed(output, "checksum")
        losses = [(scheme, [node]) for scheme in ("xor", "partner", "rs") for node in range(NODES)]
        for scheme, nodes in losses if FULL else losses[::3]:
            lost_nodes_are_rebuilt(directory, scheme, nodes, wanted)
        for nodes in itertools.combinations(range(NODES), 2) if FULL else [(1, 3)]:
            lost_nodes_are_rebuilt(directory, "rs", nodes, wanted)
        too_many_nodes_of_a_set_are_unrecoverable(directory, "xor", [1, 2])
        too_many_nodes_of_a_set_are_unrecoverable(directory, "partner", [1, 3])
        too_many_nodes_of_a_set_are_unrecoverable(directory, "rs", [0, 1, 3])
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
