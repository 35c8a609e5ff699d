"""Codecs that change with the step and the learning rate, under DistributedDataParallel."""

from __future__ import annotations

import copy

import torch
import torch.distributed as dist
from support import (
    Net,
    assert_same_on_all_ranks,
    batch,
    ddp,
    on_all_ranks,
    raises,
    same_model,
    train,
)
from torch import nn

import gradwire
from gradwire import errors
from gradwire.schedule import CodecSchedule, Constant, Staged, StepDrops, Warmup

LOOSE = "block:bits=4,rounding=stochastic"
TIGHT = "near_lossless"


class Training:
    """A model, SGD and a StepLR, whose rate drops after every third step."""

    def __init__(self, rank: int, seed: int = 0) -> None:
        # Buckets that stay as they are, so that a resumed run has those of the whole one.
        self.model = ddp(seed=seed, find_unused_parameters=True)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=3, gamma=0.1)
        self.rank = rank
        self.steps = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.optimizer.zero_grad()
            self.model(batch(self.rank, self.steps)).square().mean().backward()
            self.optimizer.step()
            self.scheduler.step()
            self.steps += 1

    def state_dict(self) -> dict:
        parts = (self.model.module, self.optimizer, self.scheduler)
        return copy.deepcopy({"steps": self.steps, "parts": [p.state_dict() for p in parts]})

    def load_state_dict(self, state: dict) -> None:
        self.steps = state["steps"]
        parts = (self.model.module, self.optimizer, self.scheduler)
        for part, saved in zip(parts, state["parts"], strict=True):
            part.load_state_dict(saved)


def name(handle: gradwire.Handle) -> str:
    return handle.stats()["codec"].split(":")[0]


def case_codec_follows_the_learning_rate(rank: int, world: int) -> None:
    training = Training(rank)
    schedule = StepDrops(LOOSE, TIGHT).follow(training.optimizer)
    handle = gradwire.attach(training.model, codec=schedule)
    assert handle.schedule is schedule and name(handle) == "block"
    seen = []
    for _ in range(6):
        training.run(1)
        seen.append(name(handle))
        assert_same_on_all_ranks(training.model.parameters())
    assert seen == ["block"] * 3 + ["near_lossless"] * 3
    assert handle.codec == schedule.codec and schedule.last_step == 5
    assert handle.stats()["step"] == 6 and handle.last_error is None


def case_constant_is_the_codec_itself(rank: int, world: int) -> None:
    plain, scheduled = ddp(), ddp()
    gradwire.attach(plain, codec=LOOSE)
    gradwire.attach(scheduled, codec=Constant(LOOSE))
    assert train(plain, rank) == train(scheduled, rank)
    assert same_model(plain, scheduled)


def case_each_step_is_that_of_its_codec(rank: int, world: int) -> None:
    """A schedule gives the bits that attaching the codecs one after the other gives."""
    by_hand, scheduled = ddp(), ddp()
    gradwire.attach(scheduled, codec=Warmup(Staged([LOOSE, TIGHT], milestones=[4]), 2, "lossless"))
    train(scheduled, rank, steps=6)
    for first, codec in ((0, "lossless"), (2, LOOSE), (4, TIGHT)):
        gradwire.attach(by_hand, codec=codec)
        train(by_hand, rank, steps=2, first=first)
    assert same_model(by_hand, scheduled)


def case_changes_between_steps_only(rank: int, world: int) -> None:
    """The schedule is asked once per step, whatever buckets and micro-batches the step has."""
    model = ddp()
    asked = []

    class Recording(Constant):
        def codec_at(self, step: int, lr: float | None = None) -> str:
            asked.append(step)
            return super().codec_at(step, lr)

    handle = gradwire.attach(model, codec=Recording("int8"))
    asked.clear()
    for step in range(3):
        with model.no_sync():
            model(batch(rank, step)).square().mean().backward()
        model(batch(rank, step)).square().mean().backward()
    assert asked == [0, 1, 2]
    assert handle.stats()["buckets"] > 3


def case_driven_by_hand(rank: int, world: int) -> None:
    model = ddp()
    schedule = StepDrops("int4", "int8")
    error = raises(errors.InvalidArgument, gradwire.attach, model, codec=schedule)
    assert error.field == "lr" and "follow" in str(error)
    schedule.step(lr=0.1)
    handle = gradwire.attach(model, codec=schedule)
    seen = []
    for step, lr in enumerate((0.1, 0.1, 0.01, 0.1)):
        schedule.step(lr=lr)
        train(model, rank, steps=1, first=step)
        seen.append(handle.codec)
    assert ["bits=8" in codec for codec in seen] == [False, False, True, True]


def case_resumed_run_is_bit_identical(rank: int, world: int) -> None:
    def attach(training: Training) -> gradwire.Handle:
        schedule = Warmup(StepDrops(LOOSE, TIGHT).follow(training.optimizer), 1, "int8")
        return gradwire.attach(training.model, codec=schedule)

    for cut in (2, 4):  # in the loose stage, and behind it
        whole, part, resumed = Training(rank), Training(rank), Training(rank, seed=1)
        attach(whole)
        whole.run(8)
        saved = attach(part)
        part.run(cut)
        state, training_state = saved.state_dict(), part.state_dict()
        handle = attach(resumed)
        resumed.load_state_dict(training_state)
        handle.load_state_dict(state)
        assert handle.codec == saved.codec and handle.state_dict()["step"] == cut
        resumed.run(8 - cut)
        assert same_model(whole.model, resumed.model)


