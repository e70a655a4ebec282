"""DeepSpeed's checkpoints by Kedge.

    import kedge.deepspeed

    kedge.deepspeed.install(config)              # before deepspeed.initialize
    engine, *_ = deepspeed.initialize(model=model, config=config)
    _, state = engine.load_checkpoint("checkpoints")     # the newest that all ranks can recover
    ...
    engine.save_checkpoint("checkpoints", client_state={"step": step})
"""

from ._checkpoint_engine import KedgeCheckpointEngine
from ._install import install
from ._shared import finalize

__all__ = ["KedgeCheckpointEngine", "finalize", "install"]
