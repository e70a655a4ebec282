"""Trains linear models by gradient descent, one on each rank, and survives being killed: start it again and it goes on.

    mpirun -n 4 python3 train_numpy.py

Each rank trains a model of its own, to keep this short: what counts is how they checkpoint. Needs NumPy and kedge.
"""

import argparse
import os
import signal

import numpy as np

import kedge


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--die-at", type=int, default=0, help="kill rank 1 at this step, to see it resume")
    arguments = parser.parse_args()

    with kedge.Engine() as engine:
        random = np.random.default_rng(engine.rank)
        weights, momentum, step = np.zeros(64), np.zeros(64), 0

        with engine.restart() as saved:
            if saved:
                saved.load("weights", out=weights)
                saved.load("momentum", out=momentum)
                random.bit_generator.state = saved.load_object("random")
                step = saved.attributes["step"]
                if engine.rank == 0:
                    print(f"resumed at step {step}", flush=True)

        truth = np.linspace(-1, 1, 64)
        while step < arguments.steps:
            step += 1
            inputs = random.normal(size=(32, 64))
            errors = inputs @ (weights - truth)
            momentum = 0.9 * momentum + inputs.T @ errors / len(errors)
            weights -= 0.02 * momentum
            if arguments.die_at == step and engine.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if step % 10 == 0:
                with engine.checkpoint(f"step-{step}", {"step": step}) as checkpoint:
                    checkpoint.save("weights", weights)
                    checkpoint.save("momentum", momentum)
                    checkpoint.save_object("random", random.bit_generator.state)
            if step % 50 == 0 and engine.rank == 0:
                print(f"step {step}: loss {np.mean(errors**2):.6e}", flush=True)


if __name__ == "__main__":
    main()
