#!/usr/bin/python3
"""The constants of the Fortran module are those of kedge.h, all of them with their numbers; its interface to C is what
share/kedge/fortran-interface writes, and every function that kedge.h and kedge_mpi.h declare is called by the module.

usage: constants_test.py
"""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FORTRAN = ROOT / "src/bindings/fortran"
INTERFACE = "src/bindings/fortran/c_api.f90"
# The first takes a communicator of C; callbacks have C's types: kedge_get_level tells what became of a commit.
NOT_CALLED = {"kedge_engine_new", "kedge_on_complete"}


def constants(text):
    return {name.upper(): int(number) for name, number in re.findall(r"\b(KEDGE_\w+) = (\d+)", text)}


def functions(text):
    without_comments = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"\b(kedge_\w+)\(", without_comments))


def called(text):
    """Called by a module of Fortran, or passed on to be called."""
    text = re.sub(r"(?m)!.*$", "", text)
    text = re.sub(r"(?m)^ *(?:end )?(?:function|subroutine) c_.*$|^ *use (?:.*&\n)*.*$", "", text)
    return {f"kedge_{name}" for name in re.findall(r"\bc_(\w+)", text)}


def check(source):
    return subprocess.run([ROOT / "share/kedge/fortran-interface", "--check", source], capture_output=True, text=True)


class FortranModule(unittest.TestCase):
    header = "".join((ROOT / "include/kedge" / name).read_text() for name in ("kedge.h", "kedge_info.h"))
    mpi_header = (ROOT / "include/kedge/kedge_mpi.h").read_text()
    device_header = (ROOT / "include/kedge/kedge_device.h").read_text()

    def test_has_the_constants_of_c(self):
        wanted = constants(self.header)
        self.assertGreater(len(wanted), 40)
        self.assertEqual(constants((FORTRAN / "constants.f90").read_text()), wanted)

    def test_calls_every_function_of_c(self):
        wanted = functions(self.header) | functions(self.mpi_header) | functions(self.device_header)
        self.assertGreater(len(wanted), 35)
        found = functions((FORTRAN / "mpi.cpp").read_text())
        for module in FORTRAN.glob("*.f90"):
            if module.name != "c_api.f90":
                found |= called(module.read_text())
        self.assertEqual(wanted - found, NOT_CALLED)

    def test_interface_to_c_is_that_of_the_headers(self):
        now = check(ROOT)
        self.assertEqual(now.returncode, 0, now.stdout + now.stderr)

    def test_a_change_of_the_headers_is_seen(self):
        with tempfile.TemporaryDirectory() as copy:
            source = pathlib.Path(copy)
            shutil.copytree(ROOT / "include/kedge", source / "include/kedge")
            (source / INTERFACE).parent.mkdir(parents=True)
            shutil.copy(ROOT / INTERFACE, source / INTERFACE)
            header = source / "include/kedge/kedge.h"
            text = header.read_text()
            self.assertEqual(check(source).returncode, 0)
            declared = "kedge_commit(kedge_engine* engine"
            header.write_text(text.replace(declared, f"{declared}, int fast"))
            changed = check(source)
            self.assertEqual(changed.returncode, 1)
            self.assertIn("+    function c_commit(engine, fast)", changed.stdout)
            header.write_text(text + "kedge_error kedge_run(kedge_plan* plan);\n")
            unknown = check(source)
            self.assertNotEqual(unknown.returncode, 0)
            self.assertIn("kedge_run: say in fortran-interface what Fortran calls plan", unknown.stderr)

    def test_sees_what_is_missing(self):
        self.assertEqual(constants("  KEDGE_OK = 0,\n  KEDGE_LATE = 12 /* new */"), {"KEDGE_OK": 0, "KEDGE_LATE": 12})
        self.assertEqual(functions("/* kedge_a(x) */ int kedge_b(void);"), {"kedge_b"})
        module = "use m, only: c_a, &\n  c_b\n  code = c_c(x)  ! c_d(x)\n function c_e(x) bind(c)\n call f(x, c_g)"
        self.assertEqual(called(module), {"kedge_c", "kedge_g"})


if __name__ == "__main__":
    unittest.main()
