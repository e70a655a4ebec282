"""Compiles the blocks that are programs, all in one CMake project against an installed Kedge, as a reader would."""

import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENDINGS = {"cpp": "cpp", "c": "c", "fortran": "f90"}
PLACE = re.compile(r"^.*\[example\].*$\n?", re.M)


def is_program(block):
    return block.language in ENDINGS and "skip" not in block.keys


def target(block):
    return re.sub(r"\W", "_", f"{block.page}_{block.name}")


def in_scaffold(block, directory=HERE / "scaffolds"):
    """The block where the scaffold has [example]."""
    scaffold = (directory / block.keys["scaffold"]).read_text()
    if len(PLACE.findall(scaffold)) != 1:
        raise ValueError(f"{block.keys['scaffold']} does not have one line with [example]")
    return PLACE.sub(lambda _: block.text, scaffold)


def source_of(block, source_dir):
    """The compiler's messages name the page and its line."""
    line = f'#line {block.line + 1} "{source_dir / block.page}"\n' if block.language != "fortran" else ""
    if "scaffold" not in block.keys:
        return line + block.text
    block_with_line = type(block)(**{**block.__dict__, "text": line + block.text})
    return in_scaffold(block_with_line)


def is_routine(block):
    """Of Fortran, that a program of the tests calls."""
    return block.language == "fortran" and "scaffold" not in block.keys and not re.search(r"(?mi)^\s*program\b", block.text)


def write_project(blocks, directory, source_dir, languages):
    lines = ["cmake_minimum_required(VERSION 3.25)", f"project(pages LANGUAGES {' '.join(languages)})",
             "set(CMAKE_CXX_STANDARD 20)", "set(CMAKE_C_STANDARD 99)", "set(CMAKE_C_EXTENSIONS OFF)",
             'set(CMAKE_C_FLAGS "-O0 -Wall -Wextra")', 'set(CMAKE_CXX_FLAGS "-O0 -Wall -Wextra")',
             f"find_package(kedge REQUIRED COMPONENTS kedge testing{' fortran' * ('Fortran' in languages)})", "find_package(MPI REQUIRED COMPONENTS C CXX)"]
    for block in blocks:
        name = target(block)
        file = f"{name}.{ENDINGS[block.language]}"
        (directory / file).write_text(source_of(block, source_dir))
        if "stub" in block.keys:
            lines += [f"add_library({name} OBJECT {file})", f"target_include_directories({name} PRIVATE {HERE / 'stubs'})",
                      f"target_link_libraries({name} PRIVATE MPI::MPI_CXX MPI::MPI_C)"]
            continue
        if is_routine(block):
            lines += [f"add_library({name} OBJECT {file})", f"target_link_libraries({name} PRIVATE kedge::fortran)"]
            continue
        library = "kedge::fortran" if block.language == "fortran" else "kedge::kedge"
        testing = " kedge::testing" if "kedge/testing/" in block.text or "testing" in block.keys.get("scaffold", "") else ""
        lines += [f"add_executable({name} {file})", f"target_link_libraries({name} PRIVATE {library}{testing})"]
    (directory / "CMakeLists.txt").write_text("\n".join(lines) + "\n")


def build(blocks, directory, source_dir, environment, cmake, with_fortran):
    """{target: what the compiler said, or nothing if it is well}."""
    directory.mkdir()
    languages = ["C", "CXX"] + (["Fortran"] if with_fortran else [])
    write_project(blocks, directory, source_dir, languages)
    configured = subprocess.run([cmake, "-S", directory, "-B", directory / "build", "-G", "Ninja"], env=environment,
                                capture_output=True, text=True, timeout=120)
    if configured.returncode != 0:
        raise SystemExit(f"the project of all programs cannot be configured:\n{configured.stdout}{configured.stderr}")
    made = subprocess.run([cmake, "--build", directory / "build", "--", "-k", "0"], env=environment,
                          capture_output=True, text=True, timeout=400)
    problems = {}
    for block in blocks:
        name = target(block)
        good = list((directory / "build").glob(f"CMakeFiles/{name}.dir/*.o")) if "stub" in block.keys or is_routine(block) else \
            (directory / "build" / name).exists()
        problems[name] = "" if good else messages_about(made.stdout, name)
    if made.returncode != 0 and not any(problems.values()):
        raise SystemExit(f"the project of all programs cannot be built:\n{made.stdout}")
    return problems


def messages_about(output, name):
    """Of ninja's output, what belongs to this target."""
    steps = re.split(r"(?m)^(?=\[\d+/\d+\] |FAILED: )", output)
    return "".join(step for step in steps if f"{name}.dir" in step) or output[-3000:]
