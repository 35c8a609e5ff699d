"""DistributedDataParallel's ways to train, each with compressed gradients, on two ranks."""

from __future__ import annotations

import copy
import io
import os
import sys

import torch
import torch.distributed as dist
from support import (
    CODECS,
    Net,
    SlowBackward,
    assert_same_on_all_ranks,
    batch,
    ddp,
    on_all_ranks,
    same_bits,
    same_model,
    train,
    wait_until,
)
from torch import nn

import gradwire


def case_none_is_plain_ddp_bit_for_bit(rank: int, world: int) -> None:
    for views in (False, True):
        plain, hooked = (ddp(gradient_as_bucket_view=views) for _ in range(2))
        handle = gradwire.attach(hooked, codec="none")
        assert train(plain, rank) == train(hooked, rank)
        assert same_model(plain, hooked)
        assert handle.stats()["steps"] == 5
        assert handle.stats()["fallbacks"] == 0


def case_lossless_is_plain_ddp_bit_for_bit(rank: int, world: int) -> None:
    plain, hooked = ddp(), ddp()
    gradwire.attach(hooked, codec="lossless")
    assert train(plain, rank) == train(hooked, rank)
    assert same_model(plain, hooked)


def case_replicas_stay_identical_with_every_codec(rank: int, world: int) -> None:
    reference = ddp()
    reference_losses = train(reference, rank, steps=8)
    for codec in CODECS:
        model = ddp()
        handle = gradwire.attach(model, codec=codec, measure_every=1)
        losses = train(model, rank, steps=8)
        assert_same_on_all_ranks(model.parameters())
        assert abs(losses[-1] - reference_losses[-1]) < 0.05 * reference_losses[0], codec
        stats = handle.stats()
        assert stats["bytes_out"] > 0 and stats["ratio"] > 0, codec
        exact = codec in ("none", "lossless")
        assert (stats["rel_l2"] == 0) == exact, (codec, stats["rel_l2"])
        handle.detach()


def case_bucket_views(rank: int, world: int) -> None:
    plain, model = ddp(), ddp(gradient_as_bucket_view=True)
    gradwire.attach(model, codec="near_lossless")
    for step in range(3):
        for net in (plain, model):
            for parameter in net.parameters():
                parameter.grad = None if step == 0 else parameter.grad.zero_()
            net(batch(rank, step)).square().mean().backward()
        for a, b in zip(plain.parameters(), model.parameters(), strict=True):
            assert (a.grad - b.grad).norm() < 0.01 * a.grad.norm()
            assert b.grad._base is not None  # a view into its bucket
        assert_same_on_all_ranks(p.grad for p in model.parameters())


