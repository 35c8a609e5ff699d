"""Wrong calls, ranks that disagree, and ranks that are late, lost or gone, on two ranks."""

from __future__ import annotations

import gc
import os
import signal
import time
from unittest import mock

import torch
import torch.distributed as dist
from support import (
    Net,
    SlowBackward,
    assert_same_on_all_ranks,
    batch,
    ddp,
    on_all_ranks,
    raises,
    same_bits,
    same_model,
    train,
)
from torch import nn

import gradwire
from gradwire import errors

# ---- the call is wrong ----


def case_attach_needs_ddp(rank: int, world: int) -> None:
    error = raises(TypeError, gradwire.attach, nn.Linear(3, 3))
    assert "DistributedDataParallel" in str(error) and "Linear" in str(error)
    error = raises(TypeError, gradwire.attach, "model")
    assert "str" in str(error)


def case_attach_arguments(rank: int, world: int) -> None:
    model = ddp()
    error = raises(errors.UnknownCodec, gradwire.attach, model, codec="zip")
    assert "zip" in str(error) and "near_lossless" in str(error)
    error = raises(errors.UnknownParameter, gradwire.attach, model, codec="near_lossless:bits=3")
    assert "bits" in str(error) and "mantissa" in str(error)
    error = raises(errors.OutOfRange, gradwire.attach, model, codec="block:bits=77")
    assert "77" in str(error)
    for deadline in (0.0, -1.0, float("nan"), float("inf")):
        error = raises(errors.OutOfRange, gradwire.attach, model, deadline=deadline)
        assert error.field == "deadline"
    for every in (-1, 1.5, True):
        error = raises(ValueError, gradwire.attach, model, measure_every=every)
        assert error.field == "measure_every"
    handle = gradwire.attach(model)  # nothing of that has left a trace
    raises(errors.OutOfRange, gradwire.attach, model, deadline=-1.0)
    assert handle.attached
    train(model, rank, steps=1)


def case_unsupported_type_names_the_parameter(rank: int, world: int) -> None:
    net = Net()
    net.second.double()
    error = raises(gradwire.UnsupportedDType, gradwire.attach, ddp(net), codec="natural")
    assert "second.weight" in str(error) and "float64" in str(error)


def case_attach_without_gloo(rank: int, world: int) -> None:
    model = ddp()
    with mock.patch.object(dist, "is_gloo_available", return_value=False):
        error = raises(ValueError, gradwire.attach, model)
    assert "Gloo" in str(error)


def case_attach_with_a_hook_already_there(rank: int, world: int) -> None:
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

    model = ddp()
    model.register_comm_hook(None, bf16_compress_hook)
    error = raises(ValueError, gradwire.attach, model)
    assert "bf16_compress_hook" in str(error)
    model = ddp()
    model._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)
    raises(ValueError, gradwire.attach, model)


def case_attach_with_the_python_reducer(rank: int, world: int) -> None:
    model = ddp()
    model._use_python_reducer = True
    assert "python_reducer" in str(raises(ValueError, gradwire.attach, model))


def case_attach_after_the_group_is_gone(rank: int, world: int) -> None:
    model = ddp()
    dist.destroy_process_group()
    assert "init_process_group" in str(raises(ValueError, gradwire.attach, model))
    assert "init_process_group" in str(raises(ValueError, gradwire.all_reduce, torch.zeros(3)))


def case_all_reduce_arguments(rank: int, world: int) -> None:
    tensor = torch.ones(6, 4)
    error = raises(ValueError, gradwire.all_reduce, tensor.t())
    assert ".contiguous()" in str(error)
    assert "list" in str(raises(TypeError, gradwire.all_reduce, [1.0]))
    assert "int64" in str(raises(ValueError, gradwire.all_reduce, torch.ones(3).long()))
    assert "meta" in str(raises(ValueError, gradwire.all_reduce, torch.ones(3, device="meta")))
    assert "sparse" in str(raises(ValueError, gradwire.all_reduce, torch.ones(3).to_sparse()))
    assert "max" in str(raises(ValueError, gradwire.all_reduce, tensor, op="max"))
    for step in (-1, 1.0, 2**64):
        assert raises(ValueError, gradwire.all_reduce, tensor, step=step).field == "step"
    raises(errors.UnknownCodec, gradwire.all_reduce, tensor, codec="zip")
    raises(gradwire.UnsupportedDType, gradwire.all_reduce, tensor.double(), codec="natural")
    assert torch.equal(tensor, torch.ones(6, 4))


