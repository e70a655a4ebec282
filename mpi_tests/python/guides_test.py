"""guides_test.py DIRECTORY_OF_PAGES: the programs of the guides run; stopped before the end and started again they go on,
one of them with another number of ranks."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import place

place.need("torch")
DECLARED = re.compile(r"<!-- example: (?:python-)?program, [^\n]*-->\n```python\n(.*?)```", re.S)


def run(program, directory, ranks=2):
    """What they print."""
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), str(program)],
                          cwd=directory, text=True, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **place.DEEPSPEED, "KEDGE_STORE_PATH": f"{directory}/store"})
    assert done.returncode == 0, done.stdout
    return done.stdout


for page, steps, ranks in (("python.md", 200, 2), ("deepspeed.md", 20, 2), ("another-number-of-ranks.md", 200, 3)):
    programs = DECLARED.findall(Path(sys.argv[1], page).read_text())
    assert len(programs) == 1, page
    if "deepspeed" in page and importlib.util.find_spec("deepspeed") is None:
        print(f"skipped {page}: {sys.executable} has no deepspeed")
        continue
    if "torch" not in programs[0]:  # torchrun's processes are ranks of torch.distributed once that is initialized
        programs[0] = f"import torch\ntorch.distributed.init_process_group('gloo')\n{programs[0]}"
    with place.directory() as directory:
        program = Path(directory, "program.py")
        half = programs[0].replace(f"< {steps}:", f"< {steps // 2 + 1}:")
        assert half != programs[0]
        program.write_text(half)
        assert "resumed" not in run(program, directory)
        program.write_text(programs[0])
        output = run(program, directory, ranks)
        resumed = f"resumed at step {steps // 2}" + (f", 2 to {ranks} ranks\n" if ranks != 2 else "\n")
        assert resumed in output, output