def case_rebuilt_buckets(rank: int, world: int) -> None:
    """After the first step DDP fills its buckets in the order in which gradients came."""

    class Reordered(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:  # registered last, used first
            x = torch.relu(self.first(x))
            return self.third(torch.relu(self.second(x)))

        def __init__(self) -> None:
            super().__init__()
            self.third, self.first = nn.Linear(65, 7), nn.Linear(33, 129)

    plain, model = ddp(Reordered()), ddp(Reordered())
    handle = gradwire.attach(model, codec="none")
    train(plain, rank, steps=1)
    train(model, rank, steps=1)
    before = handle.stats()["buckets"]
    train(plain, rank, steps=3, first=1)
    train(model, rank, steps=3, first=1)
    assert model.reducer._rebuild_buckets() is False  # it has happened
    assert handle.stats()["buckets"] > before
    assert handle.stats()["steps"] == 4
    assert same_model(plain, model)


def case_unused_parameters(rank: int, world: int) -> None:
    class Branches(Net):
        def forward(self, x: torch.Tensor, use_second: bool) -> torch.Tensor:
            x = torch.relu(self.first(x))
            return self.second(x).mean() if use_second else x.mean()

    plain, model = (ddp(Branches(), find_unused_parameters=True) for _ in range(2))
    handle = gradwire.attach(model, codec="none")
    for step in range(4):
        use_second = (step + rank) % 2 == 0  # one rank each time; nobody uses `third`
        for net in (plain, model):
            net.zero_grad()
            net(batch(rank, step), use_second).backward()
        for a, b in zip(plain.parameters(), model.parameters(), strict=True):
            assert (a.grad is None) == (b.grad is None)
            assert a.grad is None or same_bits(a.grad, b.grad)
    assert model.module.third.weight.grad is None
    assert handle.stats()["steps"] == 4


def case_static_graph(rank: int, world: int) -> None:
    plain, model = ddp(static_graph=True), ddp(static_graph=True)
    handle = gradwire.attach(model, codec="none")
    train(plain, rank)
    train(model, rank)
    assert same_model(plain, model)
    assert handle.stats()["steps"] == 5


def case_no_sync(rank: int, world: int) -> None:
    plain, model = ddp(), ddp()
    handle = gradwire.attach(model, codec="none")
    for net in (plain, model):
        with net.no_sync():
            net(batch(rank, 0)).square().mean().backward()
    assert handle.stats()["buckets"] == 0
    for net in (plain, model):
        net(batch(rank, 1)).square().mean().backward()
    assert handle.stats()["steps"] == 1
    for a, b in zip(plain.parameters(), model.parameters(), strict=True):
        assert same_bits(a.grad, b.grad)


def case_join(rank: int, world: int) -> None:
    """Rank 1 has fewer batches: it goes on taking part, with zeros."""
    for codec in ("none", "near_lossless"):
        plain, model = ddp(), ddp()
        handle = gradwire.attach(model, codec=codec)
        steps = 5 if rank == 0 else 2
        for net in (plain, model):
            with net.join():
                train(net, rank, steps)
        if codec == "none":
            assert same_model(plain, model)
        assert_same_on_all_ranks(model.parameters())
        assert on_all_ranks(handle.stats()["steps"]) == [5, 5]
        assert handle.last_error is None


def case_sparse_gradients(rank: int, world: int) -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(50, 16, sparse=True)
            self.out = nn.Linear(16, 3)

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            return self.out(self.table(words)).square().mean()

    plain, model = ddp(Words()), ddp(Words())
    handle = gradwire.attach(model, codec="near_lossless")
    for step in range(2):
        words = torch.tensor([1 + rank, 7, 9 + step])
        for net in (plain, model):
            net.zero_grad()
            net(words).backward()
        a, b = plain.module.table.weight.grad, model.module.table.weight.grad
        assert b.is_sparse and same_bits(a.to_dense(), b.to_dense())
    stats = handle.stats()
    assert stats["fallbacks"] == 2 and stats["buckets"] > 2
    assert stats["steps"] == 2


def case_autocast(rank: int, world: int) -> None:
    for codec in ("lossless", "near_lossless"):
        plain, model = ddp(), ddp()
        handle = gradwire.attach(model, codec=codec)
        for step in range(3):
            for net in (plain, model):
                net.zero_grad()
                with torch.autocast("cpu", torch.bfloat16):
                    loss = net(batch(rank, step)).square().mean()
                loss.backward()
        for a, b in zip(plain.parameters(), model.parameters(), strict=True):
            assert same_bits(a.grad, b.grad) or codec != "lossless"
        assert_same_on_all_ranks(p.grad for p in model.parameters())
        assert handle.stats()["steps"] == 3


def case_other_types_of_parameters(rank: int, world: int) -> None:
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        plain, model = ddp(Net().to(dtype)), ddp(Net().to(dtype))
        gradwire.attach(model, codec="lossless")
        for net in (plain, model):
            net(batch(rank, 0).to(dtype)).square().mean().backward()
        for a, b in zip(plain.parameters(), model.parameters(), strict=True):
            # The mean of two is rounded once, here (in float32) and by DDP (halved first), except
            # where half of a float16 is subnormal.
            if dtype == torch.float16:
                assert torch.allclose(a.grad, b.grad, rtol=1e-3, atol=2.0**-24)
            else:
                assert same_bits(a.grad, b.grad)
        assert_same_on_all_ranks(p.grad for p in model.parameters())


def case_scaler_skips_on_all_ranks(rank: int, world: int) -> None:
    """A gradient that is Inf or NaN on one rank makes every rank skip the step."""
    for codec in CODECS:
        for value in (float("inf"), float("nan")):
            model = ddp()
            handle = gradwire.attach(model, codec=codec)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
            before = [p.detach().clone() for p in model.parameters()]
            loss = model(batch(rank, 0)).square().mean()
            if rank == 1:
                loss = loss * value
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            after = list(model.parameters())
            assert all(same_bits(a, b) for a, b in zip(before, after, strict=True)), codec
            assert scaler.get_scale() == 4.0, codec
            assert sum(on_all_ranks(handle.stats()["nonfinite"])) > 0, codec
            handle.detach()


def case_backward_overlaps(rank: int, world: int) -> None:
    """The last layers' buckets are reduced while the first layers' backward still runs."""
    handle = None
    done_during_backward = []

    def look() -> None:
        if handle is None:
            return
        wait_until(lambda: handle.stats()["sequence"] > start)
        done_during_backward.append(handle.stats()["sequence"] - start)

    class Slow(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = SlowBackward.apply(torch.relu(self.first(x)), look)
            return self.third(torch.relu(self.second(x)))

    model = ddp(Slow())
    train(model, rank, steps=1)  # DDP's first step has one bucket
    handle = gradwire.attach(model, codec="near_lossless")
    for step in range(2):
        start = handle.stats()["sequence"]
        model(batch(rank, step)).square().mean().backward()
    assert len(done_during_backward) == 2


def case_no_python_runs_per_bucket(rank: int, world: int) -> None:
    def gradwire_functions_in_backward(model) -> list[str]:
        seen = []

        def profile(frame, event, arg) -> None:
            if frame.f_globals.get("__name__", "").startswith("gradwire"):
                seen.append(frame.f_code.co_name)

        loss = model(batch(rank, 0)).square().mean()
        sys.setprofile(profile)
        try:
            loss.backward()
        finally:
            sys.setprofile(None)
        return seen

    attached, hooked = ddp(), ddp()
    gradwire.attach(attached)
    hooked.register_comm_hook(gradwire.HookState(), gradwire.hook)
    for _ in range(2):
        assert gradwire_functions_in_backward(attached) == []
        assert "hook" in gradwire_functions_in_backward(hooked)


def case_python_hook(rank: int, world: int) -> None:
    """PyTorch's own way: a state and a function. The same results as attach."""
    attached, hooked = ddp(), ddp()
    gradwire.attach(attached, codec="near_lossless")
    state = gradwire.HookState(codec="near_lossless", parameters=hooked.parameters())
    hooked.register_comm_hook(state, gradwire.hook)
    train(attached, rank)
    train(hooked, rank)
    assert same_model(attached, hooked)
    assert state.stats()["steps"] == 5
    copied = copy.deepcopy(state)
    assert copied.state_dict()["step"] == 5 and copied.codec == state.codec
    buffer = io.BytesIO()
    torch.save(hooked.state_dict(), buffer)


def case_python_hooks_connect_at_once(rank: int, world: int) -> None:
    """The first buckets of several models make connections, each in a thread of its own."""
    plain, models = ([ddp(seed=s) for s in range(4)] for _ in range(2))
    for model in models:
        model.register_comm_hook(gradwire.HookState(codec="none", deadline=20.0), gradwire.hook)
    for nets in (plain, models):
        sum(net(batch(rank, 0)).square().mean() for net in nets).backward()
    for a, b in zip(plain, models, strict=True):
        for x, y in zip(a.parameters(), b.parameters(), strict=True):
            assert same_bits(x.grad, y.grad)


def case_state_dropped_in_its_own_thread(rank: int, world: int) -> None:
    """The last reference to a state goes away in a callback, which its worker thread runs."""
    model, plain = ddp(), ddp()
    states = [gradwire.HookState(codec="none")]

    def hook(_: None, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        done = gradwire.hook(states[0], bucket)
        return done.then(drop) if bucket.is_last() else done

    def drop(future: torch.futures.Future[torch.Tensor]) -> torch.Tensor:
        states.clear()
        return future.value()

    # DDP compares the annotations with types.
    hook.__annotations__ = {
        "bucket": dist.GradBucket,
        "return": torch.futures.Future[torch.Tensor],
    }
    threads = len(os.listdir("/proc/self/task"))
    model.register_comm_hook(None, hook)
    train(plain, rank, steps=1)
    train(model, rank, steps=1)
    assert states == [] and same_model(plain, model)
    wait_until(lambda: len(os.listdir("/proc/self/task")) < threads)


def case_second_attach_changes_the_settings(rank: int, world: int) -> None:
    model = ddp()
    handle = gradwire.attach(model, codec="none")
    train(model, rank, steps=2)
    again = gradwire.attach(model, codec="near_lossless", measure_every=1)
    assert again is handle and handle.codec.startswith("near_lossless")
    assert handle.stats()["steps"] == 0 and handle.stats()["step"] == 2
    train(model, rank, steps=2)
    assert handle.stats()["steps"] == 2 and handle.stats()["step"] == 4
    assert handle.stats()["rel_l2"] > 0
    assert_same_on_all_ranks(model.parameters())


def case_detach_and_attach_again(rank: int, world: int) -> None:
    plain, model = ddp(), ddp()
    with gradwire.attach(model, codec="none") as handle:
        train(plain, rank, steps=2)
        train(model, rank, steps=2)
    assert not handle.attached
    before = handle.stats()
    train(plain, rank, steps=2, first=2)
    train(model, rank, steps=2, first=2)
    after = handle.stats()
    assert after["bytes_out"] == before["bytes_out"]
    assert after["fallbacks"] == after["buckets"] - before["buckets"] > 0
    assert gradwire.attach(model, codec="none") is handle and handle.attached
    train(plain, rank, steps=2, first=4)
    train(model, rank, steps=2, first=4)
    assert handle.stats()["bytes_out"] > 0
    assert same_model(plain, model)


def case_resumed_run_is_bit_identical(rank: int, world: int) -> None:
    codec = "block:bits=4,rounding=stochastic"
    # DDP orders the buckets of a new model anew after its first step, and with other buckets
    # other ranks own the shards; with find_unused_parameters it leaves them as they are.
    options = {"find_unused_parameters": True}
    whole = ddp(**options)
    gradwire.attach(whole, codec=codec)
    train(whole, rank, steps=6)

    part = ddp(**options)
    handle = gradwire.attach(part, codec=codec)
    train(part, rank, steps=3)
    saved, weights = handle.state_dict(), copy.deepcopy(part.module.state_dict())
    assert saved["step"] == 3 and saved["codec"] == handle.codec

    resumed = ddp(seed=1, **options)
    resumed.module.load_state_dict(weights)
    handle = gradwire.attach(resumed, codec=codec)
    handle.load_state_dict(saved)
    train(resumed, rank, steps=3, first=3)
    assert handle.state_dict()["step"] == 6
    assert same_model(whole, resumed)


def case_statistics_add_up(rank: int, world: int) -> None:
    model = ddp()
    handle = gradwire.attach(model, codec="near_lossless", measure_every=1)
    assert handle.stats()["ratio"] is None and handle.stats()["rel_l2"] is None
    train(model, rank, steps=3)
    stats = handle.stats()
    values = sum(p.numel() for p in model.parameters())
    assert stats["values"] == 3 * values
    # Two ranks: each sends the other's half as contribution and its own half as result.
    assert sum(on_all_ranks(stats["raw_bytes"])) == 3 * 2 * 4 * values
    assert sum(on_all_ranks(stats["bytes_out"])) == sum(on_all_ranks(stats["bytes_in"]))
    assert stats["ratio"] == stats["raw_bytes"] / stats["bytes_out"]
    assert 0 < stats["rel_l2"] < 1.7e-3
    for name in ("encode_ms", "decode_ms", "wire_ms", "wait_ms"):
        assert stats[name] > 0, name
    assert stats["errors"] == 0 and stats["nonfinite"] == 0 and stats["fallbacks"] == 0


def case_flushed_subnormals_change_nothing(rank: int, world: int) -> None:
    values = torch.randn(5000, generator=torch.Generator().manual_seed(rank)) * 1e-39
    results = []
    for flush in (False, rank == 1):
        tensor = values.clone()
        torch.set_flush_denormal(flush)
        gradwire.all_reduce(tensor, codec="near_lossless")
        torch.set_flush_denormal(False)
        results.append(tensor)
    assert results[0].abs().max() > 0
    assert same_bits(*results)
    assert_same_on_all_ranks(results)


def case_subgroup(rank: int, world: int) -> None:
    """Each rank alone in a group of its own: nothing is sent, nothing waits."""
    groups = [dist.new_group([r]) for r in range(world)]
    plain, model = ddp(process_group=groups[rank]), ddp(process_group=groups[rank])
    handle = gradwire.attach(model, codec="none")
    steps = 2 + rank  # the groups have nothing to do with each other
    train(plain, rank, steps)
    train(model, rank, steps)
    assert same_model(plain, model)
    assert handle.stats()["bytes_out"] == 0
