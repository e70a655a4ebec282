"""Trains linear models by gradient descent, and survives being killed: start it again, with any number of ranks, and it
goes on.

    mpirun -n 4 python3 train_numpy.py

Each rank trains its share of the models, to keep this short: what counts is how they checkpoint. Needs NumPy and kedge.
"""

import argparse
import os
import signal
import zlib

import numpy as np

import kedge

MODELS, SIZE = 24, 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--die-at", type=int, default=0, help="kill rank 1 at this step, to see it resume")
    arguments = parser.parse_args()

    with kedge.Engine() as engine:
        mine = range(MODELS * engine.rank // engine.size, MODELS * (engine.rank + 1) // engine.size)
        block = kedge.Shard((MODELS, SIZE), (mine.start, 0))  # of the weights of all models, these are mine
        weights, momentum = np.zeros((len(mine), SIZE)), np.zeros((len(mine), SIZE))
        random = {model: np.random.default_rng(model) for model in mine}
        step = 0

        with engine.restart() as saved:
            if saved:  # whichever ranks saved it, and however many there were
                wants = {f"random/{model}": kedge.Want() for model in mine}
                wants["weights"] = kedge.Want(shard=block, out=weights)
                wants["momentum"] = kedge.Want(shard=block, out=momentum)
                loaded = saved.load_all(wants)
                for model in mine:
                    random[model].bit_generator.state = kedge.loads(loaded[f"random/{model}"])
                step = saved.attributes["step"]
                if engine.rank == 0:
                    print(f"resumed at step {step}", flush=True)

        truth = np.linspace(-1, 1, SIZE)
        while step < arguments.steps:
            step += 1
            for i, model in enumerate(mine):
                inputs = random[model].normal(size=(32, SIZE))
                errors = inputs @ (weights[i] - truth)
                momentum[i] = 0.9 * momentum[i] + inputs.T @ errors / len(errors)
                weights[i] -= 0.02 * momentum[i]
                if step % 50 == 0 and model == 0:
                    print(f"step {step}: loss {np.mean(errors**2):.6e}", flush=True)
            if arguments.die_at == step and engine.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if step % 10 == 0:
                with engine.checkpoint(f"step-{step}", {"step": step}) as checkpoint:
                    checkpoint.save("weights", weights, shard=block)
                    checkpoint.save("momentum", momentum, shard=block)
                    for model in mine:
                        checkpoint.save_object(f"random/{model}", random[model].bit_generator.state)
        for i, model in enumerate(mine):
            print(f"model {model}: checksum {zlib.crc32(weights[i].tobytes()):08x}", flush=True)


if __name__ == "__main__":
    main()
