"""Codecs 16 and up of docs/format.md, both ways: sections 4.3 and following, and their part of 8.

The model of the baselines: bit patterns to bytes and back, value by value where it has to be.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np

from spec_bits import pack_bits, read_bit_array
from spec_frame import (
    HADAMARD, MXFP4, MXFP8, NATURAL, SIGN, TERNGRAD, Header, IndexEntry, check_block,
)  # fmt: skip
from spec_noise import Noise

if TYPE_CHECKING:
    from spec_blocks import Groups
    from spec_encoder import Pieces, Spec

MAGNITUDE, INFINITY = 0x7FFFFFFF, 0x7F800000


def float32(pattern: int) -> Fraction:
    return Fraction(float(np.array([pattern], "<u4").view("<f4")[0]))


# ---- section 4.3: natural ----


def decode_natural(
    header: Header, entry: IndexEntry, block: bytes, groups: Groups, count: int
) -> np.ndarray:
    del header, groups
    raw_at = (9 * count + 7) // 8
    check_block(len(block) >= raw_at, "the codes do not fit the block")
    codes = read_bit_array(block[:raw_at], 9, count)
    is_raw = codes & 255 == 255
    check_block(np.count_nonzero(is_raw) == entry.outlier_count, "outlier_count is wrong")
    check_block(len(block) == raw_at + 4 * entry.outlier_count, "the sections do not fill it")
    values = (codes << 23).astype("<u4")
    values[is_raw] = np.frombuffer(block, "<u4", offset=raw_at)
    return values


def encode_natural(spec: Spec, pieces: Pieces) -> tuple[int, bytes]:
    codes, raw = [], []
    for patterns, part, first in pieces:
        noise = Noise.of_tensor(spec, part.tensor)
        for i, pattern in enumerate(map(int, patterns)):
            sign, magnitude = pattern >> 31 << 8, pattern & 0x7FFFFFFF
            if magnitude > 254 << 23:
                codes.append(sign | 255)
                raw.append(pattern)
            else:
                codes.append(sign | magnitude + (noise.of(first + i) << 7) + 64 >> 23)
    return len(raw), pack_bits(codes, 9) + np.array(raw, "<u4").tobytes()


# ---- section 4.4: grouped blocks ----


class Grouped(Protocol):
    """What the scales and codes of a codec mean; a scale is its bytes."""

    scale_bytes: int
    raw_scale: bytes
    width: int

    def values(self, scale: bytes, codes: np.ndarray) -> np.ndarray: ...
    def encode(self, group: np.ndarray, noise: list[int]) -> tuple[bytes, list[int]]: ...


def decode_grouped(
    header: Header, entry: IndexEntry, block: bytes, groups: Groups, count: int
) -> np.ndarray:
    kernel = KERNELS[header.codec](header, header.step)
    size = kernel.scale_bytes
    codes_at = size * groups.count
    raw_at = codes_at + (kernel.width * count + 7) // 8
    check_block(raw_at <= len(block), "the sections do not fit the block")
    codes = read_bit_array(block[codes_at:raw_at], kernel.width, count)
    values, raw_groups = np.zeros(count, "<u4"), 0
    for number, (start, length) in enumerate(zip(groups.starts, groups.lengths)):
        scale = block[size * number : size * (number + 1)]
        if scale == kernel.raw_scale:
            check_block(raw_at + 4 * length <= len(block), "the raw groups do not fit")
            values[start : start + length] = np.frombuffer(block, "<u4", length, raw_at)
            raw_at += 4 * length
            raw_groups += 1
        else:
            values[start : start + length] = kernel.values(scale, codes[start : start + length])
    check_block(raw_groups == entry.outlier_count, "outlier_count is wrong")
    check_block(raw_at == len(block), "the sections do not fill the block")
    return values


def encode_grouped(spec: Spec, pieces: Pieces) -> tuple[int, bytes]:
    kernel = KERNELS[spec.codec](spec, spec.context.get("step", 0))
    scales, codes, raw = [], [], []
    for patterns, part, first in pieces:
        noise = Noise.of_tensor(spec, part.tensor)
        for at in range(0, len(patterns), spec.group):
            group = patterns[at : at + spec.group]
            draws = [noise.of(first + at + i) for i in range(len(group))]
            scale, group_codes = kernel.raw_scale, [0] * len(group)
            if max(map(int, group & MAGNITUDE)) < INFINITY:
                scale, group_codes = kernel.encode(group, draws)
            if scale == kernel.raw_scale:
                raw.append(group)
                group_codes = [0] * len(group)
            scales.append(scale)
            codes += group_codes
    block = b"".join(scales) + pack_bits(codes, kernel.width)
    return len(raw), block + b"".join(group.tobytes() for group in raw)


# ---- section 4.5: mxfp8, mxfp4 ----


class Mx:
    scale_bytes, raw_scale = 1, b"\xff"

    def __init__(self, fields: Header | Spec, step: int) -> None:
        del step
        formats = {25: (4, 3, 7, 0x7E), 26: (5, 2, 15, 0x7B), 0: (2, 1, 1, 7)}
        e_bits, self.m_bits, self.bias, self.largest = formats[fields.cast_dtype]
        self.width = 1 + e_bits + self.m_bits
        self.top = (self.largest >> self.m_bits) - self.bias

    def magnitude(self, code: int) -> Fraction:
        field, mantissa = code >> self.m_bits, code & (1 << self.m_bits) - 1
        significand = mantissa + (1 << self.m_bits if field else 0)
        return significand * Fraction(2) ** (max(field, 1) - self.bias - self.m_bits)

    def values(self, scale: bytes, codes: np.ndarray) -> np.ndarray:
        check_block(scale[0] <= 254 - self.top, "scale out of range")
        sign = 1 << self.width - 1
        magnitudes = codes & sign - 1
        check_block(int(magnitudes.max()) <= self.largest, "a code is not finite")
        unit = Fraction(2) ** (scale[0] - 127)
        exact = [float(self.magnitude(int(m)) * unit) for m in magnitudes]
        patterns = np.array(exact, "<f4").view("<u4")
        return patterns | np.where(codes & sign, np.uint32(1 << 31), np.uint32(0))

    def encode(self, group: np.ndarray, noise: list[int]) -> tuple[bytes, list[int]]:
        del noise
        c = max((int(max(group & MAGNITUDE)) >> 23) - self.top, 0)
        codes = []
        for pattern in map(int, group):
            x = float32(pattern & MAGNITUDE) / Fraction(2) ** (c - 127)
            # The codes of magnitudes are in order: the nearest of two neighbours, the even on ties.
            code = bisect.bisect_right(range(self.largest + 1), x, key=self.magnitude) - 1
            if code < self.largest:
                middle = (self.magnitude(code) + self.magnitude(code + 1)) / 2
                code += x > middle or (x == middle and code & 1)
            codes.append(code | pattern >> 31 << self.width - 1)
        return bytes([c]), codes


# ---- sections 4.6 and 4.8: levels ----


def level_values(scale: np.float32, bits: int, divisor: int, codes: np.ndarray) -> np.ndarray:
    """As float32."""
    if scale.view("<u4") == 0:
        return np.zeros(len(codes), "<f4")
    check_block(2.0**-110 <= scale <= 2.0**127, "scale out of range")
    m = (1 << bits - 1) - 1
    integers = np.where(codes > m, codes - (1 << bits), codes)
    check_block(bool(np.all(integers >= -m)), "integer below -m")
    return integers.astype("<f4") * (scale / np.float32(m) / np.float32(divisor))


def levels(x: np.ndarray, scale: np.float32, bits: int, noise: list[int]) -> list[int]:
    m = (1 << bits - 1) - 1
    t = x * (np.float32(m) / scale)
    fixed = np.rint(t.astype("<f8") * 65536)
    return [min(max(int(f) + u >> 16, -m), m) for f, u in zip(fixed, noise)]


def root_up(x: int) -> int:
    return math.isqrt(x - 1) + 1 if x else 0


@dataclass(frozen=True)
class Sums:
    """ "Sums of a group" in section 8."""

    top: int  # A
    aligned: list[int]  # w
    squares: int  # Q

    @staticmethod
    def of(group: np.ndarray) -> Sums:
        magnitudes = [int(m) for m in group & MAGNITUDE]
        top = max(max(magnitudes) >> 23, 1)
        w = []
        for m in magnitudes:
            significand = m & 0x7FFFFF | (1 << 23 if m >> 23 else 0)
            w.append((significand << 8) >> top - max(m >> 23, 1))
        squares = sum(((x >> 16) + 1) ** 2 for x, m in zip(w, magnitudes) if m)
        return Sums(top, w, squares)


class TernGrad:
    scale_bytes, raw_scale, width = 4, b"\0\0\xc0\x7f", 2

    def __init__(self, fields: Header | Spec, step: int) -> None:
        del step
        self.clip = fields.quantizer_step

    def values(self, scale: bytes, codes: np.ndarray) -> np.ndarray:
        return level_values(np.frombuffer(scale, "<f4")[0], 2, 1, codes).view("<u4")

    def encode(self, group: np.ndarray, noise: list[int]) -> tuple[bytes, list[int]]:
        scale = (group & MAGNITUDE).view("<f4").max()
        if scale == 0:
            return bytes(4), [0] * len(group)
        if self.clip:
            sums = Sums.of(group)
            mean = float(sums.squares) * 65536 / len(group)
            root = root_up(int(self.clip * self.clip * mean))
            scale = min(scale, np.float32(math.ldexp(root, sums.top - 150)))
        if not 2.0**-110 <= scale <= 2.0**127:
            return self.raw_scale, []
        return scale.tobytes(), levels(group.view("<f4"), scale, 2, noise)


# ---- section 4.7: sign ----


class Sign:
    scale_bytes, raw_scale, width = 8, b"\0\0\xc0\x7f" + bytes(4), 1

    def __init__(self, fields: Header | Spec, step: int) -> None:
        del fields, step

    def values(self, scale: bytes, codes: np.ndarray) -> np.ndarray:
        means = np.frombuffer(scale, "<u4")
        check_block(bool(np.all(means < INFINITY)), "mean out of range")
        return np.where(codes, means[1] | np.uint32(1 << 31), means[0])

    def encode(self, group: np.ndarray, noise: list[int]) -> tuple[bytes, list[int]]:
        del noise
        codes = [int(pattern > 1 << 31) for pattern in map(int, group)]
        sums = Sums.of(group)
        means = []
        for code in (0, 1):
            chosen = [w for w, c in zip(sums.aligned, codes) if c == code]
            mean = float(sum(chosen)) / len(chosen) if chosen else 0.0
            means.append(math.ldexp(mean, sums.top - 158))
        return np.array(means, "<f4").tobytes(), codes


# ---- section 4.8: hadamard ----


def rotate(y: np.ndarray) -> np.ndarray:
    half = 1
    while half < len(y):
        pairs = y.reshape(-1, 2, half)
        with np.errstate(over="ignore", invalid="ignore"):
            y = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], 1).reshape(-1)
        half *= 2
    return y


class Hadamard:
    scale_bytes, raw_scale = 2, b"\xc0\x7f"

    def __init__(self, fields: Header | Spec, step: int) -> None:
        self.width, self.group = fields.bits, fields.group
        noise = Noise(fields.seed, step, (1 << 32) - 1, 0, 0)
        signs = [noise.of(i) >> 15 for i in range(self.group)]
        self.signs = np.array(signs, "<u4") << np.uint32(31)

    def values(self, scale: bytes, codes: np.ndarray) -> np.ndarray:
        wide = (np.frombuffer(scale, "<u2").astype("<u4") << np.uint32(16)).view("<f4")[0]
        if len(codes) < self.group:
            return level_values(wide, self.width, 1, codes).view("<u4")
        y = rotate(level_values(wide, self.width, self.group, codes))
        return y.view("<u4") ^ self.signs

    def encode(self, group: np.ndarray, noise: list[int]) -> tuple[bytes, list[int]]:
        y = group.view("<f4")
        if len(group) == self.group:
            y = rotate((group ^ self.signs).view("<f4"))
        largest = int(max(y.view("<u4") & MAGNITUDE))
        if largest == 0:
            return bytes(2), [0] * len(group)
        scale = largest + 0xFFFF & 0xFFFF0000  # up to bfloat16
        if not 127 - 110 << 23 <= scale <= 254 << 23:
            return self.raw_scale, []
        wide = np.array([scale], "<u4")
        codes = levels(y, wide.view("<f4")[0], self.width, noise)
        return (wide >> np.uint32(16)).astype("<u2").tobytes(), codes


# ---- all of them ----

KERNELS: dict[int, Callable[[Header | Spec, int], Grouped]] = {
    MXFP8: Mx, MXFP4: Mx, TERNGRAD: TernGrad, SIGN: Sign, HADAMARD: Hadamard,
}  # fmt: skip


def decode(
    header: Header, entry: IndexEntry, block: bytes, groups: Groups, count: int
) -> np.ndarray:
    """The bit patterns of the `count` values of one fixed block."""
    decoder = decode_natural if header.codec == NATURAL else decode_grouped
    return decoder(header, entry, block, groups, count)


def encode(spec: Spec, pieces: Pieces) -> tuple[int, bytes]:
    """outlier_count and bytes of one fixed block."""
    encoder = encode_natural if spec.codec == NATURAL else encode_grouped
    return encoder(spec, pieces)
