"""Loaded once in the fork server in whose processes DeepSpeed's tests run: they inherit the engine, and need not import
DeepSpeed again."""

import os

import deepspeed.runtime.engine as runtime
from deepspeed import comm

import kedge.deepspeed

ENGINE = os.environ["CHECK_ENGINE"]  # stock, kedge, or kedge-alone: without torch files
WORK = os.environ["CHECK_WORK"]
os.environ["KEDGE_TEST_RANKS_PER_NODE"] = "1"  # each rank counts as a node


def create_in_place_of_the_test(*arguments, **named):
    """Each class of tests is a run of its own."""
    with open(os.path.join(WORK, "current")) as file:
        place = file.read()
    with open(os.path.join(WORK, f"{ENGINE}-made"), "a") as file:
        file.write(".")
    os.environ["KEDGE_STORE_PATH"] = place + "/store/{node}"
    os.environ["KEDGE_PERSISTENT_PATH"] = place + "/prefix"
    return create(*arguments, **named)


def finished(gather):
    """DeepSpeed 0.19.5 waits only for the last of several gathers; over gloo the others may go on."""

    def call(*arguments, async_op=False, **named):
        handle = gather(*arguments, async_op=async_op, **named)
        if async_op and handle is not None:
            handle.wait()
        return handle

    return call


if os.environ["CHECK_IN_ORDER"] == "yes":
    comm.all_gather = finished(comm.all_gather)
    comm.all_gather_into_tensor = finished(comm.all_gather_into_tensor)

if ENGINE != "stock":
    kedge.deepspeed.install({"kedge": {"torch_files": ENGINE == "kedge", "store": {"keep": 3}, "log": {"level": "error"}}})
    create = runtime.create_checkpoint_engine
    runtime.create_checkpoint_engine = create_in_place_of_the_test
