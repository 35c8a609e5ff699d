"""Numbers of section 8 of docs/format.md: scales and stochastic rounding, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from spec_frame import ABSMAX, ABSOLUTE, RMS, DType


def round_half_even(number: int, shift: int) -> int:
    """number x 2^-shift, rounded to an integer."""
    if shift <= 0:
        return number << -shift
    below, half = number & (1 << shift) - 1, 1 << shift - 1
    up = below > half or (below == half and number >> shift & 1)
    return (number >> shift) + up


@dataclass(frozen=True)
class Float:
    """A bit pattern, taken apart."""

    dtype: DType
    pattern: int

    @property
    def sign(self) -> int:
        return self.pattern >> self.dtype.exponent_bits + self.dtype.mantissa_bits

    @property
    def field(self) -> int:
        return self.pattern >> self.dtype.mantissa_bits & (1 << self.dtype.exponent_bits) - 1

    @property
    def mantissa(self) -> int:
        return self.pattern & (1 << self.dtype.mantissa_bits) - 1

    @property
    def is_finite(self) -> bool:
        return self.field != (1 << self.dtype.exponent_bits) - 1

    @property
    def is_zero(self) -> bool:
        return self.field == self.mantissa == 0

    @property
    def significand(self) -> int:
        return self.mantissa + (1 << self.dtype.mantissa_bits if self.field else 0)

    @property
    def exponent(self) -> int:
        """The magnitude is significand x 2^exponent."""
        return max(self.field, 1) - bias(self.dtype) - self.dtype.mantissa_bits


def bias(dtype: DType) -> int:
    return (1 << dtype.exponent_bits - 1) - 1


def group_scale(values: Sequence[Float], x: float) -> int | None:
    """k = floor(log2(X RMS)) of the finite values; None where y is 0 ("Mean square of a group")."""
    dtype = values[0].dtype
    largest = max(max(v.field, 1) for v in values)
    total = 0
    for v in values:
        s = v.significand << 10 >> dtype.mantissa_bits >> largest - max(v.field, 1)
        total += s * s
    y = ((total << 8) // len(values)) * int(x * x * 2**28)
    if y == 0:
        return None
    j = (y.bit_length() - 1 - 36) // 2
    return j + largest - bias(dtype) - 10


# ---- scales ----


def exact_value(v: Float) -> Fraction:
    return (-1) ** v.sign * v.significand * Fraction(2) ** v.exponent


def floor_log2(number: Fraction) -> int:
    k = number.numerator.bit_length() - number.denominator.bit_length()
    return k if Fraction(2) ** k <= number else k - 1


def bound_scale(values: Sequence[Float], scale: int, x: float) -> int | None:
    """k = floor(log2(X s)) of the finite values ("Scale of error_bounded"); None where s is 0."""
    if scale == RMS:
        return group_scale(values, x)
    low, high = (pick(values, key=exact_value) for pick in (min, max))
    if scale == ABSOLUTE:
        s = Fraction(1)
    elif scale == ABSMAX:
        s = max(abs(exact_value(low)), abs(exact_value(high)))
    else:
        larger = max(low, high, key=lambda v: abs(exact_value(v)))
        unit = Fraction(2) ** (larger.exponent - 61 + larger.dtype.mantissa_bits)
        s = (exact_value(high) - exact_value(low)) // unit * unit
    return floor_log2(Fraction(x) * s) if s else None


# ---- stochastic rounding ----


def grid_pattern(dtype: DType, q: int, k: int) -> int | None:
    """The pattern of q x 2^k, q > 0, which the type holds exactly; None if it is not finite."""
    least = 1 - bias(dtype) - dtype.mantissa_bits
    last = max(q.bit_length() - 1 + k - dtype.mantissa_bits, least)
    significand = round_half_even(q, last - k)
    assert significand * Fraction(2) ** (last - k) == q
    # A hidden bit adds one to the exponent field.
    pattern = (last - least << dtype.mantissa_bits) + significand
    return pattern if pattern >> dtype.mantissa_bits < (1 << dtype.exponent_bits) - 1 else None


def rounded_to_step(v: Float, k: int, is_filtered: bool, u: int) -> Float:
    """Stochastic rounding to a step."""
    if not v.is_finite or abs(exact_value(v)) >= Fraction(2) ** (k + 11):
        return v
    t = (-1) ** v.sign * round_half_even(v.significand, k - 16 - v.exponent)
    q = t + u >> 16
    if q == 0 or (is_filtered and abs(exact_value(v)) < Fraction(2) ** k):
        return Float(v.dtype, 0)
    pattern = grid_pattern(v.dtype, abs(q), k)
    if pattern is None:
        return v
    return Float(v.dtype, pattern | (q < 0) << v.dtype.exponent_bits + v.dtype.mantissa_bits)


def rounded_to_mantissa(v: Float, mantissa: int, u: int) -> Float:
    """Stochastic rounding to a mantissa."""
    dtype = v.dtype
    drop = dtype.mantissa_bits - mantissa
    if drop <= 0 or not v.is_finite or v.field == 0:
        return v
    sign = v.sign << dtype.exponent_bits + dtype.mantissa_bits
    t = round_half_even(v.pattern ^ sign, drop - 16)
    pattern = (t + u >> 16) << drop
    if pattern >> dtype.mantissa_bits == (1 << dtype.exponent_bits) - 1:
        return v
    return Float(dtype, sign | pattern)