def case_load_state_dict_arguments(rank: int, world: int) -> None:
    handle = gradwire.attach(ddp(), codec="near_lossless")
    state = handle.state_dict()
    error = raises(ValueError, handle.load_state_dict, {**state, "codec": "none"})
    assert error.theirs == "codec none" and "near_lossless" in error.mine
    handle.load_state_dict({**state, "codec": "none", "step": 7}, strict=False)
    assert handle.stats()["step"] == 7
    assert raises(ValueError, handle.load_state_dict, {**state, "version": 2}).field == "version"
    del state["step"]
    assert "step" in str(raises(ValueError, handle.load_state_dict, state))


# ---- values ----


def case_all_reduce_is_the_documented_sum(rank: int, world: int) -> None:
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for size in (0, 1, 2, 255, 1031, 70001):
            inputs = [
                torch.randn(size, generator=torch.Generator().manual_seed(size + r)).to(dtype)
                for r in range(world)
            ]
            wide = torch.float64 if dtype == torch.float64 else torch.float32
            for op in ("sum", "avg"):
                total = inputs[0].to(wide)
                for other in inputs[1:]:
                    total = total + other.to(wide)
                expected = (total * (1 / world) if op == "avg" else total).to(dtype)
                for codec in ("none", "lossless"):
                    tensor = inputs[rank].clone()
                    gradwire.all_reduce(tensor, op=op, codec=codec)
                    assert torch.equal(tensor, expected), (dtype, size, op, codec)


def case_all_reduce_keeps_nonfinite_values(rank: int, world: int) -> None:
    special = [float("inf"), float("-inf"), float("nan"), 3e38, 0.0, -0.0, 1e-45]
    for codec in ("none", "int8", "lossless", "near_lossless", "near_lossless:mantissa=6"):
        tensor = torch.zeros(9001)
        if rank == 0:
            tensor[4000 : 4000 + len(special)] = torch.tensor(special)
        gradwire.all_reduce(tensor, op="sum", codec=codec)
        assert tensor[4000] == float("inf") and tensor[4001] == float("-inf"), codec
        assert tensor[4002].isnan(), codec
        finite = torch.cat([tensor[:4000], tensor[4003:]])
        assert finite.isfinite().all(), codec
        assert_same_on_all_ranks([tensor])


def case_all_reduce_of_views_and_groups(rank: int, world: int) -> None:
    base = torch.arange(24.0).reshape(4, 6) * (rank + 1)
    gradwire.all_reduce(base[1:3], op="sum", codec="none", group=dist.group.WORLD)
    assert torch.equal(base[1:3], 3 * torch.arange(24.0).reshape(4, 6)[1:3])
    assert torch.equal(base[0], torch.arange(6.0) * (rank + 1))
    alone = [dist.new_group([r]) for r in range(world)][rank]
    tensor = torch.full((3,), float(rank))
    gradwire.all_reduce(tensor, group=alone, codec="none")
    assert torch.equal(tensor, torch.full((3,), float(rank)))


# ---- ranks disagree ----


def case_different_codecs_are_named_on_all_ranks(rank: int, world: int) -> None:
    model = ddp()
    codec = ("lossless", "near_lossless")[rank]
    start = time.monotonic()
    error = raises(gradwire.PeerMismatch, gradwire.attach, model, codec=codec)
    assert time.monotonic() - start < 5
    assert error.field == "codec" and error.rank == 1 - rank
    assert "near_lossless" in str(error) and "mine" in str(error)
    assert error.mine == codec and error.theirs != codec
    handle = gradwire.attach(model, codec="lossless")  # the model is as it was
    train(model, rank, steps=2)
    assert_same_on_all_ranks(model.parameters())

    error = raises(gradwire.PeerMismatch, gradwire.attach, model, codec=codec)
    assert handle.last_error["code"] == "PeerMismatch"
    assert handle.last_error["field"] == "codec"
    assert not handle.attached
    train(model, rank, steps=2)  # uncompressed
    assert_same_on_all_ranks(model.parameters())


def case_wrong_arguments_of_one_rank_end_the_wait_of_all(rank: int, world: int) -> None:
    model = ddp()
    start = time.monotonic()
    if rank == 1:
        raises(gradwire.UnknownCodec, gradwire.attach, model, codec="lossles")
    else:
        error = raises(gradwire.GradwireError, gradwire.attach, model, codec="lossless")
        assert "rank 1" in str(error) and "lossles" in str(error)
    assert time.monotonic() - start < 5
    gradwire.attach(model, codec="lossless")
    train(model, rank, steps=2)
    assert_same_on_all_ranks(model.parameters())


