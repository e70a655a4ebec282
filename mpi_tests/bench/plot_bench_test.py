#!/usr/bin/python3
"""plot-bench draws well-formed SVG of what kedge-bench --json writes, and refuses what cannot be compared.

usage: plot_bench_test.py PLOT_BENCH
"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PLOT_BENCH = sys.argv.pop(1)
SVG = "{http://www.w3.org/2000/svg}"


def row(key, value, against=None, target=None, verdict=None, unit="s"):
    def of(middle):
        return {"median": middle, "min": middle * 0.9, "max": middle * 1.1}
    made = {"key": key, "what": f"what {key} is <&>", "unit": unit, "value": of(value), "spread": 0.2,
            "all_values": [value] if key == "memory" else [value, value * 0.9, value * 1.1]}
    if against:
        made |= {"against": against, "ratio": of(value)}
    if target:
        made |= {"target": target, "verdict": verdict}
    return made


def table(scheme, parity, members, protect):
    return {"scheme": scheme, "parity": parity, "members": members,
            "shared_bytes": 1000, "shared_huge_bytes": 940 if scheme == "xor" else 500,
            "rows": [row("write", 1.0), row("read", 0.6, "write"),
                     row("blocked", 0.3, "write", 0.5, "reached"), row("protect", protect, "write", 0.9, "MISSED"),
                     row("open_load", 0.8, "read", 1.0, "too noisy"),
                     row("memory", 8.0, None, 32, "reached", "MiB")]}


def results(ranks=4, members=4, parity=2, protect=1.0):
    return {"ranks": ranks, "nodes": ranks, "bytes_per_rank": 1 << 28, "rounds": 7, "cores": 2, "kernel": "Linux",
            "huge_pages": "never",
            "tables": [table("xor", 1, members, protect), table("rs", parity, members, 2 * protect)]}


class PlotBench(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def files(self, *several):
        paths = []
        for number, one in enumerate(several):
            paths.append(self.directory / f"{number}.json")
            paths[-1].write_text(json.dumps(one))
        return paths

    def run_it(self, *words):
        return subprocess.run([PLOT_BENCH, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, timeout=30)

    def draw(self, *words):
        """The texts of the drawing and its root."""
        out = self.directory / "out.svg"
        done = self.run_it(*[out if word == "OUT" else word for word in words])
        self.assertEqual(done.returncode, 0, done.stderr)
        root = xml.etree.ElementTree.parse(out).getroot()
        return [element.text for element in root.iter(SVG + "text")], root

    def test_bars_end_where_the_ratio_is_a_part_of_the_target(self):
        texts, root = self.draw("targets", "OUT", *self.files(results()))
        self.assertIn("1.00 of 0.9 W", texts)
        self.assertIn("8.00 of 32 MiB", texts)
        for verdict in ("reached", "MISSED", "too noisy"):
            self.assertEqual(texts.count(verdict), {"reached": 4, "MISSED": 2, "too noisy": 2}[verdict])
        widths = [float(bar.get("width")) for bar in root.iter(SVG + "rect")][1:]
        self.assertEqual(len(widths), 8)
        self.assertAlmostEqual(widths[0] / widths[1], (0.3 / 0.5) / (1.0 / 0.9), places=2)

    def test_the_worst_verdict_of_several_runs_counts(self):
        better = copy.deepcopy(results(protect=0.5))
        for one in better["tables"]:
            one["rows"][3]["verdict"] = "reached"
        texts, root = self.draw("targets", "OUT", *self.files(better, results(), better))
        self.assertEqual(texts.count("MISSED"), 2)
        self.assertIn("0.50 of 0.9 W", texts)  # the median of the runs
        self.assertEqual(len(list(root.iter(SVG + "circle"))), 3 * 8)

    def test_cost_has_a_line_for_each_scheme(self):
        for over, several in (("ranks", [results(ranks=n) for n in (4, 8, 16)]),
                              ("members", [results(members=n) for n in (3, 4, 8)])):
            texts, root = self.draw("cost", "--over", over, "OUT", *self.files(*several))
            self.assertTrue({"xor", "rs 2", "16" if over == "ranks" else "3"} <= set(texts), texts)
            lines = list(root.iter(SVG + "polyline"))
            self.assertEqual(len(lines), 2 * 3)  # blocked, protect, open_load
            self.assertTrue(all(len(line.get("points").split()) == 3 for line in lines))

    def test_cost_over_parity_begins_with_xor(self):
        texts, root = self.draw("cost", "--over", "parity", "OUT", *self.files(results(parity=2), results(parity=3)))
        self.assertTrue({"1", "2", "3"} <= set(texts), texts)

    def test_markdown_has_a_column_for_each_run(self):
        done = self.run_it("markdown", *self.files(results(protect=0.25), results(protect=0.75)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| run 1 | run 2 | verdict |", done.stdout)
        self.assertIn("| W | 0.9 | 0.25 (0.23 to 0.28) | 0.75 (0.68 to 0.83) | MISSED |", done.stdout)
        self.assertIn("|  | 32 | 8.0 MiB | 8.0 MiB | reached |", done.stdout)
        self.assertIn("; in huge pages 94%, 94%\n", done.stdout)

    def test_refuses_what_it_cannot_compare(self):
        for words in (["targets", "OUT", *self.files(results(), results(ranks=8))],
                      ["markdown", *self.files(results(), results(parity=3))],
                      ["cost", "--over", "ranks", "OUT", *self.files(results(), results())],
                      ["targets", "OUT", *self.files({"rows": []})],
                      ["targets", "OUT", self.directory / "none.json"]):
            done = self.run_it(*[self.directory / "out.svg" if word == "OUT" else word for word in words])
            self.assertNotEqual(done.returncode, 0, words)
            self.assertTrue(done.stderr.startswith("plot-bench: "), done.stderr)
            self.assertFalse((self.directory / "out.svg").exists())


unittest.main()
