"""Every code block of README and of the guides is declared, compiles and runs with the output that is shown, or says
why not: blocks.py says how a block is declared.

examples_test.py SOURCE_DIR BUILD_DIR CMAKE MPIEXEC [--fortran] [--only PATTERN] [--keep]
"""

import argparse
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import project
from blocks import blocks_of
from sessions import MPIRUN_LIMIT_S, Session, Skip

# Pages about Kedge itself: their blocks show layouts and commands for its developers.
NOT_GUIDES = ("architecture.md", "contracts.md", "format.md", "performance.md")


def pages(source_dir):
    yield "README.md"
    for page in sorted((source_dir / "share/doc").glob("*.md")):
        if page.name not in NOT_GUIDES:
            yield f"share/doc/{page.name}"


def install(build_dir, prefix, cmake):
    done = subprocess.run([cmake, "--install", build_dir, "--prefix", prefix], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise SystemExit(f"Kedge cannot be installed from {build_dir}:\n{done.stdout}{done.stderr}")
    for file in ("share/kedge/slurm/job.sbatch", "share/man/man5/kedge.toml.5"):
        if not (prefix / file).exists():
            raise SystemExit(f"{file} was not installed")


def make_environment(work, prefix, build_dir, mpiexec):
    """Nothing of the caller's configuration, and every launch under a time limit, also with more ranks than cores."""
    tools = work / "bin"
    tools.mkdir()
    launcher = tools / "mpirun"
    # An alarm outlives exec, and unlike `timeout` leaves other signals to the launcher.
    limited = f"import os, signal, sys; signal.alarm({MPIRUN_LIMIT_S}); os.execv(sys.argv[1], sys.argv[1:])"
    launcher.write_text(f'#!/bin/sh\nexec /usr/bin/python3 -c "{limited}" {shutil.which(mpiexec)} "$@"\n')
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    kept = {name: value for name, value in os.environ.items() if not re.match(r"(KEDGE|SLURM|CMAKE)_", name)}
    if shutil.which("ccache"):  # pages that did not change compile once; the installation is elsewhere each time
        kept.update(CMAKE_CXX_COMPILER_LAUNCHER="ccache", CMAKE_C_COMPILER_LAUNCHER="ccache", CCACHE_BASEDIR=str(work))
    return {**kept, "PATH": f"{tools}:{prefix / 'bin'}:{build_dir / 'bin'}:{kept['PATH']}", "LC_ALL": "C.UTF-8",
            "CMAKE_PREFIX_PATH": str(prefix), "CMAKE_GENERATOR": "Ninja"}


class Results:
    def __init__(self):
        self.failed, self.ran, self.skipped = 0, 0, 0

    def add(self, block, problem="", skipped="", seconds=0.0):
        name = f"{block.place} {block.name}"
        if problem:
            self.failed += 1
            print(f"FAILED {name}: {problem}")
        elif skipped:
            self.skipped += 1
            print(f"skipped {name}: {skipped}")
        else:
            self.ran += 1
            print(f"ok {name} ({seconds:.1f} s)")
        sys.stdout.flush()


def run_page(blocks, work, arguments, environment, problems, results):
    sessions = {}
    for block in blocks:
        began = time.monotonic()
        if block.language == "fortran" and not arguments.fortran and "skip" not in block.keys:
            results.add(block, skipped="this build has no Fortran module")
            continue
        if problem := problems.get(project.target(block)):
            results.add(block, f"it does not compile:\n{problem}")
            continue
        if block.session not in sessions:
            clone = any("clone" in one.keys for one in blocks if one.session == block.session)
            # Short: MPI puts sockets below TMPDIR, whose paths have about 100 bytes at most.
            directory = work / f"s{sum(1 for _ in work.glob('s*'))}" / "job"
            sessions[block.session] = Session(directory, arguments.source_dir, arguments.build_dir,
                                              work / "project/build", environment, clone)
        try:
            problem = sessions[block.session].run(block)
            results.add(block, problem, seconds=time.monotonic() - began)
        except Skip as why:
            results.add(block, skipped=str(why))


def main():
    parser = argparse.ArgumentParser()
    for name in ("source_dir", "build_dir"):
        parser.add_argument(name, type=Path)
    for name in ("cmake", "mpiexec"):
        parser.add_argument(name)
    parser.add_argument("--fortran", action="store_true")
    parser.add_argument("--only", default="", help="regular expression: PAGE:LINE NAME")
    parser.add_argument("--keep", action="store_true", help="leave the directories where blocks ran")
    arguments = parser.parse_args()
    results = Results()
    by_page = {page: blocks_of(page, (arguments.source_dir / page).read_text()) for page in pages(arguments.source_dir)}
    for blocks in by_page.values():
        for block in blocks:
            if block.problem:
                results.add(block, block.problem)
    by_page = {page: [one for one in blocks if not one.problem] for page, blocks in by_page.items()}
    wanted = {one.place for blocks in by_page.values() for one in blocks
              if re.search(arguments.only, f"{one.place} {one.name}")}
    by_page = {page: [one for one in blocks if any(other.session == one.session and other.place in wanted for other in blocks)]
               for page, blocks in by_page.items()}
    work = Path(tempfile.mkdtemp(prefix="kd"))
    try:
        prefix = work / "prefix"
        install(arguments.build_dir, prefix, arguments.cmake)
        environment = make_environment(work, prefix, arguments.build_dir, arguments.mpiexec)
        programs = [one for blocks in by_page.values() for one in blocks
                    if project.is_program(one) and (one.language != "fortran" or arguments.fortran)]
        began = time.monotonic()
        problems = project.build(programs, work / "project", arguments.source_dir, environment, arguments.cmake,
                                 arguments.fortran)
        print(f"{len(programs)} programs compiled in {time.monotonic() - began:.1f} s")
        for blocks in by_page.values():
            run_page(blocks, work, arguments, environment, problems, results)
    finally:
        if arguments.keep:
            print(f"kept {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)
    print(f"{results.ran} blocks ran, {results.skipped} skipped, {results.failed} failed")
    return 0 if results.failed == 0 and results.ran > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
