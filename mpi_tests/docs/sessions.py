"""Runs the blocks of a session one after the other, in a directory of its own."""

import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

from project import in_scaffold, is_program, target

MPIRUN_LIMIT_S = 60  # of each launch
BLOCK_LIMIT_S = 200
MUST_FAIL = re.compile(r"^(?P<command>[^#]*?)\s+#\s*(?:dies|fails|killed)\b.*$")
NO_H5PY = "ModuleNotFoundError: No module named 'h5py'"


class Skip(Exception):
    pass


def script_of(block):
    """As a person types it: what fails ends it, but for commands that a comment says fail."""
    text = block.text
    for pair in block.keys.get("where", "").split():
        word, _, value = pair.partition("=")
        text = re.sub(rf"(?<![\w./-]){re.escape(word)}(?![\w./-])", value, text)
    lines = []
    for line in text.split("\n"):
        fails = MUST_FAIL.match(line)
        if fails:
            command = fails.group("command")
            lines.append(f"if {command}; then echo {shlex.quote('this did not fail: ' + command)}; exit 1; fi")
        else:
            lines.append(line)
    return "set -euo pipefail\n" + "\n".join(lines)


def missing_lines(wanted, output):
    """The first line of `wanted` that is not in the output after the lines before it, or None. Gaps in lines are equal;
    an ellipsis stands for anything, alone on its line for any lines. The log and other lines come by different streams,
    so each has an order of its own."""
    have = [re.sub(r"\s+", " ", line.strip()) for line in output.split("\n")]
    at = {True: 0, False: 0}
    for line in wanted.strip("\n").split("\n"):
        plain = re.sub(r"\s+", " ", line.strip())
        if plain in ("…", "...", ""):
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in re.split(r"…|\.\.\.", plain)))
        is_log = plain.startswith("[kedge]")
        found = next((i for i in range(at[is_log], len(have)) if pattern.fullmatch(have[i])), None)
        if found is None:
            return line
        at[is_log] = found + 1
    return None


class Session:
    def __init__(self, directory, source_dir, build_dir, programs, environment, clone):
        self.directory, self.source_dir, self.programs, self.output = directory, source_dir, programs, ""
        directory.mkdir(parents=True)
        (directory / "tmp").mkdir()
        self.environment = {**environment, "HOME": str(directory), "TMPDIR": str(directory / "tmp"), "PWD": str(directory),
                            "KEDGE_STORE_PATH": str(directory / "tmp")}
        if clone:
            for name in ("share", "examples"):
                (directory / name).symlink_to(source_dir / name)
            (directory / "build").symlink_to(build_dir)

    def command(self, words, what):
        """Runs it in the session, in a process group that is ended with it; returns what it printed."""
        with subprocess.Popen(words, cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              start_new_session=True) as process:
            try:
                output, _ = process.communicate(timeout=BLOCK_LIMIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
                return f"{what} took more than {BLOCK_LIMIT_S} s:\n{output}"
        self.output = output
        if process.returncode != 0:
            if NO_H5PY in output:
                raise Skip("python3-h5py is not installed")
            return f"{what} ended with status {process.returncode}:\n{output}"
        return ""

    def run_program(self, block):
        ranks, *arguments = block.keys.get("run", "1").split()
        program = str(self.programs / target(block))
        if ranks == "none":
            if "file" in block.keys:
                (self.directory / Path(block.keys["file"]).stem).symlink_to(program)
            return ""
        if ranks == "1" and "testing" in block.keys.get("scaffold", ""):
            return self.command([program, *arguments], "the program")
        return self.command(["mpirun", "-n", ranks, program, *arguments], "the program")

    def configure(self, block):
        if "scaffold" not in block.keys:
            return "a block of CMake needs `scaffold FILE`, or `file NAME` and a script that uses it"
        project = self.directory / f"cmake-{block.name}"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(in_scaffold(block))
        (project / "main.cpp").write_text("#include <kedge/kedge.hpp>\nint main() { return 0; }\n")
        return self.command(["cmake", "-S", project, "-B", project / "build"], "configuring")

    def run(self, block):
        """What is wrong, or nothing. Throws Skip."""
        if "file" in block.keys:
            (self.directory / block.keys["file"]).write_text(block.text)
        if "skip" in block.keys:
            raise Skip(block.keys["skip"])
        if "same" in block.keys:
            same = block.text == (self.source_dir / block.keys["same"]).read_text()
            return "" if same else f"it differs from {block.keys['same']}"
        if is_program(block):
            return "" if "stub" in block.keys else self.run_program(block)
        if "output" in block.keys:
            missing = missing_lines(block.text, self.output)
            return "" if missing is None else f"nothing printed this line: {missing}\nwhat was printed:\n{self.output}"
        if block.language in ("sh", "bash") or (block.language == "" and "shell" in block.keys):
            script = self.directory / f".{block.name}.sh"
            script.write_text(script_of(block))
            return self.command(["bash", str(script)], "the script")
        if block.language == "python":
            script = self.directory / f".{block.name}.py"
            script.write_text(block.text)
            return self.command(["/usr/bin/python3", "-B", str(script)], "the script")
        if block.language == "toml":
            file = Path(self.directory / f".{block.name}.toml")
            file.write_text(block.text)
            return self.command(["env", "-u", "KEDGE_STORE_PATH", f"KEDGE_CONFIG={file}", "kedge", "config"],
                                "kedge config")
        if block.language == "cmake":
            return "" if "file" in block.keys else self.configure(block)
        if "file" in block.keys:
            return ""
        return f"nobody knows how to test a block in '{block.language or 'no language'}'; declare `shell`, `output` or `skip`"