def case_different_codecs_in_the_python_hook(rank: int, world: int) -> None:
    model = ddp()
    state = gradwire.HookState(codec=("none", "lossless")[rank])
    model.register_comm_hook(state, gradwire.hook)
    error = raises(RuntimeError, train, model, rank, steps=1)
    assert "codec" in str(error)
    assert state.last_error["code"] == "PeerMismatch"
    assert {state.last_error["mine"], state.last_error["theirs"]} == {"none", "lossless"}


def case_mismatched_calls_leave_the_tensor_alone(rank: int, world: int) -> None:
    calls = {
        "count": (torch.ones(10 + rank), {}),
        "dtype": (torch.ones(10, dtype=(torch.float32, torch.float64)[rank]), {}),
        "reduction": (torch.ones(10), {"op": ("sum", "avg")[rank]}),
        "codec": (torch.ones(10), {"codec": ("none", "lossless")[rank]}),
        "step": (torch.ones(10), {"step": rank}),
    }
    gradwire.all_reduce(torch.ones(1), codec="none")  # the sub-group's connections are not timed
    number = 1
    for name, (tensor, options) in calls.items():
        start = time.monotonic()
        options = {"codec": "none", **options}
        error = raises(gradwire.PeerMismatch, gradwire.all_reduce, tensor, **options)
        number += 1
        assert error.sequence == number, name  # goes on in the new sub-group
        assert time.monotonic() - start < 2, name
        assert error.rank == 1 - rank, name
        assert error.mine and error.theirs and error.mine != error.theirs, name
        assert torch.equal(tensor, torch.ones_like(tensor)), name
        tensor = torch.full((5,), float(rank))
        gradwire.all_reduce(tensor, op="sum", codec="none")  # a new sub-group
        number += 1
        assert torch.equal(tensor, torch.ones(5))


def case_wrong_argument_on_one_rank(rank: int, world: int) -> None:
    """The others are told at once, and all go on in a new sub-group."""
    tensor = torch.ones(10, dtype=(torch.float32, torch.float64)[rank])
    kind = (gradwire.PeerError, gradwire.UnsupportedDType)[rank]
    gradwire.all_reduce(torch.ones(1), codec="none")  # as above
    for _ in range(2):
        start = time.monotonic()
        error = raises(kind, gradwire.all_reduce, tensor, codec="natural")
        assert time.monotonic() - start < 2
        assert "float64" in str(error)
        assert rank == 1 or error.rank == 1
        good = torch.full((10,), float(rank))
        gradwire.all_reduce(good, codec="none")
        assert torch.equal(good, torch.full((10,), 0.5))


def case_different_steps(rank: int, world: int) -> None:
    """A state loaded on one rank only: named at the next step, and mended by loading it on both."""
    model = ddp()
    handle = gradwire.attach(model, codec="near_lossless")
    if rank == 0:
        handle.load_state_dict({**handle.state_dict(), "step": 41})
    error = raises(gradwire.PeerMismatch, train, model, rank, steps=1)
    assert error.field == "step" and {error.mine, error.theirs} == {"0", "41"}
    assert handle.last_error["field"] == "step"
    handle.load_state_dict({**handle.state_dict(), "step": 50})
    train(model, rank, steps=2)
    assert_same_on_all_ranks(model.parameters())
    assert handle.stats()["step"] == 52


# ---- ranks are late or lost ----


def case_late_rank(rank: int, world: int) -> None:
    """The deadline ends the wait; the next step makes a new sub-group and works."""
    model = ddp()
    train(model, rank, steps=1)
    handle = gradwire.attach(model, codec="near_lossless", deadline=1.0)
    loss = model(batch(rank, 0)).square().mean()
    if rank == 1:
        time.sleep(2.5)
    start = time.monotonic()
    error = raises(gradwire.GradwireError, loss.backward)
    assert time.monotonic() - start < 2.0
    assert handle.last_error["code"] == error.code
    assert handle.last_error["rank"] == 1 - rank
    if rank == 0:
        assert isinstance(error, gradwire.DeadlineExceeded) and isinstance(error, TimeoutError)
    dist.barrier()
    train(model, rank, steps=2)
    assert_same_on_all_ranks(model.parameters())
    assert on_all_ranks(handle.stats()["step"]) == [3, 3]


def case_killed_rank(rank: int, world: int) -> None:
    model = ddp()
    handle = gradwire.attach(model, codec="near_lossless", deadline=5.0)
    train(model, rank, steps=2)
    loss = model(batch(rank, 0)).square().mean()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    error = raises(gradwire.PeerLost, loss.backward)
    assert time.monotonic() - start < 5.5
    assert error.rank == 1 and isinstance(error, ConnectionError)
    assert handle.last_error["code"] == "PeerLost"
    # The next step cannot make a new sub-group, and says so instead of waiting for ever.
    start = time.monotonic()
    raises(gradwire.GradwireError, train, model, rank, steps=1)
    assert time.monotonic() - start < 15


