"""types_test.py DIRECTORY: mypy finds nothing in the package."""

import subprocess
import sys

import place

place.need("mypy", "torch")
sys.exit(subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", "/dev/null", "kedge"],
                        cwd=sys.argv[1]).returncode)