def case_state_of_another_schedule(rank: int, world: int) -> None:
    model = ddp()
    handle = gradwire.attach(model, codec=Staged(["int4", "int8"], milestones=[1]))
    train(model, rank, steps=2)
    state = handle.state_dict()
    for codec, words in (("int8", "schedule Staged"), (Constant("int8"), "kind Staged"),
                         (Staged(["int4", "int8"], milestones=[2]), "milestones")):  # fmt: skip
        handle = gradwire.attach(model, codec=codec)
        error = raises(errors.InvalidArgument, handle.load_state_dict, state)
        assert words in str(error), str(error)
        handle.load_state_dict(state, strict=False)
        assert handle.state_dict()["step"] == 2
    handle = gradwire.attach(model, codec="int8")
    state = handle.state_dict()
    handle = gradwire.attach(model, codec=Constant("int8"))
    error = raises(errors.InvalidArgument, handle.load_state_dict, state)
    assert error.field == "codec" and "Constant" in error.mine
    del state["schedule"]
    assert raises(errors.InvalidArgument, handle.load_state_dict, state).field == "schedule"


def case_a_plain_codec_ends_the_schedule(rank: int, world: int) -> None:
    model = ddp()
    handle = gradwire.attach(model, codec=Staged(["int4", "int8"], milestones=[1]))
    train(model, rank, steps=1)
    assert gradwire.attach(model, codec="lossless") is handle and handle.schedule is None
    train(model, rank, steps=2, first=1)
    assert name(handle) == "lossless"
    with gradwire.attach(model, codec=Staged(["int4", "int8"], milestones=[4])) as handle:
        assert "bits=4" in handle.codec
    train(model, rank, steps=2, first=3)  # detached: not asked
    assert "bits=4" in handle.codec and handle.schedule.last_step == 3


def case_ranks_that_disagree_are_named(rank: int, world: int) -> None:
    training = Training(rank)
    schedule = StepDrops("block:bits=4", "block:bits=8").follow(training.optimizer)
    handle = gradwire.attach(training.model, codec=schedule, deadline=10.0)
    training.run(1)
    before = [p.detach().clone() for p in training.model.parameters()]
    if rank == 1:
        training.optimizer.param_groups[0]["lr"] = 0.001
    error = raises(gradwire.PeerMismatch, training.run, 1)
    assert {error.mine, error.theirs} == {"4", "8"} and error.field == "bits"
    assert handle.last_error["code"] == "PeerMismatch"
    assert all(map(torch.equal, before, training.model.parameters()))


def case_a_schedule_that_fails_fails_the_step(rank: int, world: int) -> None:
    training = Training(rank)
    handle = gradwire.attach(
        training.model, codec=StepDrops("int4", "int8").follow(training.optimizer)
    )
    training.run(2)
    training.optimizer.param_groups[0]["lr"] = float("nan")
    error = raises(errors.InvalidArgument, training.run, 1)
    assert "lr is nan" in str(error), str(error)
    assert handle.last_error["field"] == "codec"
    training.optimizer.param_groups[0]["lr"] = 0.05
    training.run(2)
    assert handle.stats()["step"] == 5
    assert_same_on_all_ranks(training.model.parameters())

    class Wrong(CodecSchedule):
        codecs = ("int8",)

        def codec_at(self, step: int, lr: float | None = None) -> str:
            return "int8" if step < 6 else "zip"

    gradwire.attach(training.model, codec=Wrong())
    training.run(1)
    assert "zip" in str(raises(errors.UnknownCodec, training.run, 1))


def case_every_stage_must_take_the_parameters(rank: int, world: int) -> None:
    net = Net()
    net.second.double()
    error = raises(
        gradwire.UnsupportedDType,
        gradwire.attach,
        ddp(net),
        codec=Staged(["lossless", "cast:dtype=bf16", "natural"], milestones=[2, 4]),
    )
    assert "second.weight" in str(error) and "float64" in str(error)


def case_join(rank: int, world: int) -> None:
    """Rank 1 has fewer batches; its schedule goes on by the steps all the same."""
    model = ddp()
    handle = gradwire.attach(model, codec=Staged(["int4", "int8"], milestones=[3]))
    with model.join():
        train(model, rank, steps=5 if rank == 0 else 2)
    assert_same_on_all_ranks(model.parameters())
    assert on_all_ranks(handle.stats()["steps"]) == [5, 5]
    assert "bits=8" in handle.codec and handle.last_error is None


def case_sparse_first_bucket(rank: int, world: int) -> None:
    """Steps that begin with a bucket which takes no codec ask the schedule as well."""

    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(16, 3)
            self.table = nn.Embedding(50, 16, sparse=True)

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            return self.out(self.table(words)).square().mean()

    model = ddp(Words())
    handle = gradwire.attach(model, codec=Staged(["int4", "int8"], milestones=[2]))
    for _ in range(3):
        model(torch.tensor([1 + rank, 7])).backward()
    assert "bits=8" in handle.codec and handle.stats()["fallbacks"] == 3


def case_python_hook(rank: int, world: int) -> None:
    attached, hooked = ddp(), ddp()
    optimizer = torch.optim.SGD(hooked.parameters(), lr=0.1)
    gradwire.attach(attached, codec=Staged([LOOSE, TIGHT], milestones=[2]))
    state = gradwire.HookState(
        codec=Staged([LOOSE, TIGHT], milestones=[2]).follow(optimizer),
        parameters=hooked.parameters(),
    )
    hooked.register_comm_hook(state, gradwire.hook)
    train(attached, rank)
    train(hooked, rank)
    assert same_model(attached, hooked)
    copied = copy.deepcopy(state)
    assert copied.codec == state.codec and copied.schedule is not state.schedule
    assert copied.state_dict()["schedule"] == state.state_dict()["schedule"] | {"last_step": 5}
    dist.barrier()
