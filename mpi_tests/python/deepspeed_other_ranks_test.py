"""2 and 4 ranks load with DeepSpeed what 3 ranks saved, with files for torch.load and without: without ZeRO all of it, with
ZeRO the weights; DeepSpeed refuses the partitions, on all ranks, and Kedge says what to do. A file that cannot be written
fails on all ranks; after damage an older checkpoint is loaded."""

import os
import shutil
import sys
from pathlib import Path

import place
from warm import Warm

place.need("torch", "deepspeed")
PROGRAM = str(Path(__file__).resolve().parent / "deepspeed_sizes.py")
FULL = os.environ.get("KEDGE_TEST_FULL") == "1"
warm = Warm("deepspeed", {**os.environ, **place.DEEPSPEED})


def run(ranks, directory, torch_files, stage, *how):
    done = warm.run(PROGRAM, directory, torch_files, stage, *how, ranks=ranks)
    missing = [rank for rank in range(ranks) if f"rank {rank}: done" not in done.stdout]
    if done.returncode != 0 or missing:
        sys.exit(f"{ranks} ranks, torch_files {torch_files}, stage {stage}: ranks {missing} did not end:\n{done.stdout}")
    return done.stdout


CASES = [("false", "0"), ("true", "1"), ("false", "3")] + [("true", "0"), ("false", "1"), ("true", "3")] * FULL
for torch_files, stage in CASES:
    with place.directory() as saved:
        run(3, saved, torch_files, stage)
        for ranks, lost in ((2, None), (4, "store")) if torch_files == "false" else ((2, None),):
            with place.directory() as directory:
                # Kedge knows a checkpoint by the directory that it was saved to.
                shutil.copytree(saved, f"{directory}/kept", symlinks=True)
                if lost:
                    shutil.rmtree(f"{saved}/{lost}")
                output = run(ranks, saved, torch_files, stage)
                if stage != "3" or ranks < 3:  # else it raises
                    assert f"was saved by 3 ranks, and this job has {ranks}" in output, output
                    assert ("ds_to_universal.py" in output) == (stage != "0"), output
                shutil.rmtree(saved)
                shutil.copytree(f"{directory}/kept", saved, symlinks=True)
        if torch_files == "false" and stage == "0":
            for file in Path(saved, "prefix").glob("t.*/data/*/rank-1.h5"):  # which the second process reads
                data = bytearray(file.read_bytes())
                data[data.index(b'{"version": 1, "mark": ') + 25] ^= 1
                file.write_bytes(data)
            shutil.rmtree(f"{saved}/store")
            run(2, saved, torch_files, stage, "damaged")
warm.close()
