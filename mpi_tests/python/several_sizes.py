"""several_sizes.py DIRECTORY [save | damaged]: saves as so many ranks as there are, or loads what other ranks saved, of which
the newest is damaged. Each rank ends with "rank N: done".

usage: mpirun -n 4 python3 several_sizes.py DIRECTORY save; mpirun -n 3 python3 several_sizes.py DIRECTORY
"""

import os
import sys

import numpy as np
import place

import kedge

SAVED_BY = 4
FIELD = np.arange(60, dtype=np.float64).reshape(10, 6)
FEW = np.arange(6, dtype=np.int32).reshape(3, 2)  # of which some ranks have no row
LONG = np.arange(40_000, dtype=np.float64)
HAS_TORCH = place.has("torch") and os.environ.get("WITH_TORCH", "1") == "1"  # slow to import
if HAS_TORCH:
    import torch

    WEIGHTS = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)


def block(rows, rank, size):
    """First row, and how many."""
    first = rows * rank // size
    return first, rows * (rank + 1) // size - first


def rows_of(array, rank, size):
    first, count = block(len(array), rank, size)
    return array[first : first + count], kedge.Shard(array.shape, (first,) + (0,) * (array.ndim - 1))


def save(engine):
    rank, size = engine.rank, engine.size
    assert size == SAVED_BY
    with engine.checkpoint("step-3", {"step": 3}) as c:
        mine, shard = rows_of(LONG, rank, size)
        c.save("long", mine, shard=shard)
    engine.wait("step-3", "persistent")
    with engine.checkpoint("step-7", {"step": 7}) as c:
        for name, array in (("field", FIELD), ("few", FEW), ("long", LONG)):
            mine, shard = rows_of(array, rank, size)
            c.save(name, mine, shard=shard)
        c.save("step", 7, replicated=True)
        c.save("alike", np.arange(3))
        c.save("differ", np.arange(3) + rank)
        c.save("own", np.arange(rank + 1))
        c.save("bytes", b"the same", replicated=True)
        c.save(f"box/{rank}", np.full((2, rank + 1), rank))
        c.save_object("random", {"rank": rank, "pad": "x" * 100 * rank})
        if rank == 2:
            c.save_object("only", {"of": rank})
        if HAS_TORCH:
            c.save("weights", WEIGHTS, replicated=True)
            c.save_state("training", {"model": {"w": WEIGHTS, "b": WEIGHTS[1]}, "step": 7})
            c.save_state("private", {"rank": rank, "noise": torch.full((3,), float(rank))})
            c.save_state("nearly", {"noise": torch.full((3,), float(rank == 3))})


def fails(kind, restart, wants, *words, own=None):
    """It fails on all ranks alike, and the checkpoint can still be loaded."""
    try:
        restart.load_all(wants)
    except Exception as error:
        assert type(error) is (own or kind), repr(error)
        for word in words if own is None else ():
            assert word in str(error), (word, str(error))
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def check_blocks(r, rank, size):
    mine, shard = rows_of(FIELD, rank, size)
    got = r.load_all({
        "field": kedge.Want(shard=shard, shape=mine.shape), "step": kedge.Want(replicated=True),
        "alike": kedge.Want(replicated=True), "bytes": kedge.Want(replicated=True), "only": kedge.Want(),
        "own": kedge.Want(of=rank % SAVED_BY), "random": kedge.Want(of=3), f"box/{rank % SAVED_BY}": kedge.Want()})  # fmt: skip
    np.testing.assert_array_equal(got["field"], mine)
    assert got["step"].shape == () and got["step"] == 7 and bytes(got["bytes"]) == b"the same", got
    np.testing.assert_array_equal(got["alike"], np.arange(3))
    np.testing.assert_array_equal(got["own"], np.arange(rank % SAVED_BY + 1))
    np.testing.assert_array_equal(got[f"box/{rank % SAVED_BY}"], np.full((2, rank % SAVED_BY + 1), rank % SAVED_BY))
    assert kedge.loads(got["only"]) == {"of": 2} and kedge.loads(got["random"])["rank"] == 3
    # Overlapping blocks, in columns; and no wants at all.
    first = min(rank, 4)
    got = r.load_all({"field": kedge.Want(shard=kedge.Shard(FIELD.shape, (2, first)), shape=(7, 2))} if rank != 1 else {})
    if rank != 1:
        np.testing.assert_array_equal(got["field"], FIELD[2:9, first : first + 2])
    else:
        assert got == {}
    got = r.load_all({"few": kedge.Want(shard=kedge.Shard((3, 2), (3, 0)), shape=(0, 2)), "field": kedge.Want(replicated=True)})
    assert got["few"].shape == (0, 2)
    np.testing.assert_array_equal(got["field"], FIELD)  # all of it


