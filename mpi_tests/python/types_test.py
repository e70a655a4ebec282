"""types_test.py DIRECTORY: the package is typed: mypy finds nothing in it."""

import subprocess
import sys

import place

place.need("mypy", "torch")
sys.exit(subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", "/dev/null", "kedge"],
                        cwd=sys.argv[1]).returncode)
