"""Schedules: which codec an optimizer step gets.

    schedule = gradwire.schedule.StepDrops(loose="int4", tight="int8").follow(optimizer)
    handle = gradwire.attach(model, codec=schedule)

A schedule is a function of the step and the learning rate, so all ranks come to the same codec;
where they do not, the step fails with ``PeerMismatch`` on every rank. The codec changes between two
steps, never inside one. Asked beyond its last stage a schedule stays there.

The learning rate comes from what the schedule follows, a torch optimizer or lr_scheduler (of
several parameter groups the largest rate counts), or by hand::

    for lr in rates:
        schedule.step(lr=lr)  # before the step's forward
        ...
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from gradwire import _schedule_arguments as args
from gradwire.errors import InvalidArgument, OutOfRange

__all__ = ["CodecSchedule", "Constant", "Staged", "StepDrops", "Warmup"]


class CodecSchedule(ABC):
    """What all schedules have in common; a subclass gives ``codecs`` and :meth:`codec_at`.

    One object serves one model: it remembers the largest learning rate and the stage reached.
    Pickles and copies do not take what the schedule follows with them.
    """

    #: True if :meth:`codec_at` needs the learning rate.
    needs_lr = False

    def __init__(self) -> None:
        self._source: Any = None
        self._last_step = -1
        self._lr: float | None = None

    # ---- what a policy is ----

    @property
    @abstractmethod
    def codecs(self) -> tuple[str, ...]:
        """Every codec that the schedule may give, in canonical form."""

    @abstractmethod
    def codec_at(self, step: int, lr: float | None = None) -> str:
        """The codec of a step with this learning rate. Changes nothing.

        ``step`` counts from 0. What was seen before counts: a schedule that has left a stage does
        not go back to it.
        """

    def _remember(self, step: int, lr: float | None) -> None:  # noqa: B027, most remember nothing
        """Takes note of a step that is about to run."""

    def _settings(self) -> dict[str, Any]:
        """The arguments, as plain values: a state fits only a schedule with the same ones."""
        return {"codecs": list(self.codecs)}

    def _memory(self) -> dict[str, Any]:
        """What :meth:`_remember` keeps, as plain values."""
        return {}

    def _load_memory(self, memory: dict[str, Any]) -> None:  # noqa: B027
        """The reverse of :meth:`_memory`."""

    # ---- driving it ----

    def follow(self, source: Any) -> CodecSchedule:
        """Reads the learning rate from a torch optimizer or lr_scheduler from now on; returns
        the schedule itself."""
        args.rate_of(source)
        self._source = source
        return self

    def step(self, lr: float | None = None) -> str:
        """Goes on to the next step, the first time to step 0, and returns its codec.

        ``lr`` is the step's learning rate; without it the followed optimizer's, else the last one
        given. For a loop that uses the schedule by hand. On an attached model the steps are
        counted by the model, and this call only brings the learning rate.
        """
        if lr is not None:
            self._lr = args.checked_rate(lr)
        return self._go_to(self._last_step + 1, use_source=lr is None)

    def update(self, step: int) -> str:
        """Goes to ``step`` and returns its codec; an attached model calls it once per step."""
        return self._go_to(args.checked_integer("step", step, 0), use_source=True)

    def _go_to(self, step: int, use_source: bool) -> str:
        if use_source and self._source is not None:
            self._lr = args.rate_of(self._source)
        codec = self.codec_at(step, self._lr)
        self._remember(step, self._lr)
        self._last_step = step
        return codec

    @property
    def last_step(self) -> int:
        """The step it stands at; -1 before the first one."""
        return self._last_step

    @property
    def last_lr(self) -> float | None:
        """The learning rate of that step; None if it has seen none."""
        return self._lr

    @property
    def codec(self) -> str:
        """The codec of that step."""
        return self.codec_at(max(self._last_step, 0), self._lr)

    # ---- its state ----

    def state_dict(self) -> dict[str, Any]:
        """Plain values from which a schedule with the same arguments goes on."""
        return {
            "kind": type(self).__name__,
            "settings": self._settings(),
            "last_step": self._last_step,
            "lr": self._lr,
            "memory": self._memory(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes a state_dict() over.

        Raises:
            InvalidArgument: the state is incomplete, or of a schedule with other arguments.
        """
        wanted = {"kind": type(self).__name__, "settings": self._settings()}
        for name in (*wanted, "last_step", "lr", "memory"):
            if name not in state:
                raise InvalidArgument(f"the schedule's state has no {name}", field=name)
        for name, mine in wanted.items():
            if state[name] != mine:
                raise InvalidArgument(
                    f"the state is of a schedule with {name} {state[name]}, this one has {mine}",
                    field=name,
                    mine=str(mine),
                    theirs=str(state[name]),
                )
        self._load_memory(state["memory"])
        self._last_step = args.checked_integer("last_step", state["last_step"], -1)
        self._lr = None if state["lr"] is None else args.checked_rate(state["lr"])

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_source": None}

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        return f"{type(self).__name__}({settings})"


class Constant(CodecSchedule):
    """One codec for all steps."""

    def __init__(self, codec: str) -> None:
        super().__init__()
        self._codec = args.checked_codec(codec)

    @property
    def codecs(self) -> tuple[str, ...]:
        return (self._codec,)

    def codec_at(self, step: int, lr: float | None = None) -> str:
        args.checked_integer("step", step, 0)
        return self._codec