def check_memory(r, rank):
    large = np.full((12, 8), -1.0)
    fortran = np.full((10, 6), -1.0, order="F")
    every_other = np.full((6, 4), -1, dtype=np.int32)[::2, ::2]
    inside = large[1:11, 1:7]
    got = r.load_all({"field": kedge.Want(shard=kedge.Shard(FIELD.shape, (0, 0)), out=inside),
                      "few": kedge.Want(shard=kedge.Shard(FEW.shape, (0, 0)), out=every_other),
                      "bytes": kedge.Want(replicated=True, out=np.zeros(8, np.uint8))})  # fmt: skip
    assert got["field"] is inside and got["few"] is every_other
    np.testing.assert_array_equal(inside, FIELD)
    assert (large[0] == -1).all() and (large[:, 0] == -1).all() and (large[11] == -1).all() and (large[:, 7] == -1).all()
    np.testing.assert_array_equal(every_other, FEW)
    assert (every_other.base[1::2] == -1).all() and (every_other.base[:, 1::2] == -1).all()
    r.load_all({"field": kedge.Want(shard=kedge.Shard(FIELD.shape, (0, 0)), out=fortran)})
    np.testing.assert_array_equal(fortran, FIELD)
    if HAS_TORCH:
        weights = torch.zeros(4, 6, dtype=torch.bfloat16)
        turned = torch.zeros(6, 4, dtype=torch.bfloat16).T
        field = torch.zeros(3, 6, dtype=torch.float64)
        r.load_all({"weights": kedge.Want(replicated=True, out=weights),
                    "field": kedge.Want(shard=kedge.Shard(FIELD.shape, (rank % 7, 0)), out=field)})  # fmt: skip
        r.load_all({"weights": kedge.Want(replicated=True, out=turned)})
        assert torch.equal(weights, WEIGHTS) and torch.equal(turned, WEIGHTS) and not turned.is_contiguous()
        np.testing.assert_array_equal(field.numpy(), FIELD[rank % 7 : rank % 7 + 3])


def check_per_rank(r, rank, size):
    given, objects = [], {}
    got = r.load_all({"own": kedge.PerRank(lambda old, value: given.append((old, value.tolist()))),
                      "random": kedge.PerRank(lambda old, value: objects.update({old: kedge.loads(value)}))})  # fmt: skip
    assert got == {}, got
    assert [old for old, _ in given] == r.logical_ranks == sorted(objects), (given, objects, r.logical_ranks)
    assert all(value == list(range(old + 1)) for old, value in given), given
    assert all(value == {"rank": old, "pad": "x" * 100 * old} for old, value in objects.items())
    if size == SAVED_BY:
        assert r.logical_ranks == [rank]
    print(f"rank {rank}: reads {r.logical_ranks}", flush=True)


def check_mismatch(r, rank, size):
    untouched = np.full((10, 6), -1.0)
    wants = {"field": kedge.Want(shard=kedge.Shard(FIELD.shape, (0, 0)), out=untouched), "differ": kedge.Want(replicated=True),
             "none": kedge.Want(), "few": kedge.Want(), "step": kedge.Want(out=np.zeros((), np.float32)),
             "alike": kedge.Want(shard=kedge.Shard((3,), (0,)), shape=(3,)), "box/1": kedge.Want(of=2),
             "own": kedge.Want(), "random": kedge.Want()}  # fmt: skip
    words = ["'differ' are replicated now, but the ranks saved different values", "'none' were not saved",
             "'few' was saved as a block of a global array, int32 of shape (3, 2): say which block",
             "'step' was saved as replicated, int64 of shape (), and out is float32 of shape ()",
             "'alike' was saved as each rank's own, int64", "'box/1' was not saved by rank 2"]  # fmt: skip
    text = fails(kedge.Mismatch, r, wants, *words)
    assert ("'own', 'random' are each rank's own" in text) == (size != SAVED_BY), text
    assert (untouched == -1).all()
    for wrong, word in ((kedge.Want(shard=kedge.Shard((10, 7), (0, 0)), shape=(1, 1)), "not of (10, 7)"),
                        (kedge.Want(shard=kedge.Shard(FIELD.shape, (5, 0)), out=untouched), "field"),
                        (kedge.Want(shard=kedge.Shard(FIELD.shape, (0, 0)), shape=(10,)), "field"),
                        (kedge.PerRank(print), "ask for it by kedge.Want")):  # fmt: skip
        fails(kedge.Mismatch, r, {"field": wrong}, word)
        fails(kedge.Mismatch, r, {"field": wrong} if rank == 0 else {}, word)
    assert (untouched == -1).all()
    for call in (lambda: r.load("own"), lambda: r.regions, lambda: r.load_object("random")) if size != SAVED_BY else ():
        try:
            call()
            raise AssertionError("it loaded what another rank saved")
        except kedge.Mismatch as error:
            assert "load_all" in str(error), error


