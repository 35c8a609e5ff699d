"""From results of runs to the rows of the comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from gradwire.compare import settings
from gradwire.compare.statistics import (
    Estimate,
    correlation,
    estimate,
    probability_below,
    probability_within,
    rank_correlation,
)

Result = dict[str, Any]
Row = dict[str, Any]

SURE = 0.95  # the probability from which a verdict is given

# Verdicts. None of them says that a codec costs nothing.
REFERENCE = "reference"
LOSES_MORE = "loses more than the margin"
LOSES = "loses, amount open"
WITHIN = "within the margin"
OPEN = "not decided"
DIVERGED = "diverged"


class Slope(NamedTuple):
    """What steps are worth at the end of the uncompressed run."""

    gain: Estimate  # of the longer run
    part: float  # how much longer it is, as a part of the steps

    @property
    def loss_of_a_run(self) -> float:
        """The loss of as many steps as the run has, by the slope at its end."""
        return self.gain.mean / self.part

    @property
    def margin(self) -> float:
        return settings.MARGIN * self.loss_of_a_run


def _slope(results: list[Result], reference: dict[int, Result]) -> Slope | None:
    """None where the longer run gains nothing."""
    changes = _pairs(results, settings.LONGER_RUN, reference)
    if not changes:
        return None
    gain = estimate([-change for change in changes])
    longer = next(r["steps"] for r in results if r["codec"] == settings.LONGER_RUN)
    steps = next(iter(reference.values()))["steps"]
    return Slope(gain, longer / steps - 1) if gain.mean > 0 else None


def _pairs(
    results: Iterable[Result], codec: str, reference: dict[int, Result], field: str = "loss"
) -> list[float]:
    """Differences from the uncompressed run of the same seed."""
    return [
        result[field] - reference[result["seed"]][field]
        for result in results
        if result["codec"] == codec and result["seed"] in reference and result[field] is not None
    ]


def _verdict(codec: str, change: Estimate | None, margin: float | None, diverged: int) -> str:
    if codec == settings.REFERENCE:
        return REFERENCE
    if diverged:
        return DIVERGED
    if change is None or change.error is None:
        return OPEN
    if margin is not None:
        if (probability_below(change, margin) or 0) <= 1 - SURE:
            return LOSES_MORE
        if (probability_within(change, margin) or 0) >= SURE:
            return WITHIN
    if (probability_below(change, 0.0) or 0) <= 1 - SURE and change.mean > 0:
        return LOSES
    return OPEN


def _average(results: list[Result], field: str) -> float | None:
    values = [result[field] for result in results if result[field] is not None]
    return math.fsum(values) / len(values) if values else None


def _estimate_or_none(values: list[float]) -> Estimate | None:
    return estimate(values) if values else None


def _row(
    codec: str, group: list[Result], reference: dict[int, Result], slope: Slope | None
) -> Row:
    own = [result for result in group if result["codec"] == codec]
    change = _estimate_or_none(_pairs(own, codec, reference))
    accuracy = _estimate_or_none(_pairs(own, codec, reference, "accuracy"))
    diverged = sum(result["loss"] is None for result in own)
    row: Row = {
        "task": own[0]["task"],
        "ranks": own[0]["ranks"],
        "codec": codec,
        "seeds": len(own),
        "diverged": diverged,
        "pairs": change.count if change else 0,
        "loss_change": change.mean if change else None,
        "loss_change_error": change.error if change else None,
        "accuracy_change": accuracy.mean if accuracy else None,
        "accuracy_change_error": accuracy.error if accuracy else None,
        "extra_steps": None,
        "extra_steps_error": None,
        "within_margin": None,
        "beyond_margin": None,
        "verdict": _verdict(codec, change, slope.margin if slope else None, diverged),
    }
    for field in ("ratio", "rel_l2", "noise_over_moment", "noise_share", "gradient_norm",
                  "clip_rate"):  # fmt: skip
        row[field] = _average(own, field)
    if change is not None and slope is not None:
        row["extra_steps"] = change.mean / slope.loss_of_a_run
        if change.error is not None:
            row["extra_steps_error"] = change.error / slope.loss_of_a_run
        if codec != settings.REFERENCE:
            row["within_margin"] = probability_within(change, slope.margin)
            below = probability_below(change, slope.margin)
            row["beyond_margin"] = None if below is None else 1 - below
    return row


def _correlations(rows: list[Row]) -> dict[str, Any]:
    """How well three errors predict the loss, over the codecs of one task."""
    found: dict[str, Any] = {}
    measured = [row for row in rows if row["codec"] not in (
        settings.REFERENCE, settings.LONGER_RUN, settings.CONTROL)]  # fmt: skip
    for field in ("noise_over_moment", "noise_share", "rel_l2"):
        points = [(row[field], row["loss_change"]) for row in measured
                  if row[field] and row["loss_change"] is not None]  # fmt: skip
        errors, changes = [p[0] for p in points], [p[1] for p in points]
        found[field] = {
            "codecs": len(points),
            "pearson_of_log": correlation([math.log10(error) for error in errors], changes),
            "spearman": rank_correlation(errors, changes),
        }
    return found


def summarize(results: list[Result]) -> list[dict[str, Any]]:
    """One group for each task and number of ranks, in order of appearance: its rows, what a run
    that is 10 % longer gains, and how errors and losses correlate."""
    groups = []
    for task, ranks in dict.fromkeys((r["task"], r["ranks"]) for r in results):
        group = [r for r in results if (r["task"], r["ranks"]) == (task, ranks)]
        reference = {r["seed"]: r for r in group
                     if r["codec"] == settings.REFERENCE and r["loss"] is not None}  # fmt: skip
        slope = _slope(group, reference)
        codecs = [c for c in dict.fromkeys(r["codec"] for r in group) if c != settings.LONGER_RUN]
        rows = [_row(codec, group, reference, slope) for codec in codecs]
        some = next((r for r in group if r["codec"] == settings.REFERENCE), group[0])
        groups.append({
            "task": task,
            "ranks": ranks,
            "steps": some["steps"],
            "batch": some["batch"],
            "parameters": some["parameters"],
            "data": some["data"],
            "optimizer": some["optimizer"],
            "loss": _average(list(reference.values()), "loss"),
            "gain": slope.gain.mean if slope else None,
            "gain_error": slope.gain.error if slope else None,
            "gain_steps": slope.part * some["steps"] if slope else None,
            "margin": slope.margin if slope else None,
            "rows": rows,
            "correlations": _correlations(rows),
        })  # fmt: skip
    return groups
