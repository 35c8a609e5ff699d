"""Statistics of the comparison against known numbers."""

from __future__ import annotations

import math

import pytest
from gradwire.compare.statistics import (
    Estimate,
    correlation,
    estimate,
    incomplete_beta,
    probability_below,
    probability_within,
    rank_correlation,
    ranks,
    t_below,
)

# Two-sided 95 % and 99 % points of Student's t, from printed tables.
T_975 = {1: 12.706, 2: 4.3027, 3: 3.1824, 7: 2.3646, 10: 2.2281, 30: 2.0423, 100: 1.9840}
T_995 = {1: 63.657, 2: 9.9248, 3: 5.8409, 7: 3.4995, 10: 3.1693, 30: 2.7500, 100: 2.6259}


@pytest.mark.parametrize(("table", "level"), [(T_975, 0.975), (T_995, 0.995)])
def test_t_against_printed_tables(table: dict[int, float], level: float) -> None:
    for freedom, t in table.items():
        assert t_below(t, freedom) == pytest.approx(level, abs=2e-5)
        assert t_below(-t, freedom) == pytest.approx(1 - level, abs=2e-5)


def test_t_with_closed_forms() -> None:
    for t in (-30.0, -2.5, -0.1, 0.0, 0.3, 1.0, 8.0, 1e6):
        assert t_below(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi, abs=1e-13)
        assert t_below(t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)), abs=1e-13)
    # With many degrees of freedom, the normal distribution.
    assert t_below(1.0, 10**7) == pytest.approx(0.5 * (1 + math.erf(math.sqrt(0.5))), abs=1e-7)
    assert (t_below(math.inf, 3), t_below(-math.inf, 3)) == (1, 0)


def test_incomplete_beta() -> None:
    for x in (0.0, 0.1, 0.5, 0.77, 1.0):
        assert incomplete_beta(1, 1, x) == pytest.approx(x, abs=1e-14)
        assert incomplete_beta(3, 1, x) == pytest.approx(x**3, abs=1e-14)
        both = incomplete_beta(2.5, 4, x) + incomplete_beta(4, 2.5, 1 - x)
        assert both == pytest.approx(1, abs=1e-13)
    for wrong in ((0, 1, 0.5), (1, -1, 0.5), (1, 1, 1.5)):
        with pytest.raises(ValueError, match="must be above 0"):
            incomplete_beta(*wrong)


def test_estimate() -> None:
    assert estimate([1, 2, 3, 4]) == Estimate(2.5, pytest.approx(math.sqrt(5 / 3 / 4)), 4)
    assert estimate([7.0]) == Estimate(7.0, None, 1)
    assert estimate([1e8 + 1, 1e8 - 1, 1e8]).error == pytest.approx(math.sqrt(1 / 3))
    with pytest.raises(ValueError, match="empty"):
        estimate([])


def test_probabilities() -> None:
    value = Estimate(0.0, 1.0, 8)
    assert probability_within(value, 2.3646) == pytest.approx(0.95, abs=4e-5)
    assert probability_below(value, 0.0) == pytest.approx(0.5)
    shifted = Estimate(3.0, 1.0, 8)
    assert probability_below(shifted, 3.0 + 2.3646) == pytest.approx(0.975, abs=2e-5)
    assert probability_within(shifted, 1.0) == pytest.approx(
        t_below(-2.0, 7) - t_below(-4.0, 7), abs=1e-12
    )
    # One pair says nothing; pairs that do not differ say all.
    assert probability_below(Estimate(1.0, None, 1), 2.0) is None
    assert probability_within(Estimate(1.0, None, 1), 2.0) is None
    assert probability_within(Estimate(0.0, 0.0, 3), 0.0) == 1
    assert probability_within(Estimate(1.0, 0.0, 3), 0.5) == 0
    assert probability_within(Estimate(-1.0, 0.0, 3), 1.0) == 1


def test_correlations() -> None:
    x = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert correlation(x, [2 * value + 1 for value in x]) == pytest.approx(1)
    assert correlation(x, [-value for value in x]) == pytest.approx(-1)
    assert correlation(x, [1, 3, 2, 5, 4]) == pytest.approx(0.8)
    assert ranks([30, 10, 20, 10]) == [4, 1.5, 3, 1.5]
    assert rank_correlation(x, [math.exp(value) for value in x]) == pytest.approx(1)
    assert correlation([1, 2], [1, 2]) is None and correlation(x, [3] * 5) is None
    with pytest.raises(ValueError, match="5 values, y has 1"):
        correlation(x, [1])
