"""Codecs 16 and up of docs/format.md, both ways: sections 4.3 and following, and their part of 8.

The model of the baselines: bit patterns to bytes and back, value by value where it has to be.
"""

from __future__ import annotations

import bisect
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np

from spec_bits import pack_bits, read_bit_array
from spec_frame import (
    COCKTAIL, HADAMARD, MXFP4, MXFP8, NATURAL, QSGD, SIGN, TERNGRAD, TOP_K, Header, IndexEntry,
    check_block,
)  # fmt: skip
from spec_noise import Noise, mix64

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
    if has_elias_codes(header):
        check_block(codes_at + 4 <= len(block), "the sections do not fit the block")
        codes_at += 4
        raw_at = codes_at + int.from_bytes(block[codes_at - 4 : codes_at], "little")
        check_block(raw_at <= len(block), "the sections do not fit the block")
        codes = read_elias(block[codes_at:raw_at], kernel.width, count)
    else:
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
    section = pack_bits(codes, kernel.width)
    if has_elias_codes(spec):
        section = pack_bits([int(bit) for bit in "".join(map(elias, codes))], 1)
        section = len(section).to_bytes(4, "little") + section
    block = b"".join(scales) + section
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


def has_elias_codes(fields: Header | Spec) -> bool:
    return fields.codec == QSGD and fields.variant & 2 != 0


def omega(number: int) -> str:
    code = "0"
    while number > 1:
        digits = f"{number:b}"
        code = digits + code
        number = len(digits) - 1
    return code


def elias(q: int) -> str:
    return omega(abs(q) + 1) + ("" if q == 0 else "01"[q < 0])


def read_elias(section: bytes, width: int, count: int) -> np.ndarray:
    """The integers as patterns of `width` bits."""
    bits = "".join(f"{byte:08b}"[::-1] for byte in section)
    integers = {elias(q): q for q in range(1 - (1 << width - 1), 1 << width - 1)}
    longest, at, codes = max(map(len, integers)), 0, []
    for _ in range(count):
        # No code is the start of another one.
        length = next((n for n in range(1, longest + 1) if bits[at : at + n] in integers), 0)
        check_block(0 < length <= len(bits) - at, "no Elias code")
        codes.append(integers[bits[at : at + length]] & (1 << width) - 1)
        at += length
    check_block(len(bits) - at < 8 and "1" not in bits[at:], "bits left over")
    return np.array(codes, np.int64)


class Levels:
    """qsgd and terngrad."""

    scale_bytes, raw_scale = 4, b"\0\0\xc0\x7f"

    def __init__(self, fields: Header | Spec, step: int) -> None:
        del step
        self.is_l2 = fields.codec == QSGD and fields.variant & 1 == 0
        self.clip, self.width = fields.quantizer_step, fields.bits

    def values(self, scale: bytes, codes: np.ndarray) -> np.ndarray:
        return level_values(np.frombuffer(scale, "<f4")[0], self.width, 1, codes).view("<u4")

    def encode(self, group: np.ndarray, noise: list[int]) -> tuple[bytes, list[int]]:
        scale = (group & MAGNITUDE).view("<f4").max()
        if scale == 0:
            return bytes(4), [0] * len(group)
        sums = Sums.of(group)
        if self.is_l2:
            with np.errstate(over="ignore"):
                scale = np.float32(math.ldexp(root_up(sums.squares), sums.top - 142))
        elif self.clip:
            mean = float(sums.squares) * 65536 / len(group)
            root = root_up(int(self.clip * self.clip * mean))
            scale = min(scale, np.float32(math.ldexp(root, sums.top - 150)))
        if not 2.0**-110 <= scale <= 2.0**127:
            return self.raw_scale, []
        return scale.tobytes(), levels(group.view("<f4"), scale, self.width, noise)


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


# ---- sections 4.9 and 4.10: index lists ----


class Sections:
    """The bytes of a block, from the front."""

    def __init__(self, block: bytes) -> None:
        self.block, self.at = block, 0

    def take(self, size: int) -> bytes:
        check_block(self.at + size <= len(self.block), "a section does not fit the block")
        self.at += size
        return self.block[self.at - size : self.at]

    def check_end(self) -> None:
        check_block(self.at == len(self.block), "the sections do not fill the block")


