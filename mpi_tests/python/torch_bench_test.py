"""torch_bench_test.py BENCH: mpi_tests/bench/torch_bench.py runs with tensors of the host, compares every byte, and
leaves nothing behind. No time is judged."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import place

place.need("torch")
BENCH = sys.argv.pop(1)
LEAST = {"copy to the host", "copy within the device", "torch.save", "torch.load", "Kedge, blocked", "Kedge, done", "Kedge, load",
         "Kedge by buffers, blocked", "Kedge by buffers, done"}


class TorchBench(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())

    def run_bench(self, *words, **variables):
        return subprocess.run([sys.executable, "-B", BENCH, "--mib", "4", "--rounds", "3", "--directory", self.directory, *words],
                              env=os.environ | variables, capture_output=True, text=True, timeout=150)

    def test_measures_and_compares(self):
        with tempfile.TemporaryDirectory() as other:
            done = self.run_bench("--device", "cpu", "--json", f"{other}/results.json")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(f"{other}/results.json") as file:
                report = json.load(file)
        self.assertLessEqual(LEAST, set(report["rows"]), done.stdout)
        for name, row in report["rows"].items():
            self.assertEqual(len(row["seconds"]), 3, name)
            self.assertLess(0, row["median"], name)
            self.assertIn(f"  {name} ", done.stdout)
        ways = {"async_save", "async_save with pinned staging", "async_save with staging in the background",
                "async_save in a process"}
        self.assertEqual({way for way in ways if f"{way}, blocked" in report["rows"]}, ways - set(report["skipped"]))
        self.assertIn("async_save, blocked", report["rows"], done.stdout)
        ratio = report["ratios"]["torch.save / Kedge, blocked"]
        self.assertEqual((ratio["at_least"], ratio["reached"]), (10, ratio["median"] >= 10))
        self.assertTrue(report["verified"])
        self.assertEqual(report["levels"]["Kedge"], "local")
        self.assertEqual(os.listdir(self.directory), [])

    def test_says_where_there_is_no_gpu(self):
        done = self.run_bench(CUDA_VISIBLE_DEVICES="")
        self.assertEqual((done.returncode, done.stdout), (77, "skipped: PyTorch finds no CUDA device\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
