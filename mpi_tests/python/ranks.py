"""Starts several_ranks.py and looks at what it printed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "several_ranks.py"


def run(launcher, path, *arguments, **environment):
    """What it printed. Every rank must have come to its end."""
    done = subprocess.run([*launcher, str(PROGRAM), path, *arguments], text=True, timeout=100, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, "OMP_NUM_THREADS": "1", **environment})
    missing = [rank for rank in range(4) if f"rank {rank}: done" not in done.stdout]
    if done.returncode != 0 or missing:
        sys.exit(f"exit status {done.returncode}, ranks {missing} did not come to their end:\n{done.stdout}")
    return done.stdout


def check(launcher, path, *arguments):
    """Runs it, takes a node away, and runs it again."""
    first = run(launcher, path, *arguments)
    assert "resumed" not in first, first
    shutil.rmtree(next(Path(path, "store").iterdir()))
    second = run(launcher, path, *arguments)
    assert second.count("resumed, rebuilt") == 4, second
