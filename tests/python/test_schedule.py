"""gradwire.schedule without a model: which codec a step gets, arguments, state."""

from __future__ import annotations

import copy
import json
import math
import pickle

import gradwire
import pytest
from gradwire import errors
from gradwire.schedule import CodecSchedule, Constant, Staged, StepDrops, Warmup

NONE, INT4, INT8, LOSSLESS = (
    gradwire._core.codec_text(name) for name in ("none", "int4", "int8", "lossless")
)


def run(schedule: CodecSchedule, rates: list[float]) -> list[str]:
    return [schedule.step(lr=rate) for rate in rates]


def every_kind() -> list[CodecSchedule]:
    return [
        Constant("int8"),
        StepDrops("int4", "int8"),
        Staged(["int4", "int8", "lossless"], milestones=[3, 7]),
        Staged(["int4", "int8", "lossless"], total_steps=9, fractions=[0.2, 0.5]),
        Staged(["int4", "int8", "lossless"], lr_ratios=[0.8, 0.3]),
        Warmup(StepDrops("int4", "int8"), steps=4),
    ]


COSINE = [0.05 + 0.05 * math.cos(math.pi * step / 11) for step in range(12)]


def test_constant() -> None:
    schedule = Constant("int8")
    assert schedule.last_step == -1 and schedule.codec == INT8 == schedule.codec_at(10**9)
    assert schedule.step() == INT8 and schedule.last_step == 0 and schedule.last_lr is None


def test_step_drops_at_the_first_drop_and_stays() -> None:
    schedule = StepDrops(loose="int4", tight="int8")
    warm_up, rates = [0.0, 0.02, 0.06], [0.1, 0.1, 0.0999, 0.01, 0.01, 0.001, 0.1]
    assert run(schedule, warm_up) == [INT4] * 3
    assert run(schedule, rates) == [INT4] * 3 + [INT8] * 4
    assert schedule.stage == 1 and schedule.codec == INT8
    assert schedule.codec_at(0, lr=0.1) == INT8  # it does not go back


def test_step_drops_threshold() -> None:
    """StepLR with gamma .95 is seen at once with a threshold above it, else at its third drop."""
    rates = [0.1 * 0.95**drop for drop in range(4)]
    assert run(StepDrops("int4", "int8", threshold=0.97), rates) == [INT4] + [INT8] * 3
    assert run(StepDrops("int4", "int8"), rates) == [INT4] * 3 + [INT8]


def test_staged_by_milestones() -> None:
    schedule = Staged(["int4", "int8", "lossless"], milestones=[3, 7])
    expected = [INT4] * 3 + [INT8] * 4 + [LOSSLESS] * 5
    assert [schedule.codec_at(step) for step in range(12)] == expected
    assert [schedule.step() for _ in range(12)] == expected
    assert schedule.codec_at(2**63) == LOSSLESS, "asked beyond its end: the last stage"


def test_staged_by_fractions() -> None:
    def at(**rule) -> list[str]:
        schedule = Staged(["int4", "int8", "lossless"], **rule)
        return [schedule.codec_at(step) for step in range(12)]

    assert at(total_steps=9) == [INT4] * 3 + [INT8] * 3 + [LOSSLESS] * 6
    assert at(total_steps=10, fractions=[0.25, 0.9]) == [INT4] * 3 + [INT8] * 6 + [LOSSLESS] * 3
    assert at(total_steps=1) == [INT4] + [LOSSLESS] * 11, "stages shorter than a step fall away"


def test_staged_by_learning_rate() -> None:
    schedule = Staged(["int4", "int8", "lossless"], lr_ratios=[0.8, 0.3])
    codecs = run(schedule, [0.01, *COSINE, 0.1])
    assert codecs == (
        [INT4] * sum(rate >= 0.08 for rate in [0.1, *COSINE])
        + [INT8] * sum(0.03 <= rate < 0.08 for rate in COSINE)
        + [LOSSLESS] * (sum(rate < 0.03 for rate in COSINE) + 1)
    ), "a restart does not loosen it again"
    assert run(Staged(["int4", "int8"], lr_ratios=[0.5]), [0.0] * 3) == [INT4] * 3