def case_rank_that_never_connects(rank: int, world: int) -> None:
    if rank == 0:
        start = time.monotonic()
        error = raises(gradwire.DeadlineExceeded, gradwire.all_reduce, torch.ones(3), deadline=1.0)
        assert time.monotonic() - start < 3
        assert "rank 1" in str(error)
    dist.barrier()


def case_killed_rank_in_all_reduce(rank: int, world: int) -> None:
    gradwire.all_reduce(torch.ones(10), deadline=5.0)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    error = raises(gradwire.PeerLost, gradwire.all_reduce, torch.ones(10**6), deadline=5.0)
    assert error.rank == 1
    assert time.monotonic() - start < 5.5


# ---- lifetimes ----


class _Stop(Exception):
    pass


class _Interrupted(Net):
    """Its backward raises after the first bucket has gone, when told so."""

    stop = False

    def _look(self) -> None:
        if self.stop:
            raise _Stop

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = SlowBackward.apply(torch.relu(self.first(x)), self._look)
        return self.third(torch.relu(self.second(x)))


def case_backward_that_raises(rank: int, world: int) -> None:
    """A bucket is on its way when the backward ends; nothing hangs, and the next model trains."""
    for _ in range(2):
        model = ddp(_Interrupted())
        train(model, rank, steps=1)
        handle = gradwire.attach(model, codec="near_lossless")
        model.module.stop = True
        raises(_Stop, train, model, rank, steps=1)
        handle.detach()  # waits for the bucket
        assert handle.stats()["buckets"] == 1 and handle.last_error is None
    model = ddp()
    gradwire.attach(model, codec="near_lossless")
    train(model, rank, steps=1)
    assert_same_on_all_ranks(model.parameters())


def case_model_deleted_while_a_bucket_is_in_flight(rank: int, world: int) -> None:
    for keep_handle in (False, True):
        model = ddp(_Interrupted())
        train(model, rank, steps=1)
        handle = gradwire.attach(model, codec="near_lossless", deadline=20.0)
        loss = model(batch(rank, 0)).square().mean()
        model.module.stop = True
        if rank == 0:  # rank 1 never sends its part: the bucket stays in flight
            raises(_Stop, loss.backward)
        if not keep_handle:
            handle = None
        start = time.monotonic()
        del model, loss
        gc.collect()
        if keep_handle:
            assert handle.stats()["buckets"] == (1 if rank == 0 else 0)
            handle._reducer.close()
            handle = None
            gc.collect()
        assert time.monotonic() - start < 3
        dist.barrier()
    model = ddp()
    gradwire.attach(model, codec="near_lossless")
    train(model, rank, steps=2)
    assert_same_on_all_ranks(model.parameters())


def case_group_destroyed_before_detach(rank: int, world: int) -> None:
    plain, model = ddp(), ddp()
    handle = gradwire.attach(model, codec="none")
    train(plain, rank, steps=1)
    train(model, rank, steps=1)
    assert same_model(plain, model)
    dist.barrier()
    dist.destroy_process_group()
    start = time.monotonic()
    handle.detach()
    del model
    gc.collect()
    assert time.monotonic() - start < 3
    assert handle.stats()["steps"] == 1


def case_many_models_leave_nothing_behind(rank: int, world: int) -> None:
    import threading

    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    def once() -> None:
        model = ddp()
        gradwire.attach(model, codec="near_lossless")
        train(model, rank, steps=1)
        del model
        gc.collect()
        dist.barrier()

    once()
    before = threads(), files(), len(dist.distributed_c10d._world.pg_map)
    for _ in range(5):
        once()
    after = threads(), files(), len(dist.distributed_c10d._world.pg_map)
    assert all(a <= b for a, b in zip(after, before, strict=True)), (before, after)
    assert threading.active_count() == 1


def case_two_models_and_all_reduce_side_by_side(rank: int, world: int) -> None:
    plain = [ddp(seed=s) for s in range(2)]
    models = [ddp(seed=s) for s in range(2)]
    for model in models:
        gradwire.attach(model, codec="none")
    for step in range(3):
        for nets in (plain, models):
            losses = [net(batch(rank, step)).square().mean() for net in nets]
            for net in nets:
                net.zero_grad()
            (losses[0] + losses[1]).backward()
        tensor = torch.full((1000,), float(rank))
        gradwire.all_reduce(tensor, codec="none")
        assert torch.equal(tensor, torch.full((1000,), 0.5))
    for a, b in zip(plain, models, strict=True):
        for x, y in zip(a.parameters(), b.parameters(), strict=True):
            assert same_bits(x.grad, y.grad)
