"""The prolog and the epilog of share/kedge/slurm, run without Slurm, as the user who runs the test: they free what they
may and nothing else, drain node by node, and never fail. (The job script runs as part of the guide "on Slurm".)

slurm_test.py SOURCE_DIR KEDGE HEAT2D MPIEXEC
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SOURCE_DIR, KEDGE, HEAT2D, MPIEXEC = (Path(word).resolve() for word in sys.argv[1:5])
SCRIPTS = SOURCE_DIR / "share/kedge/slurm"


class Slurm(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp(prefix="ks"))
        self.roots = self.work / "roots"
        self.roots.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KEDGE_", "SLURM_"))}
        self.environment = {**kept, "KEDGE_STORE_PATH": str(self.roots), "STORE_ROOTS": str(self.roots),
                            "KEDGE": str(KEDGE), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "KEDGE_LOG_LEVEL": "warning",
                            "SLURM_JOB_ID": "7", "SLURM_JOB_UID": str(os.getuid()), "SLURM_JOB_USER": self.user()}

    def tearDown(self):
        shutil.rmtree(self.work, ignore_errors=True)

    @staticmethod
    def user():
        return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()

    def heat(self, *arguments):
        return ["timeout", "--kill-after=5", "60", str(MPIEXEC), "-n", "1", str(HEAT2D), *arguments]

    def make_store(self, name="job", **changes):
        """Of a job in a directory of its own, which does not flush."""
        before = self.stores()
        (self.work / name).mkdir()
        environment = {**self.environment, "KEDGE_PERSISTENT_EVERY": "0", **changes}
        subprocess.run(self.heat("--steps", "4", "--every", "2"), cwd=self.work / name, env=environment, check=True,
                       capture_output=True)
        made = [store for store in self.stores() if store not in before]
        self.assertEqual(len(made), 1)
        return made[0]

    def epilog(self, **changes):
        """What it does, and what it says in the system's log."""
        logger = self.work / "logger"
        logger.mkdir(exist_ok=True)
        log = self.work / "log"
        log.write_text("")
        (logger / "logger").write_text(f'#!/bin/sh\necho "$@" >>{log}\n')
        (logger / "logger").chmod(0o755)
        done = self.script("epilog.sh", PATH=f"{logger}:{os.environ['PATH']}", **changes)
        self.assertEqual(done.returncode, 0, done.stderr)
        return log.read_text()

    def stores(self):
        return [path for path in self.roots.iterdir() if path.name.startswith("kedge-")]

    def installed(self):
        """The scripts and the command, as an installation has them."""
        scripts = self.work / "opt/share/kedge/slurm"
        shutil.copytree(SCRIPTS, scripts)
        (self.work / "opt/bin").mkdir()
        (self.work / "opt/bin/kedge").symlink_to(KEDGE)
        return scripts

    def script(self, name, **changes):
        environment = {key: value for key, value in {**self.environment, **changes}.items() if value is not None}
        return subprocess.run(["bash", SCRIPTS / name], cwd=self.work, env=environment, capture_output=True, text=True,
                              timeout=100)

    def test_all_scripts_parse(self):
        for script in SCRIPTS.iterdir():
            done = subprocess.run(["bash", "-n", script], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), script)
            if shutil.which("shellcheck"):
                done = subprocess.run(["shellcheck", script], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (0, ""), script)

    def job(self, srun, status=0, **variables):
        """job.sbatch with this body of `srun`, which is to end with this status; returns what it and the stand-ins said, in
        order."""
        stand_in = self.work / "stand-in"
        stand_in.mkdir()
        for name, body in {"srun": srun, "scontrol": "echo scontrol $1"}.items():
            (stand_in / name).write_text(f"#!/bin/bash\n{body}\n")
            (stand_in / name).chmod(0o755)
        environment = {**self.environment, "PATH": f"{stand_in}:{os.environ['PATH']}", "SLURM_JOB_ID": "1", **variables}
        # In a process group of its own, as a batch script has.
        done = subprocess.run(["bash", SCRIPTS / "job.sbatch"], cwd=self.work, env=environment, capture_output=True,
                              text=True, timeout=60, start_new_session=True)
        self.assertEqual((done.returncode, done.stderr), (status, ""))
        return done.stdout.split("\n")[:-1]

    def test_a_launch_that_fails_at_once_is_tried_again_and_queued(self):
        said = self.job("exit 3")
        self.assertEqual(said,
                         [f"attempt {n} ended with status 3" for n in (1, 2, 3)] + ["scontrol requeue"])

    def test_what_another_attempt_would_meet_again_is_not_tried_again(self):
        self.assertEqual(self.job("echo tried; exit 78", status=78),
                         ["tried", "another attempt would fail the same way; see the error above"])

    def test_a_job_that_has_failed_too_often_ends_with_its_failure(self):
        said = self.job("exit 3", status=3, SLURM_RESTART_COUNT="3")
        self.assertEqual(said, [f"attempt {n} ended with status 3" for n in (1, 2, 3)])

    def test_a_job_with_nothing_left_to_do_ends_well(self):
        self.assertEqual(self.job("touch finished"), [])

    def test_what_may_pass_is_tried_again(self):
        self.assertEqual(len([line for line in self.job("exit 75") if "ended with status 75" in line]), 3)

    def test_a_job_that_ends_well_is_queued_again_until_it_is_finished(self):
        self.assertEqual(self.job("exit 0"), ["scontrol requeue"])

    def test_the_signal_reaches_the_launcher_once_and_its_end_is_waited_for(self):
        said = self.job("trap 'echo told; sleep 1; echo through; exit 0' USR1\nkill -USR1 $PPID\n"
                        "while :; do sleep 0.1; done")
        self.assertEqual(said, ["told", "through", "scontrol requeue"])

    def test_a_signal_between_two_launches_starts_no_other(self):
        said = self.job("kill -USR1 $PPID\ntrap '' USR1\nexit 5")
        self.assertEqual(said, ["scontrol requeue"])

    def test_the_epilog_frees_the_users_stores_and_nothing_else(self):
        self.make_store()
        other = self.roots / f"kedge-{os.getuid()}-not-a-store"
        other.mkdir(mode=0o755)
        (other / "file").write_text("mine")
        link = self.roots / f"kedge-{os.getuid()}-link"
        link.symlink_to(other)
        done = self.script("epilog.sh")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(self.stores()), sorted([other, link]))
        self.assertEqual((other / "file").read_text(), "mine")

    def test_the_epilog_leaves_the_stores_of_the_users_other_jobs(self):
        own = self.make_store("own")
        other = self.make_store("other", SLURM_JOB_ID="8")
        without = self.make_store("without", SLURM_JOB_ID="")
        log = self.epilog()
        self.assertEqual(sorted(self.stores()), sorted([other, without]))
        self.assertIn(f"job 7: freed {own}", log)
        self.assertIn(f"kept {other}: job 8 used it last", log)
        self.assertIn(f"kept {without}: no job is recorded", log)

    def test_the_epilog_names_what_it_cannot_save(self):
        store = self.make_store("own")
        shutil.rmtree(self.work / "own")
        log = self.epilog(SCAVENGE="yes")
        self.assertEqual(self.stores(), [store], "what cannot be saved must stay")
        self.assertIn(f"'{store}' stays: it could not be scavenged", log)

    def test_the_epilog_saves_before_it_frees(self):
        self.make_store("own")
        log = self.epilog(SCAVENGE="yes")
        self.assertEqual(self.stores(), [])
        self.assertIn("flushed step-", log)
        self.assertTrue(list((self.work / "own/checkpoints").glob("step-*/checkpoint.h5")))

    def test_nothing_in_a_store_holds_the_epilog_up(self):
        """Pipes that nobody writes to, in place of each file that is read."""
        for name in ("run", "committed", "lock.1.0", "lock.9.0", "flush-failed"):
            store = self.make_store(name)
            (store / name).unlink(missing_ok=True)
            os.mkfifo(store / name)
            for scavenge in ("", "yes"):
                begun = time.monotonic()
                log = self.epilog(SCAVENGE=scavenge)
                self.assertLess(time.monotonic() - begun, 20, name)
                self.assertTrue(str(store) in log, f"{name}: nothing is said of its store: {log}")
            shutil.rmtree(store, ignore_errors=True)

    def test_a_command_that_does_not_end_does_not_hold_the_epilog_up(self):
        self.make_store()
        (self.work / "hangs").write_text("#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1; done\n")
        (self.work / "hangs").chmod(0o755)
        os.mkdir(self.roots / f"kedge-{os.getuid()}-second", mode=0o700)
        begun = time.monotonic()
        log = self.epilog(KEDGE=str(self.work / "hangs"), LIMIT="2")
        self.assertLess(time.monotonic() - begun, 20)
        self.assertIn("given up after 2 s", log)
        self.assertIn("stays: 2 s have passed", log)

    def test_the_epilog_leaves_what_a_job_is_using(self):
        with subprocess.Popen(self.heat("--steps", "100000000", "--every", "50"), cwd=self.work, env=self.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as job:
            try:
                deadline = time.monotonic() + 30
                while not (self.work / "checkpoints").exists() or not self.stores():
                    self.assertLess(time.monotonic(), deadline, "the job made no store")
                    time.sleep(0.2)
                done = self.script("epilog.sh")
                self.assertEqual(done.returncode, 0)
                self.assertIn("in use by a job", done.stderr + done.stdout)
                self.assertEqual(len(self.stores()), 1)
            finally:
                os.killpg(job.pid, signal.SIGTERM)
        deadline = time.monotonic() + 20
        while self.stores():  # processes of a job that was ended may need a moment
            self.assertLess(time.monotonic(), deadline, "the store of a job that ended was not freed")
            self.assertEqual(self.script("epilog.sh").returncode, 0)

    def test_the_prolog_leaves_the_stores_of_the_jobs_user(self):
        self.make_store()
        self.assertEqual(self.script("prolog.sh").returncode, 0)
        self.assertEqual(len(self.stores()), 1)
        done = self.script("prolog.sh", SLURM_JOB_UID=str(os.getuid() + 1))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.stores(), [], done.stderr)

    def test_they_need_no_search_path_and_no_variable_but_slurms(self):
        self.make_store()
        slurms = {name: value for name, value in self.environment.items() if name.startswith("SLURM_")}
        scripts = self.installed()
        for script in (scripts / "epilog.sh", scripts / "prolog.sh"):  # the directories that users may have chosen
            script.write_text(script.read_text().replace("/dev/shm /tmp", str(self.roots)))
        done = subprocess.run([scripts / "prolog.sh"], env=slurms, capture_output=True, text=True, timeout=100)
        self.assertEqual((done.returncode, done.stderr, len(self.stores())), (0, "", 1))
        link = self.work / "epilog.d"  # as a site may refer to it
        link.symlink_to(scripts / "epilog.sh")
        done = subprocess.run([link], env=slurms, capture_output=True, text=True, timeout=100)
        self.assertEqual((done.returncode, done.stderr, self.stores()), (0, "", []))

    def test_they_say_that_the_command_is_missing(self):
        for name in ("epilog.sh", "prolog.sh"):
            done = self.script(name, KEDGE=None)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stderr, r"nothing was freed: there is no .*/bin/kedge; set kedge= in .*" + name)

    def test_without_what_they_need_they_do_nothing_and_never_fail(self):
        self.make_store()
        for name in ("epilog.sh", "prolog.sh"):
            self.assertEqual(self.script(name, SLURM_JOB_UID=None).returncode, 0)
            self.assertEqual(self.script(name, KEDGE="/nowhere/kedge", SLURM_JOB_UID=str(os.getuid())).returncode, 0)
        self.assertEqual(len(self.stores()), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