def test_warmup() -> None:
    schedule = Warmup(StepDrops("int4", "int8"), steps=3, codec="none")
    assert schedule.needs_lr and set(schedule.codecs) == {NONE, INT4, INT8}
    assert run(schedule, [0.02, 0.06, 0.1, 0.1, 0.01]) == [NONE] * 3 + [INT4, INT8]
    # The schedule behind it has seen the rates of the warm-up: here its drop.
    assert run(Warmup(StepDrops("int4", "int8"), steps=2), [0.1, 0.01, 0.01]) == [
        LOSSLESS, LOSSLESS, INT8,
    ]  # fmt: skip
    assert not Warmup("int8", steps=0).needs_lr
    assert run(Warmup("int8", steps=0), [0.1]) == [INT8]


def test_codec_at_changes_nothing() -> None:
    for schedule in every_kind():
        before = json.dumps(schedule.state_dict())
        for lr in (0.1, 0.001):
            schedule.codec_at(50, lr=lr)
        assert json.dumps(schedule.state_dict()) == before


def test_every_codec_is_announced() -> None:
    for schedule in every_kind():
        assert set(run(schedule, COSINE)) <= set(schedule.codecs)


@pytest.mark.parametrize("schedule", every_kind(), ids=repr)
@pytest.mark.parametrize("steps", [0, 1, 5, 12])
def test_state_goes_on_as_the_whole_run(schedule: CodecSchedule, steps: int) -> None:
    schedule = copy.deepcopy(schedule)
    fresh, copied = copy.deepcopy(schedule), None
    run(schedule, COSINE[:steps])
    state = json.loads(json.dumps(schedule.state_dict()))
    copied = pickle.loads(pickle.dumps(schedule))
    fresh.load_state_dict(state)
    assert fresh.state_dict() == state and fresh.last_step == steps - 1
    rest = run(schedule, COSINE[steps:])
    assert run(fresh, COSINE[steps:]) == rest == run(copied, COSINE[steps:])


def test_state_of_another_schedule() -> None:
    state = StepDrops("int4", "int8").state_dict()
    for other, field in ((Constant("int8"), "kind"), (StepDrops("int4", "lossless"), "settings"),
                         (StepDrops("int4", "int8", threshold=0.5), "settings"),
                         (Warmup(StepDrops("int4", "int8"), 2), "kind")):  # fmt: skip
        with pytest.raises(errors.InvalidArgument) as raised:
            other.load_state_dict(state)
        assert raised.value.field == field and raised.value.mine != raised.value.theirs
    for name in state:
        with pytest.raises(errors.InvalidArgument, match=name):
            StepDrops("int4", "int8").load_state_dict({k: v for k, v in state.items() if k != name})
    for damage in ({"last_step": -2}, {"lr": math.nan}, {"memory": {"stage": 2, "peak": 0.1}},
                   {"memory": {"stage": 1, "peak": -1.0}}):  # fmt: skip
        with pytest.raises((errors.InvalidArgument, errors.OutOfRange)):
            StepDrops("int4", "int8").load_state_dict(state | damage)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Staged([], milestones=[]), "codecs"),
        (lambda: Staged("int8", milestones=[]), "codecs"),
        (lambda: Staged(["int4", "int8"]), "milestones"),
        (lambda: Staged(["int4", "int8"], milestones=[3], total_steps=9), "milestones"),
        (lambda: Staged(["int4", "int8"], milestones=[3], fractions=[0.5]), "fractions"),
        (lambda: Staged(["int4", "int8"], milestones=[3, 4]), "milestones"),
        (lambda: Staged(["int4", "int8"], milestones=[0]), "milestones"),
        (lambda: Staged(["int4", "int8"], milestones=[1.5]), "milestones"),
        (lambda: Staged(["int4", "int8", "none"], milestones=[4, 4]), "milestones"),
        (lambda: Staged(["int4", "int8"], total_steps=0), "total_steps"),
        (lambda: Staged(["int4", "int8"], total_steps=True), "total_steps"),
        (lambda: Staged(["int4", "int8"], total_steps=9, fractions=[0.0]), "fractions"),
        (lambda: Staged(["int4", "int8", "none"], total_steps=9, fractions=[0.5, 0.4]),
         "fractions"),
        (lambda: Staged(["int4", "int8"], lr_ratios=[1.5]), "lr_ratios"),
        (lambda: Staged(["int4", "int8"], lr_ratios=[math.nan]), "lr_ratios"),
        (lambda: Staged(["int4", "int8", "none"], lr_ratios=[0.3, 0.8]), "lr_ratios"),
        (lambda: StepDrops("int4", "int8", threshold=0.0), "threshold"),
        (lambda: StepDrops("int4", "int8", threshold=None), "threshold"),
        (lambda: Warmup("int8", steps=-1), "steps"),
        (lambda: Warmup("int8", steps=1.0), "steps"),
        (lambda: Constant("int8").codec_at(-1), "step"),
        (lambda: Constant("int8").codec_at(True), "step"),
        (lambda: StepDrops("int4", "int8").codec_at(0), "lr"),
        (lambda: StepDrops("int4", "int8").step(), "lr"),
        (lambda: Warmup(StepDrops("int4", "int8"), 5).step(), "lr"),
        (lambda: Constant("int8").step(lr=-0.1), "lr"),
        (lambda: Constant("int8").step(lr=math.nan), "lr"),
        (lambda: Constant("int8").step(lr=math.inf), "lr"),
        (lambda: Constant("int8").step(lr="0.1"), "lr"),
    ],
)  # fmt: skip
def test_wrong_arguments(make, field: str) -> None:
    with pytest.raises(errors.InvalidArgument) as raised:
        make()
    assert raised.value.field == field and field in str(raised.value)


