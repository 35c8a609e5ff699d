"""Checks of what users hand to a schedule; what is wrong is named."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from gradwire import _core
from gradwire.errors import InvalidArgument



def checked_codec(codec: object) -> str:
    if not isinstance(codec, str):
        raise TypeError(f"a codec is a text such as 'int8', not {type(codec).__name__}")
    return _core.codec_text(codec)


def checked_integer(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgument(
            f"{name} is {value!r}, must be an integer of {least} or more", field=name
        )
    return value


def checked_rate(lr: Any) -> float:
    """A learning rate, which torch may keep as a tensor of one value."""
    try:
        rate = float(lr)
    except (TypeError, ValueError):
        rate = math.nan
    if isinstance(lr, (bool, str)) or not 0 <= rate < math.inf:
        raise InvalidArgument(f"lr is {lr!r}, must be a finite number of 0 or more", field="lr")
    return rate


def needed_rate(lr: Any, schedule: str) -> float:
    if lr is None:
        raise InvalidArgument(
            f"{schedule} needs the learning rate: let it follow the optimizer, "
            "schedule.follow(optimizer), or give it by hand, schedule.step(lr=...)",
            field="lr",
        )
    return checked_rate(lr)


def rate_of(source: Any) -> float:
    """The learning rate of an optimizer or lr_scheduler."""
    if hasattr(source, "param_groups"):
        rates = [group["lr"] for group in source.param_groups]
    elif hasattr(source, "get_last_lr"):
        rates = list(source.get_last_lr())
    else:
        raise TypeError(
            "a schedule follows a torch optimizer or lr_scheduler (param_groups or get_last_lr), "
            f"not {type(source).__name__}"
        )
    if not rates:
        raise InvalidArgument("the optimizer has no parameter groups", field="lr")
    return max(checked_rate(rate) for rate in rates)


def _checked_count(name: str, values: Any, later: int) -> list:
    try:
        values = list(values)
    except TypeError:
        raise TypeError(f"{name} is {values!r}, must be a list") from None
    if len(values) != later:
        raise InvalidArgument(
            f"{name} has {len(values)} entries, {later + 1} codecs need {later}", field=name
        )
    return values


def checked_milestones(milestones: Any, later: int) -> list[int]:
    values = [
        checked_integer("milestones", value, 1)
        for value in _checked_count("milestones", milestones, later)
    ]
    if any(a >= b for a, b in pairwise(values)):
        raise InvalidArgument(f"milestones {values} do not increase", field="milestones")
    return values


def milestones_of(total_steps: int, fractions: Any, later: int) -> list[int]:
    """The first step of each later stage; equal ones where a stage is shorter than a step."""
    if fractions is None:
        return [-(-total_steps * stage // (later + 1)) for stage in range(1, later + 1)]
    parts = checked_parts("fractions", fractions, later, rising=True)
    return [math.ceil(part * total_steps) for part in parts]


def checked_part(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise InvalidArgument(f"{name} is {value!r}, must be above 0 and at most 1", field=name)
    return float(value)


def checked_parts(name: str, values: Any, later: int, rising: bool) -> list[float]:
    parts = [checked_part(name, value) for value in _checked_count(name, values, later)]
    if any(a >= b if rising else a <= b for a, b in pairwise(parts)):
        word = "increase" if rising else "decrease"
        raise InvalidArgument(f"{name} {parts} do not {word}", field=name)
    return parts