def check_mistakes(r, rank):
    """One rank makes a mistake, all learn of it, and nobody waits."""
    same = np.zeros((10, 6))
    both = {"field": kedge.Want(shard=kedge.Shard(FIELD.shape, (0, 0)), out=same)}
    shard = kedge.Shard(FIELD.shape, (0, 0))
    for mistake, words in (
        ({"field": kedge.Want(shard=shard)}, "give the block's shape"),
        ({"field": kedge.Want(shard=kedge.Shard(FIELD.shape, (-1, 0)), shape=(1, 1))}, "integers of 0 or more"),
        ({"field": kedge.Want(shard=kedge.Shard(FIELD.shape, (0, 0)), shape=(1 << 70, 1))}, "integers of 0 or more"),
        ({"field": kedge.Want(shard=(10, 6), shape=(1, 1))}, "shard is a kedge.Shard"),
        ({"field": kedge.Want(shard=shard, replicated=True, shape=(1, 1))}, "give one of"),
        ({"field": "x"}, "for each, not 'field'"), ({3: kedge.Want()}, "for each, not 3"), (None, "takes a dict"),
        ({"own": kedge.Want(of=9)}, "none of the 4 ranks"), ({"own": kedge.Want(of=-1)}, "none of the 4 ranks"),
        ({"step": kedge.Want(out=3)}, "is a int"), ({"step": kedge.Want(out=np.zeros(3), shape=(2,))}, "out has (3,)"),
        ({**both, "alike": kedge.Want(replicated=True, out=same.view(np.int64)[0, :3])}, "the same memory"),
        ({**both, "alike": kedge.Want(replicated=True, out=same.view(np.int64)[1, ::2])}, "the same memory"),
    ):  # fmt: skip
        for who in (0, 1):
            text = fails(kedge.InvalidArgument, r, mistake if rank == who else both, words)
            assert rank == who or f"rank {who}" in text, text

    # Of two failures a rank raises its own, or that of all.
    fails(kedge.InvalidArgument, r, {"x": 1} if rank == 0 else {"none": kedge.Want()}, "for each, not 'x'")

    def restore(old, value):
        raise ZeroDivisionError(f"of {old}")

    holder = 0 in r.logical_ranks
    fails(kedge.InvalidArgument, r, {"own": kedge.PerRank(restore if holder else lambda old, value: None)},
          "ZeroDivisionError: of 0", own=ZeroDivisionError if holder else None)  # fmt: skip
    check_blocks(r, rank, r._size)  # all of it was refused before anything was harmed


def check_states(r, rank, size):
    got = r.load_state("training", replicated=True)
    assert got["step"] == 7 and torch.equal(got["model"]["w"], WEIGHTS) and torch.equal(got["model"]["b"], WEIGHTS[1])
    got["model"]["w"][1, 0] = 99
    assert got["model"]["b"][0] == 99, "what shared memory shares it again"
    if size > 1:  # the failure of the lowest rank is that of all
        what = {"none": kedge.Want()} if rank == 0 else {"weights": kedge.Want(replicated=True)}
        fails(kedge.Mismatch, r, what, "'none' were not saved")  # the others have no type for bfloat16
    for name in ("private", "nearly", "none"):
        try:
            r.load_state(name, replicated=True)
            raise AssertionError(f"{name} was loaded")
        except kedge.Mismatch as error:
            assert f"{name!r} cannot be loaded as replicated" in str(error), error
    try:
        assert r.load_state("private")["rank"] == rank and size == SAVED_BY
    except kedge.Mismatch as error:
        assert size != SAVED_BY and "load_all" in str(error), error


def main():
    os.environ["KEDGE_TEST_RANKS_PER_NODE"] = os.environ.get("RANKS_PER_NODE", "1")
    options = place.options(sys.argv[1], **{"comm.timeout_s": 40})
    with kedge.Engine(options) as engine:
        rank, size = engine.rank, engine.size
        if "save" in sys.argv:
            save(engine)
            engine.wait("step-7", "persistent")
        elif "damaged" in sys.argv:
            check_damaged(engine, rank, size)
        else:
            with engine.restart() as r:
                assert r.tag == "step-7" and r.attributes == {"step": 7} and r.info.world_size == SAVED_BY
                check_blocks(r, rank, size)
                check_memory(r, rank)
                check_per_rank(r, rank, size)
                check_mismatch(r, rank, size)
                if size > 1:
                    check_mistakes(r, rank)
                if HAS_TORCH:
                    check_states(r, rank, size)
    if size == 3:
        check_different_calls(options)
    print(f"rank {rank}: done", flush=True)


def check_damaged(engine, rank, size):
    """Damage that one rank reads is met by all, and after a second try an older checkpoint is loaded."""
    tags = []
    while not tags or tags[-1] != "step-3":
        assert len(tags) < 3, tags
        mine, shard = rows_of(LONG, rank, size)
        out = np.zeros(mine.shape)
        try:
            with engine.restart() as r:
                tags.append(r.tag)
                r.load_all({"long": kedge.Want(shard=shard, out=out)})
        except kedge.Corrupt as error:
            assert tags[-1] == "step-7" and error.rank == 2, error
    np.testing.assert_array_equal(out, mine)
    assert tags[0] == "step-7", tags


def check_different_calls(options):
    try:
        with kedge.Engine(options) as engine, engine.restart() as r:
            if engine.rank != 0:
                r.load_all({"step": kedge.Want(replicated=True)})
        raise AssertionError("ranks in different calls were not told so")
    except kedge.BadState as error:
        assert "close" in str(error) and "load_all" in str(error), error


main()
