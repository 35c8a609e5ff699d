"""Means with standard errors, Student's t, and correlations; plain Python.

Differences of a codec from the uncompressed run are taken in pairs, seed by seed. What is known
of their true mean after n pairs of mean m and standard error s is that (mean - m) / s follows
Student's t with n - 1 degrees of freedom (normal differences, flat prior).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_TINY = 1e-300
_MOST_TERMS = 500


class Estimate(NamedTuple):
    """Mean of n values; ``error``: its standard error, None for fewer than two values."""

    mean: float
    error: float | None
    count: int


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and standard error (deviation with n - 1, over sqrt(n)). ValueError if empty."""
    count = len(values)
    if count == 0:
        raise ValueError("values is empty, an estimate needs one value at least")
    mean = math.fsum(values) / count
    if count == 1:
        return Estimate(mean, None, 1)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Estimate(mean, math.sqrt(variance / count), count)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    result = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 + term * d
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = 1 + term / c
            c = c if abs(c) > _TINY else _TINY
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return result


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function I_x(a, b) for a, b > 0 and 0 <= x <= 1."""
    if not 0 <= x <= 1 or a <= 0 or b <= 0:
        raise ValueError(f"a is {a}, b is {b}, x is {x}: a and b must be above 0, x in 0 to 1")
    if x in (0, 1):
        return float(x)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logarithm + a * math.log(x) + b * math.log1p(-x))
    # The fraction converges fast on this side of the mean only.
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, 1 - x) / b


def t_below(t: float, freedom: int) -> float:
    """P(T <= t) for Student's t with ``freedom`` degrees of freedom."""
    if freedom < 1:
        raise ValueError(f"freedom is {freedom}, must be 1 or more")
    if math.isinf(t):
        return 1.0 if t > 0 else 0.0
    tail = 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))
    return 1 - tail if t > 0 else tail


def probability_below(value: Estimate, limit: float) -> float | None:
    """P(true mean <= limit); None where one pair alone says nothing of its error.

    Pairs that do not differ at all (an exact codec) have no error: 0 or 1.
    """
    if value.error is None:
        return None
    if value.error == 0:
        return 1.0 if value.mean <= limit else 0.0
    return t_below((limit - value.mean) / value.error, value.count - 1)


def probability_within(value: Estimate, margin: float) -> float | None:
    """P(-margin <= true mean <= margin); None as above. ``margin`` is 0 or more."""
    upper = probability_below(value, margin)
    lower = probability_below(value, math.nextafter(-margin, -math.inf))
    return None if upper is None or lower is None else max(0.0, upper - lower)


def correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's; None for fewer than three points or where one side does not vary."""
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} values, y has {len(y)}")
    if len(x) < 3:
        return None
    a, b = math.fsum(x) / len(x), math.fsum(y) / len(y)
    xx = math.fsum((u - a) ** 2 for u in x)
    yy = math.fsum((v - b) ** 2 for v in y)
    if xx == 0 or yy == 0:
        return None
    xy = math.fsum((u - a) * (v - b) for u, v in zip(x, y, strict=True))
    return max(-1.0, min(1.0, xy / math.sqrt(xx * yy)))


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    first = 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for place in order[first : last + 1]:
            result[place] = (first + last) / 2 + 1
        first = last + 1
    return result


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's; None as for :func:`correlation`."""
    return correlation(ranks(x), ranks(y))
