"""mpi_tests/README.md lists every test file with what it holds, as share/kedge/list-tests writes it, and each of its rules
is broken here once.
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]


def load():
    loader = importlib.machinery.SourceFileLoader("list_tests", str(ROOT / "share/kedge/list-tests"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("list_tests", loader))
    loader.exec_module(module)
    return module


sys.dont_write_bytecode = True
lister = load()
CXX = "// Locks are waited for, and named.\n#include <a>\n\nTEST(Locks, AreNamed) {}\nTEST_P(Locks,\n       Wait) {}\n"
PAGE = f"# Tests\n| `unit/` | rooms |\n{lister.MARK}\n"


class Project(unittest.TestCase):
    def test_page_is_up_to_date(self):
        printed = io.StringIO()
        with mock.patch.object(sys, "argv", ["list-tests", "--check"]), contextlib.redirect_stdout(printed):
            self.assertEqual(lister.main(), 0, printed.getvalue())

    def test_finds_the_tests_of_every_kind(self):
        tests = lister.read_tests(ROOT / "mpi_tests")
        self.assertGreater(len(tests), 300)
        for path in ("unit/base/options_test.cpp", "unit/persist/tier_contract.cpp", "python/states_test.py",
                     "mpi/outlives_mpi.cpp", "mpi/fortran/right_calls.f90", "interop/each_option.sh",
                     "interop/consumer/check.sh", "interop/read_manifest.py", "engine/refused/refused.cpp"):
            self.assertIn(path, tests)
        for path in ("harness/full_test.cpp", "mpi/fortran/launch.py", "python/place.py", "interop/golden.cpp"):
            self.assertNotIn(path, tests)


class Rules(unittest.TestCase):
    def run_in(self, files, *arguments):
        """Exit status, what was printed, and the page afterwards."""
        with tempfile.TemporaryDirectory() as directory:
            for name, text in files.items():
                path = Path(directory) / "mpi_tests" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            printed = io.StringIO()
            with mock.patch.object(sys, "argv", ["list-tests", *arguments, directory]), contextlib.redirect_stdout(printed):
                status = lister.main()
            return status, printed.getvalue(), (Path(directory) / "mpi_tests/README.md").read_text()

    def problems(self, **changed):
        files = {"README.md": PAGE, "unit/locks_test.cpp": CXX}
        files.update({name.replace("__", "/").replace("_dot_", "."): text for name, text in changed.items()})
        return self.run_in(files)[1]

    def test_a_page_is_written_and_then_current(self):
        status, _, page = self.run_in({"README.md": PAGE, "unit/locks_test.cpp": CXX})
        self.assertEqual(status, 0)
        self.assertIn("| `locks_test.cpp` | Locks are waited for, and named. | 2 |", page)
        self.assertTrue(page.startswith(PAGE))
        self.assertEqual(self.run_in({"README.md": page, "unit/locks_test.cpp": CXX}, "--check")[0], 0)

    def test_a_stale_page_is_noticed_and_left_alone(self):
        page = self.run_in({"README.md": PAGE, "unit/locks_test.cpp": CXX})[2]
        more = {"README.md": page, "unit/locks_test.cpp": CXX + "TEST(Locks, End) {}\n"}
        status, printed, after = self.run_in(more, "--check")
        self.assertEqual(status, 1)
        self.assertIn("run share/kedge/list-tests", printed)
        self.assertEqual(after, page)

    def test_a_file_without_a_sentence(self):
        for text in (CXX.replace("// Locks are waited for, and named.\n", ""), CXX.replace(", and named.", ""),
                     CXX.replace("Locks are waited for, and named.", "Locks.")):
            self.assertIn("unit/locks_test.cpp: begin it with", self.problems(unit__locks_test_dot_cpp=text))
        self.assertIn("unit/a_test.py: begin it with", self.problems(unit__a_test_dot_py="import os\n"))
        long = CXX.replace("and named", "and named" * lister.LONGEST)
        self.assertIn("characters, more than", self.problems(unit__locks_test_dot_cpp=long))

    def test_a_directory_that_is_not_in_the_table(self):
        self.assertIn("mpi_tests/attic/ is not in the table", self.problems(attic__b_test_dot_py='"""All is well in here."""\n'))

    def test_a_name_with_a_requirement_number(self):
        numbered = CXX.replace("AreNamed", "R19_AreNamed")
        self.assertIn("Locks.R19_AreNamed is named after", self.problems(unit__locks_test_dot_cpp=numbered))
        cmake = "add_test(NAME read_R3\n  COMMAND x)\n"
        self.assertIn("read_R3 is named after", self.problems(unit__CMakeLists_dot_txt=cmake))
        self.assertNotIn("is named after", self.problems())

    def test_a_page_without_the_mark(self):
        self.assertIn("has no line", self.problems(README_dot_md=PAGE.replace(lister.MARK, "")))


class Sentences(unittest.TestCase):
    def test_is_the_first_without_name_and_arguments(self):
        for name, text, expected in (
            ("a_test.cpp", "// One: two\n// three. Four.\n#include <a>\n", "One: two three."),
            ("a_test.py", '#!/usr/bin/python3\n"""a_test.py X [Y]: all of a\nis b.\n\nusage: c\n"""\n', "All of a is b."),
            ("check.sh", "#!/bin/sh\n# check.sh DIR: installs it.\nset -e\n", "Installs it."),
            ("a.f90", "! Every call. More.\nmodule a\n", "Every call."),
            ("a_test.cpp", "// Reads share/doc/a.md twice.\n", "Reads share/doc/a.md twice."),
        ):
            self.assertEqual(lister.what_it_holds(name, text), expected)

    def test_what_a_cmake_list_starts(self):
        cmake = """
            add_executable(x x.cpp other.cpp)
            add_test(NAME a COMMAND launch $<TARGET_FILE:x>)
            add_test(NAME b
              COMMAND python ${CMAKE_CURRENT_SOURCE_DIR}/b.py $<TARGET_FILE:y>)
            kedge_add_fortran_test(c SOURCES c.f90 d.f90 RANKS 1 2)
            target_link_libraries(x PRIVATE e.f90)
            """
        self.assertEqual(lister.started_by(cmake), {"x.cpp", "b.py", "c.f90", "d.f90"})


if __name__ == "__main__":
    unittest.main()
