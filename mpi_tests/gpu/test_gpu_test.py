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
        self.assertEqual(len(measured["ratios"]), 4)
        self.assertEqual(list(store.iterdir()), [], "the benchmark leaves files")

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
