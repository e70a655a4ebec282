#!/usr/bin/python3
"""The constants of the Fortran module are those of kedge.h, all of them with their numbers, and every function that kedge.h
and kedge_mpi.h declare is called by the module.

usage: constants_test.py
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FORTRAN = ROOT / "src/bindings/fortran"
# The first takes a communicator of C; callbacks have C's types: kedge_get_level tells what became of a commit.
NOT_CALLED = {"kedge_engine_new", "kedge_on_complete"}


def constants(text):
    return {name.upper(): int(number) for name, number in re.findall(r"\b(KEDGE_\w+) = (\d+)", text)}


def functions(text):
    without_comments = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"\b(kedge_\w+)\(", without_comments))


def bound(text):
    return set(re.findall(r'bind\(c, &?\s*name="(kedge_\w+)"\)', text))


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
        called = functions((FORTRAN / "mpi.cpp").read_text())
        for module in ("c_api.f90", "c_api_reading.f90", "streams.f90"):
            called |= bound((FORTRAN / module).read_text())
        self.assertEqual(wanted - called, NOT_CALLED)

    def test_sees_what_is_missing(self):
        self.assertEqual(constants("  KEDGE_OK = 0,\n  KEDGE_LATE = 12 /* new */"), {"KEDGE_OK": 0, "KEDGE_LATE": 12})
        self.assertEqual(functions("/* kedge_a(x) */ int kedge_b(void);"), {"kedge_b"})
        self.assertEqual(bound('function f(x) bind(c, &\n  name="kedge_b") result(r)'), {"kedge_b"})


if __name__ == "__main__":
    unittest.main()