def index_list_sizes(n: int, k: int) -> tuple[int, int]:
    """r and U."""
    if k == 0:
        return 0, 0
    r = min(16, (n // k).bit_length() - 1)
    return r, k + ((n - 1) >> r)


def take_index_list(sections: Sections, n: int, k: int) -> Callable[[], list[int]]:
    """Takes both parts; the result reads and checks them."""
    r, u = index_list_sizes(n, k)
    low, high = sections.take((k * r + 7) // 8), sections.take((u + 7) // 8)

    def read() -> list[int]:
        ones = np.flatnonzero(read_bit_array(high, 1, u)) if u else np.zeros(0, np.int64)
        check_block(len(ones) == k, "another number of ones than of values")
        lows = read_bit_array(low, r, k) if k else np.zeros(0, np.int64)
        indices = (ones - np.arange(k) << r) + lows
        check_block(bool(np.all(np.diff(indices) > 0)), "the indices do not increase")
        check_block(k == 0 or int(indices[-1]) < n, "an index is out of range")
        return [int(i) for i in indices]

    return read


def pack_index_list(indices: list[int], n: int) -> bytes:
    r, u = index_list_sizes(n, len(indices))
    high = [0] * u
    for j, index in enumerate(indices):
        high[j + (index >> r)] = 1
    return pack_bits(indices, r) + pack_bits(high, 1)


def kept_places(fraction: float, magnitudes: list[int]) -> list[int]:
    """ "Kept values" in section 8: their places, in order."""
    k = math.ceil(fraction * len(magnitudes))
    k = max(k, sum(m >= INFINITY for m in magnitudes))
    k = min(k, sum(m > 0 for m in magnitudes))
    return sorted(sorted(range(len(magnitudes)), key=lambda i: -magnitudes[i])[:k])


# ---- section 4.9: top_k ----


def decode_top_k(
    header: Header, entry: IndexEntry, block: bytes, groups: Groups, count: int
) -> np.ndarray:
    del entry, groups
    sections = Sections(block)
    k = int.from_bytes(sections.take(4), "little")
    check_block(k <= count, "more values than the block has")
    read = take_index_list(sections, count, k)
    if header.cast_dtype == 4:
        kept = np.frombuffer(sections.take(2 * k), "<u2").astype("<u4") << np.uint32(16)
    else:
        kept = np.frombuffer(sections.take(4 * k), "<u4")
    sections.check_end()
    values = np.zeros(count, "<u4")
    values[read()] = kept
    return values


def to_bfloat16(pattern: int) -> int:
    magnitude, sign = pattern & MAGNITUDE, pattern >> 31 << 15
    if magnitude > INFINITY:
        return sign | magnitude >> 16 | 0x40
    if magnitude == INFINITY:
        return sign | 0x7F80
    below, rounded = magnitude & 0xFFFF, magnitude >> 16
    rounded += below > 0x8000 or (below == 0x8000 and rounded & 1)
    return sign | min(rounded, 0x7F7F)


def encode_top_k(spec: Spec, pieces: Pieces) -> tuple[int, bytes]:
    patterns = [int(p) for part_patterns, _, _ in pieces for p in part_patterns]
    kept = kept_places(spec.quantizer_step, [p & MAGNITUDE for p in patterns])
    block = struct.pack("<I", len(kept)) + pack_index_list(kept, len(patterns))
    if spec.cast_dtype == 4:
        return 0, block + np.array([to_bfloat16(patterns[i]) for i in kept], "<u2").tobytes()
    return 0, block + np.array([patterns[i] for i in kept], "<u4").tobytes()


# ---- section 4.10: cocktail ----


def sample_places(key: int, one_in: int, count: int) -> list[int]:
    noise = Noise.of_key(key)
    return [place for place in range(count) if noise.of(place) < 65536 // one_in]


def decode_cocktail(
    header: Header, entry: IndexEntry, block: bytes, groups: Groups, count: int
) -> np.ndarray:
    del entry, groups
    sections = Sections(block)
    key, k = struct.unpack("<QI", sections.take(12))
    sample = sample_places(key, header.variant, count)
    check_block(k <= len(sample), "more values than the sample has")
    read = take_index_list(sections, len(sample), k)
    scales = np.frombuffer(sections.take(2 * -(-k // header.group)), "<u2")
    integers = sections.take((k * header.bits + 7) // 8)
    sections.check_end()
    codes = read_bit_array(integers, header.bits, k) if k else np.zeros(0, np.int64)
    values = np.zeros(count, "<u4")
    places = [sample[i] for i in read()]
    for number, pattern in enumerate(scales):
        check_block(127 - 110 << 7 <= int(pattern) < 0x7F80, "scale out of range")
        scale = np.array([int(pattern) << 16], "<u4").view("<f4")[0]
        chosen = slice(number * header.group, (number + 1) * header.group)
        m = (1 << header.bits - 1) - 1
        q = np.where(codes[chosen] > m, codes[chosen] - (1 << header.bits), codes[chosen])
        check_block(bool(np.all(q >= -m)), "integer below -m")
        values[places[chosen]] = (q.astype("<f4") * (scale / np.float32(m))).view("<u4")
    return values


def encode_cocktail(spec: Spec, pieces: Pieces) -> tuple[int, bytes] | None:
    """None: the block has to be stored."""
    values = [(int(p), part, first + i) for patterns, part, first in pieces
              for i, p in enumerate(patterns)]  # fmt: skip
    if any(p & MAGNITUDE >= INFINITY for p, _, _ in values):
        return None
    _, first_part, first_index = pieces[0]
    step = spec.context.get("step", 0)
    key = Noise(spec.seed, step, first_part.tensor, (1 << 32) - 1, 0).key
    key = mix64(key + first_index & (1 << 64) - 1)
    sample = [values[i] for i in sample_places(key, spec.variant, len(values))]
    kept = kept_places(spec.quantizer_step, [p & MAGNITUDE for p, _, _ in sample])
    scales, codes = [], []
    for at in range(0, len(kept), spec.group):
        group = [sample[i] for i in kept[at : at + spec.group]]
        scale = max(p & MAGNITUDE for p, _, _ in group) + 0xFFFF >> 16
        if scale >= 0x7F80 or scale < 127 - 110 << 7:
            return None
        scales.append(scale)
        draws = [Noise.of_tensor(spec, part.tensor).of(index) if spec.rounding else 32768
                 for _, part, index in group]  # fmt: skip
        x = np.array([p for p, _, _ in group], "<u4").view("<f4")
        wide = np.array([scale << 16], "<u4").view("<f4")[0]
        codes += levels(x, wide, spec.bits, draws)
    block = struct.pack("<QI", key, len(kept)) + pack_index_list(kept, len(sample))
    return 0, block + np.array(scales, "<u2").tobytes() + pack_bits(codes, spec.bits)


# ---- all of them ----

KERNELS: dict[int, Callable[[Header | Spec, int], Grouped]] = {
    MXFP8: Mx, MXFP4: Mx, QSGD: Levels, TERNGRAD: Levels, SIGN: Sign, HADAMARD: Hadamard,
}  # fmt: skip


def decode(
    header: Header, entry: IndexEntry, block: bytes, groups: Groups, count: int
) -> np.ndarray:
    """The bit patterns of the `count` values of one fixed block."""
    decoders = {NATURAL: decode_natural, TOP_K: decode_top_k, COCKTAIL: decode_cocktail}
    decoder = decoders.get(header.codec, decode_grouped)
    return decoder(header, entry, block, groups, count)


def encode(spec: Spec, pieces: Pieces) -> tuple[int, bytes] | None:
    """outlier_count and bytes of one fixed block; None if it has to be stored."""
    encoders = {NATURAL: encode_natural, TOP_K: encode_top_k, COCKTAIL: encode_cocktail}
    return encoders.get(spec.codec, encode_grouped)(spec, pieces)
