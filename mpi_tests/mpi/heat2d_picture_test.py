#!/usr/bin/python3
"""A picture that heat2d cannot read, on one rank or on all, ends it on all ranks with a message: no hang, no bad_alloc.

usage: heat2d_picture_test.py HEAT2D MPIEXEC
"""
import os
import pathlib
import subprocess
import sys
import tempfile

HEAT2D, MPIEXEC = sys.argv[1:3]
RANKS = 4
LIMIT_S = 30
GOOD = b"P5\n8 8\n255\n" + bytes(range(64))


def run(directory, picture, bad_picture, bad_ranks):
    """Exit code and stderr of a job in which some ranks are given another picture."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KEDGE_")} | {
        "KEDGE_STORE_PATH": f"{directory}/store", "KEDGE_PERSISTENT_PATH": f"{directory}/prefix"}
    choose = f'case " {bad_ranks} " in *" ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} "*) picture=$2;; *) picture=$1;; esac; '
    done = subprocess.run(
        ["timeout", "--kill-after=5", str(LIMIT_S), MPIEXEC,
         "-n", str(RANKS), "sh", "-c", choose + 'exec "$0" "$picture" --steps 2', HEAT2D,
         str(picture), str(bad_picture)],
        env=environment, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, done.stderr


def main():
    cases = {  # content of the picture, None if it is missing; what the message must say
        "missing": (None, "cannot be opened"),
        "empty": (b"", "is not a PGM picture"),
        "jpeg": (b"\xff\xd8\xff\xe0", "is not a PGM picture"),
        "cut": (GOOD[:-1], "ends before its last pixel"),
        "cut-text": (b"P2\n3 1\n9\n1 2", "ends before its last pixel"),
        "large": (b"P5\n16000 16000\n255\n\0", "ends before its last pixel"),
        "huge": (b"P5\n60000 60000\n255\n\0", "claims 60000 x 60000 pixels"),
        "overflow": (b"P5\n4294967296 4294967296\n255\n\0", "claims 4294967296 x 4294967296 pixels"),
        "beyond": (b"P5\n99999999999999999999 1\n255\n\0", "is not a PGM picture"),
    }
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "good").write_bytes(GOOD)
        code, err = run(directory, directory / "good", directory / "good", "")
        assert code == 0, err
        for case, (content, message) in cases.items():
            if content is not None:
                (directory / case).write_bytes(content)
            for bad_ranks in ("2", "0 1 2 3") if case in ("missing", "huge") else ("0 1 2 3",):
                code, err = run(directory, directory / "good", directory / case, bad_ranks)
                assert code not in (0, 124, 137), (case, bad_ranks, code, err)
                first = bad_ranks.split()[0]
                assert f"heat2d: on rank {first}: {directory / case} {message}" in err, (case, bad_ranks, err)
    print(f"{len(cases)} pictures refused")


main()
