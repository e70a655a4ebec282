#!/usr/bin/python3
"""heat2d under a real Slurm, whose daemons run on this machine's loopback for this test alone: share/kedge/slurm's job
script passes a signal on, the job ends after a last checkpoint, is queued again, and goes on from exactly that step; and
a job without a signal ends by itself before its time limit.

usage: slurm_ends_test.py SOURCE_DIR HEAT2D        (KEDGE_TEST_FULL=1, else skipped: it takes two minutes;
                                                    KEDGE_TEST_SLURM=DIRECTORY: where Slurm is, as its packages unpack)

Skipped (77) where there is no Slurm: Debian has it in slurmctld, slurmd, slurm-client and slurm-wlm-basic-plugins.
"""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SOURCE_DIR, HEAT2D = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
ROOT = pathlib.Path(os.environ.get("KEDGE_TEST_SLURM", "/"))
LIBRARIES = [str(ROOT / "usr/lib/x86_64-linux-gnu"), str(ROOT / "usr/lib/x86_64-linux-gnu/slurm-wlm")]
PATHS = f"{ROOT / 'usr/bin'}:{ROOT / 'usr/sbin'}:{os.environ['PATH']}"
LIMIT_S = 100


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def program(*names):
    return next((found for name in names if (found := shutil.which(name, path=PATHS))), None)


def free_port():
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return chosen.getsockname()[1]


class Slurm:
    """A controller and one node, for whoever runs this, in a directory."""

    def __init__(self, directory):
        self.directory, self.daemons = directory, []
        for name in ("state", "spool"):
            (directory / name).mkdir()
        host, user = socket.gethostname().split(".")[0], subprocess.check_output(["id", "-un"], text=True).strip()
        (directory / "slurm.conf").write_text(f"""ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.log
PluginDir={LIBRARIES[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=pmix
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KEDGE_", "SLURM_", "OMPI_"))}
        self.environment = {**kept, "PATH": PATHS, "SLURM_CONF": f"{directory}/slurm.conf"}
        if ROOT != pathlib.Path("/"):
            self.environment["LD_LIBRARY_PATH"] = ":".join(LIBRARIES)

    def __enter__(self):
        stepd = program("slurmstepd", "slurmstepd-wlm")
        for command in ([program("slurmctld", "slurmctld-wlm"), "-D"],
                        [program("slurmd", "slurmd-wlm"), "-D", "-d", stepd]):
            self.daemons.append(subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL,
                                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        self.wait_until(lambda: "idle" in self.run("sinfo", "--noheader", "--format=%t", check=False), "the node",
                        lambda: [(self.directory / f"{name}.log").read_text() for name in ("slurmctld", "slurmd")])
        return self

    def __exit__(self, *_):
        self.run("scancel", "--user", str(os.getuid()), check=False)
        time.sleep(1)
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()

    def run(self, *command, check=True, **options):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=30, check=check,
                              **options).stdout.strip()

    @staticmethod
    def wait_until(condition, what, told=lambda: ""):
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            check(time.monotonic() < deadline, "timed out waiting for", what, told())
            time.sleep(0.2)

    def state(self, job):
        return self.run("scontrol", "--oneliner", "show", "job", job).split("JobState=")[1].split()[0]


class Job:
    def __init__(self, slurm, script):
        self.slurm, self.directory = slurm, pathlib.Path(tempfile.mkdtemp(prefix="job-", dir=slurm.directory))
        (self.directory / "solver").write_text(f"#!/bin/sh\nexec {HEAT2D} --steps 1000000000 --every 0\n")
        (self.directory / "solver").chmod(0o755)
        (self.directory / "job.sbatch").write_text(script)
        slurm.environment |= {"KEDGE_STORE_PATH": f"{self.directory}/store",
                              "KEDGE_PERSISTENT_PATH": f"{self.directory}/prefix"}
        self.id = slurm.run("sbatch", "--parsable", "--output=log", "job.sbatch", cwd=self.directory)

    def log(self):
        file = self.directory / "log"
        return file.read_text(errors="replace") if file.exists() else ""

    def wait_for(self, pattern, times=1):
        self.slurm.wait_until(lambda: len(re.findall(pattern, self.log())) >= times, pattern, self.log)
        return re.findall(pattern, self.log())


def the_job_script_passes_a_signal_on(slurm):
    script = (SOURCE_DIR / "share/kedge/slurm/job.sbatch").read_text()
    for of_many, of_one in (("--nodes=5 ", "--nodes=1 "), ("--ntasks-per-node=8", "--ntasks-per-node=2 --overcommit"),
                            ("srun --nodes=4 --ntasks=32", "srun --overcommit --nodes=1 --ntasks=2")):
        check(of_many in script, of_many, "is not in job.sbatch any more")
        script = script.replace(of_many, of_one)
    job = Job(slurm, script)
    job.wait_for("no checkpoints yet")
    time.sleep(1)
    slurm.run("scancel", "--batch", "--signal=USR1", job.id)  # what --signal=B:USR1 does when the time has come
    job.wait_for("rank .* received SIGUSR1.*: taking the last checkpoint now, up to level persistent")
    stopped = job.wait_for(r"stopped (\d+) of ")[0]
    slurm.wait_until(lambda: slurm.state(job.id) == "PENDING", "the job to be queued again", job.log)

    def start_now():  # and not in two minutes; a job that is not quite through with ending would begin later all the same
        if slurm.state(job.id) == "PENDING":
            slurm.run("scontrol", "update", f"JobId={job.id}", "StartTime=now", check=False)
        return slurm.state(job.id) == "RUNNING"

    slurm.wait_until(start_now, "the job to begin again", job.log)
    resumed = job.wait_for(r"resumed step-\d+ (\d+) ")[0]
    check(resumed == stopped, "stopped at", stopped, "and resumed from", resumed, job.log())
    slurm.run("scancel", job.id)
    slurm.wait_until(lambda: slurm.state(job.id) == "CANCELLED", "the job to be cancelled")
    print("ok a signal from the job script, queued again:", stopped, "steps", flush=True)


def a_job_ends_before_its_time_limit(slurm):
    """Slurm 23.02 is the first that sets SLURM_JOB_END_TIME for jobs."""
    job = Job(slurm, """#!/bin/sh
#SBATCH --time=00:01:00 --ntasks-per-node=2 --overcommit
[ -n "$SLURM_JOB_END_TIME" ] || export KEDGE_DEADLINE=$(squeue --noheader --job $SLURM_JOB_ID --format %e)
srun --overcommit ./solver
echo exit code $?
""")
    job.wait_for("exit code")
    check("exit code 0" in job.log() and "taking the last checkpoint now, up to level persistent" in job.log(), job.log())
    check("TIME LIMIT" not in job.log() and "CANCELLED" not in job.log(), job.log())
    slurm.wait_until(lambda: slurm.state(job.id) == "COMPLETED", "the job to be completed")
    print("ok the time limit nears:", job.wait_for(r"stopped (\d+) of ")[0], "steps", flush=True)


def main():
    if os.environ.get("KEDGE_TEST_FULL") != "1":
        skip("it takes two minutes; KEDGE_TEST_FULL=1 runs it")
    for name in ("slurmctld", "slurmd", "slurmstepd"):
        if not program(name, f"{name}-wlm"):
            skip(f"there is no {name}")
    with tempfile.TemporaryDirectory(prefix="kedge-slurm-", ignore_cleanup_errors=True) as place:
        with Slurm(pathlib.Path(place)) as slurm:
            the_job_script_passes_a_signal_on(slurm)
            a_job_ends_before_its_time_limit(slurm)


if __name__ == "__main__":
    main()
