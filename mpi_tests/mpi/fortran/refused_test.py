#!/usr/bin/python3
"""The compiler refuses memory that may not be there any more when kedge_load_all fills it: variables without `target`,
expressions, and sections with a vector subscript, of which it would pass a copy.

usage: refused_test.py COMPILER MODULE_DIRECTORY
"""
import subprocess
import sys
import tempfile

COMPILER, MODULES = sys.argv[1:3]
PROGRAM = """program wants
  use kedge
  implicit none
  type(kedge_wants) :: all
  real{attribute} :: field(4, 4)
  call kedge_want(all, "field", {memory})
end program wants
"""


def compiles(attribute, memory):
    with tempfile.TemporaryDirectory(prefix="kedge-fortran-refused-") as directory:
        with open(f"{directory}/wants.f90", "w") as file:
            file.write(PROGRAM.format(attribute=attribute, memory=memory))
        done = subprocess.run([COMPILER, "-I", MODULES, "-c", "wants.f90"], cwd=directory, capture_output=True, text=True)
        print(f"{attribute} {memory}: {done.returncode}\n{done.stderr}", flush=True)
        return done.returncode == 0


def main():
    for memory in ("field", "field(2:3, :)", "field(1, 2)", "field(4:1:-2, 2)"):
        if not compiles(", target", memory):
            raise AssertionError(f"{memory} of a target is refused")
        if compiles("", memory):
            raise AssertionError(f"{memory} of what is no target is not refused")
    for memory in ("field + 1", "field([1, 3], :)", "(field)", "1.0"):
        if compiles(", target", memory):
            raise AssertionError(f"{memory} is not refused")


if __name__ == "__main__":
    main()
