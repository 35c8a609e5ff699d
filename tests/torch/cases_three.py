"""What two ranks cannot show: order of the sum, groups that are a part of the ranks, bystanders."""

from __future__ import annotations

import os
import signal
import time

import torch
import torch.distributed as dist
from support import (
    CODECS,
    assert_same_on_all_ranks,
    batch,
    ddp,
    digest,
    on_all_ranks,
    raises,
    train,
)

import gradwire
from gradwire import errors


def case_sum_in_rank_order(rank: int, world: int) -> None:
    for size in (1, 2, 1031, 200003):
        inputs = [
            torch.randn(size, generator=torch.Generator().manual_seed(r)) * 10.0 ** (3 * r)
            for r in range(world)
        ]
        expected = (inputs[0] + inputs[1]) + inputs[2]
        tensor = inputs[rank].clone()
        gradwire.all_reduce(tensor, op="sum", codec="none")
        assert torch.equal(tensor, expected)
        for codec in CODECS:
            tensor = inputs[rank].clone()
            gradwire.all_reduce(tensor, codec=codec)
            assert_same_on_all_ranks([tensor])


def case_group_of_two_among_three(rank: int, world: int) -> None:
    pair = dist.new_group([0, 2])
    digests = on_all_ranks("")
    if rank != 1:
        model = ddp(process_group=pair)
        handle = gradwire.attach(model, codec="near_lossless")
        train(model, rank, steps=3)
        tensor = torch.full((4,), float(rank))
        gradwire.all_reduce(tensor, op="sum", codec="none", group=pair)
        assert torch.equal(tensor, torch.full((4,), 2.0))
        assert handle.stats()["bytes_out"] > 0
        digests = on_all_ranks(digest(model.parameters()))
    else:
        error = raises(ValueError, gradwire.all_reduce, torch.ones(3), group=pair)
        assert error.field == "group"
        digests = on_all_ranks("")
    assert digests[0] == digests[2] != ""
    # Connections of some ranks do not keep all of them from making groups, theirs or Gradwire's.
    tensor = torch.full((4,), float(rank))
    gradwire.all_reduce(tensor, op="sum", codec="none", deadline=10.0)
    assert torch.equal(tensor, torch.full((4,), 3.0))
    dist.barrier(dist.new_group([0, 1, 2]))


def case_one_rank_differs(rank: int, world: int) -> None:
    """Every rank raises and names a rank that differs from it, or the rank that said so."""
    model = ddp()
    codec = "none" if rank == 2 else "lossless"
    start = time.monotonic()
    error = raises(gradwire.GradwireError, gradwire.attach, model, codec=codec)
    assert time.monotonic() - start < 5
    assert isinstance(error, gradwire.PeerMismatch), repr(error)
    assert {error.mine, error.theirs} == {"none", "lossless"}
    if rank != 2:
        assert error.rank == 2


def case_killed_rank_is_passed_on(rank: int, world: int) -> None:
    """Rank 2 waits for rank 0, which comes when rank 1 is dead, and says so."""
    gradwire.all_reduce(torch.ones(10))
    if rank == 1:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 0:
        time.sleep(1.5)
    start = time.monotonic()
    error = raises(errors.PeerLost, gradwire.all_reduce, torch.ones(10), deadline=20.0)
    assert error.rank == 1, repr(error)
    assert time.monotonic() - start < 4


def case_killed_rank(rank: int, world: int) -> None:
    model = ddp()
    handle = gradwire.attach(model, codec="near_lossless", deadline=5.0)
    train(model, rank, steps=2)
    loss = model(batch(rank, 0)).square().mean()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    kinds = (errors.PeerLost, errors.PeerError, errors.DeadlineExceeded)
    raises(kinds, loss.backward)
    assert time.monotonic() - start < 5.5
    assert handle.last_error["code"] in ("PeerLost", "PeerError", "DeadlineExceeded")
