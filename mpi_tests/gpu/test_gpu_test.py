"""share/kedge/test-gpu runs what it packed: where there is no CUDA driver, and over a fake one."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAMS, FAKE = Path(sys.argv.pop(1)), sys.argv.pop(1)
SCRIPT = Path(__file__).resolve().parents[2] / "share/kedge/test-gpu"


class TestGpu(unittest.TestCase):
    def setUp(self):
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.directory / "bin").mkdir()
        (self.directory / "lib").mkdir()
        for program in ("gpu_test", "gpu_bench"):
            (self.directory / "bin" / program).symlink_to(PROGRAMS / program)
        # CUDA's own runtime refuses the fake driver.
        (self.directory / "bin/heat_cuda").symlink_to(PROGRAMS / "heat_cuda_alone")
        shutil.copy(SCRIPT, self.directory / "test-gpu")

    def run_script(self, *words, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KEDGE_")} | variables
        return subprocess.run([self.directory / "test-gpu", *words], env=environment, capture_output=True, text=True)

    def test_says_where_there_is_no_gpu(self):
        done = self.run_script("run", self.directory / "out", LD_LIBRARY_PATH="")
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        self.assertIn("skipped: no CUDA driver", done.stdout)

    def test_tests_and_measures(self):
        out = self.directory / "out"
        store = self.directory / "store"
        store.mkdir()
        done = self.run_script("run", out, LD_LIBRARY_PATH=FAKE, KEDGE_TEST_GPU_BYTES="4194304",
                               KEDGE_TEST_GPU_STORE=str(store), KEDGE_STORE_PATH="/nonexistent")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"all passed: results in {out}", done.stdout)
        tests = json.loads((out / "tests.json").read_text())
        self.assertGreaterEqual(tests["tests"], 9)
        self.assertEqual(tests["failures"], 0)
        measured = json.loads((out / "bench.json").read_text())
        self.assertEqual(measured["bytes"], 4194304)
        self.assertEqual(len(measured["ratios"]), 6)
        heat = json.loads((out / "heat.json").read_text())
        self.assertEqual(heat["gpu"], "none: a driver for tests, device 0 of 2")
        self.assertEqual([case["result"] for case in heat["cases"]], ["passed", "passed"], heat)
        self.assertEqual([case["height"] for case in heat["cases"]], [384, 33])
        self.assertEqual(len((out / "heat.txt").read_text().splitlines()), 2)
        self.assertEqual(list(store.iterdir()), [], "the benchmark or heat_cuda leaves files")

    def run_with_heat(self, script):
        """What run says where heat_cuda is this shell script; nothing else runs."""
        for program in ("gpu_test", "gpu_bench"):
            (self.directory / "bin" / program).unlink()
            (self.directory / "bin" / program).symlink_to("/bin/true")
        heat = self.directory / "bin/heat_cuda"
        heat.unlink()
        heat.write_text("#!/bin/bash\n" + script)
        heat.chmod(0o755)
        store = self.directory / "heat-store"
        store.mkdir(exist_ok=True)
        done = self.run_script("run", self.directory / "out", KEDGE_TEST_GPU_STORE=str(store), PATH="/usr/bin:/bin")
        results = [case["result"] for case in json.loads((self.directory / "out/heat.json").read_text())["cases"]]
        return done, results

    def test_fails_if_the_final_field_is_another_or_was_not_resumed(self):
        died = '[[ " $* " != *" --die-at "* ]] || kill -9 $$\n'
        resumes = '[[ $KEDGE_STORE_PATH != */killed ]] || echo "resumed step-000120 120"\n'
        checksum = "echo checksum 135e9687ba2424c2\n"
        done, results = self.run_with_heat(died + resumes + checksum)
        self.assertEqual((done.returncode, results), (0, ["passed", "passed"]), done.stdout + done.stderr)
        for script in (died + checksum,  # it began again from zero
                       resumes + checksum,  # nobody died
                       died + resumes,  # it ended without a field
                       died + resumes + 'echo "checksum 0${KEDGE_STORE_PATH##*/}"\n',  # another field
                       'echo "no GPU: ..."; exit 77\n'):
            done, results = self.run_with_heat(script)
            self.assertEqual((done.returncode, results), (1, ["failed", "failed"]), script + done.stdout + done.stderr)
        # The same field twice, but not heat2d's.
        done, results = self.run_with_heat(died + resumes + "echo checksum 7\n")
        self.assertEqual((done.returncode, results), (1, ["failed", "passed"]), done.stdout + done.stderr)

    def test_fails_if_a_test_does(self):
        (self.directory / "bin/gpu_bench").unlink()
        done = self.run_script("run", self.directory / "out", LD_LIBRARY_PATH=FAKE)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("failed: see", done.stdout)

    def test_says_how_it_is_used(self):
        self.assertEqual(self.run_script("run").returncode, 2)
        self.assertIn("usage: share/kedge/test-gpu pack", self.run_script("--help").stdout)


if __name__ == "__main__":
    unittest.main()
