"""Times checkpoints of a state of CUDA tensors: Kedge against plain copies, torch.save and torch.distributed.checkpoint
(DCP), in one run and in turn.

    PYTHONPATH=build/python python3 torch_bench.py [--device cuda] [--mib 1024] [--rounds 7] [--directory /dev/shm]

*Blocked* is how long the program waits until it may change its tensors: for Kedge until commit returns, for DCP until
async_save returns or, with staging in the background, until the copy is staged. *Done* is until a copy exists outside this
process: for Kedge level local, for DCP the end of its future. Shown are medians over rounds, and ratios within a round.
Then every byte is compared, of tensors that were overwritten as soon as commit had returned. DCP's ways that do not work
here are left out, with the reason.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time

import torch
import torch_rows as rows

import kedge

#: What is divided by what, and the target: "least" or "most".
RATIOS = [
    ("torch.save", "Kedge, blocked", ("least", 10)),
    ("torch.save", "Kedge with snapshot, blocked", ("least", 10)),
    ("async_save, blocked", "Kedge, blocked", ("least", 2)),
    ("async_save, blocked", "Kedge with snapshot, blocked", ("least", 2)),
    ("async_save with pinned staging, blocked", "Kedge, blocked", ("least", 2)),
    ("async_save with pinned staging, blocked", "Kedge with snapshot, blocked", ("least", 2)),
    ("Kedge with snapshot, blocked", "copy within the device", ("most", 1.2)),
    ("Kedge, blocked", "copy to the host", None),
    ("Kedge by buffers, blocked", "copy to the host", None),
    ("torch.load", "Kedge, load", None),
]
WARM_UP_ROUNDS = 12  # files are new at first, and are registered with the driver when they are used again
LEAST_ROUNDS = 3
FILES = 20  # of the state's size at most, of all rows together


def measure(measured, rounds, end, wake):
    """In turn: seconds by row and part, of the rounds and of those to warm up; and why rows were left out."""
    seconds, prefault, skipped = {}, {}, {}
    for number in range(-WARM_UP_ROUNDS, rounds):
        if number >= LEAST_ROUNDS and time.monotonic() > end:
            break
        for row in list(measured):
            if number < -1 and row.is_slow:
                continue
            if number >= -1:
                wake()
            try:
                parts = row.work()
            except Exception as error:
                if not row.may_fail:
                    raise
                skipped[row.name] = f"{type(error).__name__}: {error}".splitlines()[0]
                measured.remove(row)
                for name in [name for name in seconds if name.partition(", ")[0] == row.name]:
                    del seconds[name]
                continue
            for part, value in parts.items():
                kept = prefault if number < 0 else seconds
                kept.setdefault(f"{row.name}, {part}" if part else row.name, []).append(value)
    return seconds, prefault, skipped


def spread(values):
    return (max(values) - min(values)) / statistics.median(values)


def ratios_of(seconds):
    found = {}
    for above, below, target in RATIOS:
        if above not in seconds or below not in seconds:
            continue
        each = [a / b for a, b in zip(seconds[above], seconds[below])]
        ratio = {"median": statistics.median(each), "min": min(each), "max": max(each)}
        if target is not None:
            word, limit = target
            ratio |= {f"at_{word}": limit, "reached": ratio["median"] >= limit if word == "least" else ratio["median"] <= limit}
        found[f"{above} / {below}"] = ratio
    return found


def show(report):
    print(f"{report['gpu']}, PyTorch {report['torch']}, {report['tensors']} tensors of {report['bytes']} bytes, "
          f"{report['rounds']} rounds")
    for name, row in report["rows"].items():
        slowest = f"; slowest warm-up {max(row['warm_up_seconds']):.4f}" if row["warm_up_seconds"] else ""
        print(f"  {name:50} {row['median']:9.4f} s {row['gb_per_s']:8.2f} GB/s  (spread {row['spread'] * 100:.0f} %{slowest})")
    for name, reason in report["skipped"].items():
        print(f"  skipped: {name}: {reason}")
    for name, ratio in report["ratios"].items():
        target = ""
        for word in ("least", "most"):
            if f"at_{word}" in ratio:
                target = f"; target at {word} {ratio[f'at_{word}']}: {'reached' if ratio['reached'] else 'missed'}"
        print(f"  {name:75} {ratio['median']:8.2f} ({ratio['min']:.2f} to {ratio['max']:.2f}{target})")
    for name, level in report["levels"].items():
        print(f"  {name}: level {level} when commit returned")


def run(arguments, directory, stack):
    """The report, after all bytes were compared."""
    end = time.monotonic() + arguments.seconds
    free = os.statvfs(directory)
    size = min(arguments.mib << 20, free.f_bavail * free.f_frsize // FILES)
    if size < arguments.mib << 20:
        print(f"{arguments.directory} has little space: {size} bytes are measured")
    state = rows.training_state(size, arguments.device)
    copies = {name: tensor.clone() for name, tensor in state.items()}
    engines, skipped = rows.kedge_engines(directory, state, stack)
    measured = [*rows.copies(state, copies), *rows.of_torch(directory, state), *rows.of_dcp(directory, state, stack),
                *(rows.Row(engine.name, engine.save) for engine in engines), *rows.loads(directory, engines[0], copies)]
    seconds, prefault, failed = measure(measured, arguments.rounds, end, lambda: rows.wake(state))
    size = sum(tensor.nbytes for tensor in state.values())
    table = {name: {"median": statistics.median(values), "spread": spread(values),
                    "gb_per_s": size / statistics.median(values) / 1e9, "seconds": values,
                    "warm_up_seconds": prefault.get(name, [])} for name, values in seconds.items()}
    report = {"gpu": torch.cuda.get_device_name() if arguments.device == "cuda" else "no GPU: tensors of the host",
              "torch": torch.__version__, "cuda": torch.version.cuda, "kedge": kedge.__version__, "device": arguments.device,
              "bytes": size, "tensors": len(state), "rounds": len(next(iter(seconds.values()))), "rows": table,
              "ratios": ratios_of(seconds), "skipped": skipped | failed}
    for name, tensor in state.items():
        copies[name].copy_(tensor)
    report["levels"] = {engine.name: rows.check_bytes(engine, state, copies) for engine in engines}
    report["verified"] = True
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--mib", type=int, default=1024, help="of state")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=40, help=f"after which no round begins, beyond {LEAST_ROUNDS}")
    parser.add_argument("--directory", default="/dev/shm", help="on a filesystem in memory: stores and files go there")
    parser.add_argument("--json", help="FILE: everything, each round too")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("skipped: PyTorch finds no CUDA device")
        return 77
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="kedge-torch-bench-", dir=arguments.directory))
        report = run(arguments, directory, stack)
    show(report)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(report, file, indent=2)
    if any(name.startswith("async_save") for name in report["skipped"]):
        sys.stdout.flush()
        os._exit(0)  # a way of DCP that did not end must not keep this process
    return 0


if __name__ == "__main__":
    sys.exit(main())
