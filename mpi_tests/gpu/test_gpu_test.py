"""share/kedge/test-gpu runs what it packed: where there is no CUDA driver, and over a fake one."""

import importlib.machinery
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

    def test_says_where_nothing_was_packed(self):
        out = self.directory / "out"
        done = subprocess.run([SCRIPT, "run", out], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("run it with pack DIRECTORY, then", done.stderr)
        self.assertFalse(out.exists())

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
        self.assertIn(len(measured["ratios"]), (6, 7), "with the kernel, if there is an nvcc")
        heat = json.loads((out / "heat.json").read_text())
        self.assertEqual(heat["gpu"], "none: a driver for tests, device 0 of 2")
        self.assertEqual([case["result"] for case in heat["cases"]], ["passed", "passed"], heat)
        self.assertEqual([case["height"] for case in heat["cases"]], [384, 33])
        self.assertEqual(len((out / "heat.txt").read_text().splitlines()), 2)
        self.assertEqual(list(store.iterdir()), [], "the benchmark or heat_cuda leaves files")
        self.assertIn("skipped: tests of the Python package: the package was not packed", done.stdout)

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

    def run_with_python(self, torch, suffix=importlib.machinery.EXTENSION_SUFFIXES[0], kedge="", **tests):
        """What run says of the Python package, where this is the module torch and these are the tests; nothing else runs."""
        for program in ("gpu_test", "gpu_bench"):
            (self.directory / "bin" / program).unlink(missing_ok=True)
            (self.directory / "bin" / program).symlink_to("/bin/true")
        shutil.rmtree(self.directory / "python", ignore_errors=True)
        (self.directory / "python/kedge").mkdir(parents=True)
        (self.directory / "python/kedge/__init__.py").write_text(kedge)
        (self.directory / f"python/kedge/_kedge{suffix}").touch()
        (self.directory / "python/tests").mkdir()
        for name in ("gpu_test", "dlpack_gpu_test", "on_gpu_test", "torch_bench"):
            (self.directory / f"python/tests/{name}.py").write_text(tests.get(name, "import kedge, sys\nprint(*sys.argv[1:])"))
        for name in ("libkedge_is_alone.so", "libblkid.so.1", "libstdc++.so.6", "libgcc_s.so.1"):
            (self.directory / "lib" / name).touch()
        (self.directory / "python/libraries.txt").write_text("libblkid.so.1\n")
        machine = self.directory / "machine"
        machine.mkdir(exist_ok=True)
        (machine / "torch.py").write_text(torch)
        heat = self.directory / "bin/heat_cuda"
        heat.unlink(missing_ok=True)
        heat.symlink_to("/bin/true")
        return self.run_script("run", self.directory / "out", PYTHONPATH=str(machine), LD_LIBRARY_PATH="/machine/own",
                               PATH="/usr/bin:/bin", KEDGE_TEST_GPU_STORE=str(self.directory))

    def test_says_why_the_python_package_is_not_tested(self):
        found = "class cuda:\n    is_available = staticmethod(lambda: True)\n"
        for why, case in (("has no PyTorch: No module of the machine", {"torch": "raise ImportError('No module of the machine')"}),
                          ("PyTorch 7 finds no CUDA device", {"torch": "__version__ = 7\n" + found.replace("True", "False")}),
                          ("which cannot load _kedge.cpython-22.so", {"torch": found, "suffix": ".cpython-22.so"})):
            done = self.run_with_python(**case)
            said = (self.directory / "out/python.txt").read_text()
            self.assertTrue(said.startswith("skipped: tests of the Python package: ") and said.endswith(f"{why}\n"), said)
            self.assertIn(said, done.stdout)
            self.assertFalse((self.directory / "out/python.json").exists())

    def test_tests_the_python_package(self):
        found = "class cuda:\n    is_available = staticmethod(lambda: True)\n"
        look = "import os\nway = os.environ['LD_LIBRARY_PATH'].split(':')\nprint(sorted(os.listdir(way[0])), way[1:])\n"
        self.run_with_python(found, on_gpu_test=look)
        results = json.loads((self.directory / "out/python.json").read_text())
        names = ["gpu_test", "dlpack_gpu_test", "on_gpu_test", "torch_bench"]
        self.assertEqual(results, {"exit_status": dict.fromkeys(names, 0)})
        # What the extension names, and what the machine lacks; not what it has.
        self.assertEqual((self.directory / "out/python-on_gpu_test.txt").read_text(),
                         "['libblkid.so.1', 'libkedge_is_alone.so'] ['/machine/own']\n")
        self.assertEqual((self.directory / "out/python-gpu_test.txt").read_text(), f"{self.directory}/python/tests/libcuda.so.1\n")
        self.assertEqual((self.directory / "out/python-torch_bench.txt").read_text(),
                         f"--mib 1024 --directory {self.directory} --json {self.directory}/out/torch_bench.json\n")
        # Where the machine's libstdc++ is too old.
        needs = look + "if not any('stdc' in name for name in os.listdir(way[0])):\n    raise ImportError\n"
        self.run_with_python(found, kedge=needs)
        self.assertIn("['libblkid.so.1', 'libgcc_s.so.1', 'libkedge_is_alone.so', 'libstdc++.so.6'] ['/machine/own']",
                      (self.directory / "out/python-gpu_test.txt").read_text())
        done = self.run_with_python(found, torch_bench="raise SystemExit(3)")
        results = json.loads((self.directory / "out/python.json").read_text())
        self.assertEqual((done.returncode, results["exit_status"]["torch_bench"]), (1, 3))

    def test_fails_if_a_test_does(self):
        for failing, passing in (("gpu_test", "gpu_bench"), ("gpu_bench", "gpu_test")):
            for program, result in ((failing, "/bin/false"), (passing, "/bin/true")):
                (self.directory / "bin" / program).unlink()
                (self.directory / "bin" / program).symlink_to(result)
            store = self.directory / f"store-{failing}"
            store.mkdir()
            done = self.run_script("run", self.directory / "out", LD_LIBRARY_PATH=FAKE, KEDGE_TEST_GPU_BYTES="4194304",
                                   KEDGE_TEST_GPU_STORE=str(store))
            self.assertEqual(done.returncode, 1, failing + done.stdout)
            self.assertIn("failed: see", done.stdout)
            self.assertNotIn("heat_cuda 512 x 384: failed", done.stdout)

    def test_says_how_it_is_used(self):
        self.assertEqual(self.run_script("run").returncode, 2)
        self.assertIn("usage: share/kedge/test-gpu pack", self.run_script("--help").stdout)


if __name__ == "__main__":
    unittest.main()