class Staged(CodecSchedule):
    """One codec after the other, usually from loose to tight, for smooth schedules as cosine.

    Args:
        codecs: one per stage.
        milestones: the step at which each later stage begins, as in torch's ``MultiStepLR``.
        total_steps: length of the run; stages of equal length unless ``fractions`` says else.
        fractions: where each later stage begins, as parts of ``total_steps``.
        lr_ratios: a later stage begins when the learning rate falls below this part of the largest
            one seen. A warm-up of the learning rate leaves the first stage alone, and a rate that
            rises again (warm restarts) does not bring an earlier stage back.

    Exactly one of ``milestones``, ``total_steps`` and ``lr_ratios``.
    """

    def __init__(
        self,
        codecs: Sequence[str],
        *,
        milestones: Sequence[int] | None = None,
        total_steps: int | None = None,
        fractions: Sequence[float] | None = None,
        lr_ratios: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        if isinstance(codecs, str) or not codecs:
            raise InvalidArgument(
                f"codecs is {codecs!r}, must be a list of one codec or more", field="codecs"
            )
        self._codecs = tuple(args.checked_codec(codec) for codec in codecs)
        given = {"milestones": milestones, "total_steps": total_steps, "lr_ratios": lr_ratios}
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1:
            raise InvalidArgument(
                "stages begin by exactly one of milestones, total_steps and lr_ratios; "
                f"given: {', '.join(named) or 'none'}",
                field=named[0] if named else "milestones",
            )
        if fractions is not None and total_steps is None:
            raise InvalidArgument("fractions are parts of total_steps", field="fractions")
        later = len(self._codecs) - 1
        self._milestones: list[int] | None = None
        self._ratios: list[float] = []
        if milestones is not None:
            self._milestones = args.checked_milestones(milestones, later)
        elif total_steps is not None:
            total_steps = args.checked_integer("total_steps", total_steps, 1)
            self._milestones = args.milestones_of(total_steps, fractions, later)
        else:
            self._ratios = args.checked_parts("lr_ratios", lr_ratios, later, rising=False)
            self.needs_lr = True
        self._peak = 0.0
        self._stage = 0

    @property
    def codecs(self) -> tuple[str, ...]:
        return self._codecs

    @property
    def stage(self) -> int:
        """Number of the stage it stands at, from 0."""
        return self._stage

    def codec_at(self, step: int, lr: float | None = None) -> str:
        return self._codecs[self._stage_at(step, lr)]

    def _stage_at(self, step: int, lr: float | None) -> int:
        step = args.checked_integer("step", step, 0)
        if self._milestones is not None:
            return bisect_right(self._milestones, step)
        rate = args.needed_rate(lr, type(self).__name__)
        peak = max(self._peak, rate)
        return max(self._stage, sum(rate < ratio * peak for ratio in self._ratios))

    def _remember(self, step: int, lr: float | None) -> None:
        self._stage = self._stage_at(step, lr)
        if lr is not None:
            self._peak = max(self._peak, lr)

    def _settings(self) -> dict[str, Any]:
        rule = {"lr_ratios": self._ratios}
        if self._milestones is not None:
            rule = {"milestones": self._milestones}
        return super()._settings() | rule

    def _memory(self) -> dict[str, Any]:
        return {"stage": self._stage, "peak": self._peak}

    def _load_memory(self, memory: dict[str, Any]) -> None:
        stage = args.checked_integer("stage", memory["stage"], 0)
        if stage >= len(self._codecs):
            raise OutOfRange(
                f"stage is {stage}, there are {len(self._codecs)} stages", field="stage"
            )
        self._stage, self._peak = stage, args.checked_rate(memory["peak"])


class StepDrops(Staged):
    """Loose before the first drop of the learning rate, tight from then on.

    COMPSO's rule for step schedules as torch's ``StepLR`` and ``MultiStepLR``: while the rate is
    large, steps tolerate coarse gradients; after the first drop they do not. Needs the learning
    rate.

    Args:
        loose: the codec before the first drop.
        tight: the codec after it.
        threshold: a rate below this part of the largest one seen is a drop. Larger than the
            schedule's factor (``gamma``), smaller than 1.
    """

    def __init__(self, loose: str, tight: str, threshold: float = 0.9) -> None:
        ratio = args.checked_part("threshold", threshold)
        super().__init__([loose, tight], lr_ratios=[ratio])


class Warmup(CodecSchedule):
    """An exact or fine codec for the first steps, then another schedule.

    Args:
        after: the schedule, or codec, from step ``steps`` on. Its steps count from the start of the
            run, and it sees the learning rates of the warm-up too.
        steps: length of the warm-up.
        codec: the codec during the warm-up.
    """

    def __init__(self, after: CodecSchedule | str, steps: int, codec: str = "lossless") -> None:
        super().__init__()
        self._after = after if isinstance(after, CodecSchedule) else Constant(after)
        self._steps = args.checked_integer("steps", steps, 0)
        self._codec = args.checked_codec(codec)
        self._source = self._after._source

    @property
    def needs_lr(self) -> bool:  # type: ignore[override]
        return self._after.needs_lr

    @property
    def codecs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self._codec, *self._after.codecs)))

    def codec_at(self, step: int, lr: float | None = None) -> str:
        after = self._after.codec_at(step, lr)
        return self._codec if step < self._steps else after

    def _remember(self, step: int, lr: float | None) -> None:
        self._after._remember(step, lr)

    def _settings(self) -> dict[str, Any]:
        after = {"kind": type(self._after).__name__, **self._after._settings()}
        return {"after": after, "steps": self._steps, "codec": self._codec}

    def _memory(self) -> dict[str, Any]:
        return self._after._memory()

    def _load_memory(self, memory: dict[str, Any]) -> None:
        self._after._load_memory(memory)