def test_wrong_codecs_and_sources() -> None:
    with pytest.raises(errors.UnknownCodec, match="zip"):
        StepDrops("int4", "zip")
    with pytest.raises(errors.OutOfRange, match="77"):
        Warmup("int8", 3, codec="block:bits=77")
    for make in (lambda: Constant(8), lambda: Staged([None], milestones=[]),
                 lambda: Warmup(None, 3), lambda: Staged(["int8"], milestones=3),
                 lambda: Constant("int8").follow(0.1)):  # fmt: skip
        with pytest.raises(TypeError):
            make()


def test_follows_torch() -> None:
    torch = pytest.importorskip("torch")
    parameters = [torch.nn.Parameter(torch.zeros(3)) for _ in range(2)]

    def optimizer(rate=0.1) -> torch.optim.Optimizer:
        groups = [{"params": parameters[:1], "lr": 0.0}, {"params": parameters[1:]}]
        return torch.optim.SGD(groups, lr=rate)

    for wrap in (lambda _, scheduler: scheduler, lambda sgd, _: sgd):
        sgd = optimizer()
        scheduler = torch.optim.lr_scheduler.StepLR(sgd, step_size=3, gamma=0.1)
        schedule = StepDrops("int4", "int8").follow(wrap(sgd, scheduler))
        codecs = []
        for step in range(8):
            codecs.append(schedule.update(step))
            sgd.step()
            scheduler.step()
        assert codecs == [INT4] * 3 + [INT8] * 5
        assert schedule.last_step == 7 and schedule.last_lr == pytest.approx(0.001)
    sgd = optimizer(torch.tensor(0.1))  # a rate that torch keeps as a tensor
    followed = StepDrops("int4", "int8").follow(sgd)
    assert Warmup(followed, 1).update(0) == LOSSLESS, "a warm-up follows what its schedule does"
    assert Warmup(followed, 1).update(1) == INT4
    assert followed.step(lr=0.1) == INT4 and followed.step(lr=0.01) == INT8, "by hand wins"
    assert copy.deepcopy(followed).follow(sgd) is not followed
    with pytest.raises(errors.InvalidArgument, match="lr"):
        StepDrops("int4", "int8").follow(type("Empty", (), {"param_groups": []})())
