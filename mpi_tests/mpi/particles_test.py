#!/usr/bin/python3
"""particles: a state that grows and moves between ranks, killed at random steps and with a node lost, ends with the same
particles, and passes through the same ones, as a run that nothing happened to; with the pipeline inline and in the
background.

usage: particles_test.py PARTICLES MPIEXEC   (KEDGE_TEST_FULL=1: more deaths, on more seeds)
"""
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

PARTICLES, MPIEXEC = sys.argv[1:3]
FULL = os.environ.get("KEDGE_TEST_FULL") == "1"
RANKS, RANKS_PER_NODE, NODES = 8, 2, 4
COUNT, STEPS, EVERY = 3000, 120, 10
LAUNCH_LIMIT_S = 60


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


class Job:
    def __init__(self, directory, mode="inline"):
        self.directory = directory
        directory.mkdir(parents=True)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
            "KEDGE_STORE_PATH": f"{directory}/store/{{node}}", "KEDGE_PERSISTENT_PATH": f"{directory}/prefix",
            "KEDGE_TEST_RANKS_PER_NODE": str(RANKS_PER_NODE), "KEDGE_PERSISTENT_EVERY": "3",
            "KEDGE_PIPELINE_MODE": mode, "KEDGE_LOG_LEVEL": "info"}

    def launch(self, *more):
        """(exit code, the printed lines by step)"""
        begin = time.monotonic()
        job = subprocess.run(
            ["timeout", "--kill-after=5", str(LAUNCH_LIMIT_S), MPIEXEC,
             "-n", str(RANKS), PARTICLES, "--particles", str(COUNT), "--steps", str(STEPS),
             "--every", str(EVERY), *map(str, more)],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(time.monotonic() - begin < LAUNCH_LIMIT_S, "a launch did not end within its time limit:", job.stdout)
        steps, resumed = {}, None
        for line in job.stdout.splitlines():
            words = line.split()
            if len(words) == 4 and words[2] == "checksum":
                steps[int(words[1])] = words[3]
                if words[0] == "resumed":
                    resumed = int(words[1])
        return job.returncode, steps, resumed, job.stdout

    def lose(self, node):
        shutil.rmtree(self.directory / "store" / f"node{node}")


def newest_protected(output):
    """The newest step that rank 0's log calls protected; 0 if there is none."""
    steps = re.findall(r"committed step-(\d+) .*, protected \(", output)
    return max(map(int, steps + re.findall(r"step-(\d+) is protected again", output)), default=0)


def killed_again_and_again(directory, seed, mode, wanted):
    """How many nodes were lost. In the background the newest checkpoint may not be protected yet when a rank dies: a node
    is lost only where one is known to be, and that one comes back or a newer one."""
    choose = random.Random(seed)
    job, reached, least, protected, lost = Job(directory, mode), 0, 0, 0, 0
    while True:
        at = choose.randrange(reached, STEPS + 20)
        node = choose.randrange(NODES) if choose.random() < 0.5 else None
        death = ["--die-at", at] + (["--die-rank", choose.randrange(RANKS)] if node is None else ["--die-node", node])
        code, steps, resumed, output = job.launch(*death)
        check(least <= (resumed or 0) <= reached, "resumed", resumed, "and not", least, "to", reached, output)
        for step, checksum in steps.items():
            check(wanted[step] == checksum, "step", step, "has other particles:", output)
        if at >= STEPS:
            check(code == 0, output)
            return lost
        check(code != 0, "nobody died:", output)
        least = reached = at // EVERY * EVERY
        protected = reached if mode == "inline" else max(newest_protected(output), protected)
        if node is not None and protected:
            job.lose(node)
            least, protected = protected, 0
            lost += 1


def readers_see_every_particle_once(directory):
    try:
        import h5py
    except ImportError:
        print("h5py is not installed: the file is not read", flush=True)
        return
    newest = directory / "prefix" / (directory / "prefix" / "latest").read_text().strip() / "checkpoint.h5"
    with h5py.File(newest) as file:
        cloud = file["particles"]
        check(cloud.dtype.names == ("position", "velocity", "id"), cloud.dtype)
        check(cloud.shape == (COUNT,) and cloud.dtype["position"].shape == (2,), cloud.shape, cloud.dtype)
        check(sorted(cloud[:]["id"]) == list(range(COUNT)), "some particles are missing or twice there")


def main():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="kedge-particles-"))
    try:
        undisturbed = Job(directory / "undisturbed")
        code, wanted, _, output = undisturbed.launch()
        check(code == 0 and len(set(wanted.values())) == STEPS // EVERY, output)
        readers_see_every_particle_once(undisturbed.directory)
        for mode in ("inline", "background"):
            lost = 0
            for seed in range(8 if FULL else 1):
                lost += killed_again_and_again(directory / f"{mode}-{seed}", seed, mode, wanted)
                print(f"ok {mode}, seed {seed}", flush=True)
            check(lost > 0, "no seed lost a node")
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
