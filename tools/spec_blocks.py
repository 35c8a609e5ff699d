"""Sections 2 to 5 of docs/format.md: from a block's bytes to the bit patterns of its values."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import spec_baselines
from spec_bits import read_bit_array
from spec_frame import (
    BLOCK, CAST, CODED, DTYPES, HUFFMAN, STORED, DType, Frame, IndexEntry, check_block,
)  # fmt: skip

FORMAT_DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "format.md"
ESCAPE = 31

# ---- section 2: blocks, groups, scales ----


@dataclass(frozen=True)
class Groups:
    """The groups of one block: first value (counted in the block) and length of each."""

    starts: np.ndarray
    lengths: np.ndarray

    @property
    def count(self) -> int:
        return len(self.starts)

    def spread(self, per_group: np.ndarray) -> np.ndarray:
        """One element per value, from one element per group."""
        return np.repeat(per_group, self.lengths)


def cut_groups(frame: Frame, begin: int, end: int) -> Groups:
    """Section 2: groups start again at each piece, the intersection of a part with the block."""
    size = frame.header.group or end - begin
    starts, lengths, part_begin = [], [], 0
    for count in frame.parts:
        part_end = part_begin + count
        piece_end = min(part_end, end)
        for start in range(max(part_begin, begin), piece_end, size):
            starts.append(start - begin)
            lengths.append(min(size, piece_end - start))
        part_begin = part_end
    return Groups(np.array(starts, np.int64), np.array(lengths, np.int64))


def decode_block(
    frame: Frame, entry: IndexEntry, block: bytes, groups: Groups, count: int
) -> np.ndarray:
    """The bit patterns of the `count` values of one block."""
    if entry.kind == STORED:
        return np.frombuffer(block, frame.dtype.pattern)
    if entry.kind == CODED:
        return decode_coded(frame, entry, block, groups, count)
    if frame.header.codec == CAST:
        check_block(len(block) == 2 * count, "cast block of a wrong length")
        return widen(np.frombuffer(block, "<u2"), DTYPES[frame.header.cast_dtype], frame.dtype)
    if frame.header.codec == BLOCK:
        return decode_fixed_point(frame, entry, block, groups, count)
    return spec_baselines.decode(frame.header, entry, block, groups, count)


def decode_coded(
    frame: Frame, entry: IndexEntry, block: bytes, groups: Groups, count: int
) -> np.ndarray:
    """Section 2, coded block: cuts the sections, decodes tokens, then values."""
    sizes = {
        "table": 32 if entry.has_own_table else 0,
        "lanes": 8 * entry.lanes,
        "words": 2 * entry.word_count,
        "scales": (groups.count * entry.scale_bits + 7) // 8,
        "plane": count * entry.plane_bytes,
        "outliers": entry.outlier_count * frame.dtype.size,
    }
    check_block(sum(sizes.values()) == len(block), "the sections do not fill the block")
    sections, at = {}, 0
    for name, size in sizes.items():
        sections[name] = block[at : at + size]
        at += size

    if entry.has_own_table:
        frequencies = list(sections["table"])
    else:
        frequencies = built_in_tables(frame.header.coder)[frame.header.table]
    is_step_form = frame.header.is_step_form
    raw_bits = step_raw_bits(frame.dtype) if is_step_form else exponent_raw_bits(entry)
    table = build_table(frame.header.coder, frequencies, raw_bits)

    codes = read_bit_array(sections["scales"], entry.scale_bits, groups.count)
    scales = entry.scale_base + codes - 1  # without meaning where the code is 0
    if frame.header.is_step_form:
        least, most = step_scales(frame.dtype)
    else:
        least, most = 0, (1 << frame.dtype.exponent_bits) - 1
    in_range = (scales >= least) & (scales <= most)
    check_block(bool(np.all(in_range | (codes == 0))), "scale out of range")

    words = np.frombuffer(sections["words"], "<u2").astype(np.int64)
    lanes = Lanes(sections["lanes"], entry.lanes, words, table)
    tokens, raw = lanes.decode_rows(groups, codes != 0, count)

    coded = groups.spread(codes != 0)
    values = np.zeros(count, frame.dtype.pattern)  # zero groups: +0
    convert = step_values if frame.header.is_step_form else exponent_values
    plain = np.flatnonzero(coded & (tokens != ESCAPE))
    plane = read_plane(sections["plane"], entry.plane_bytes, count)
    scale = groups.spread(scales)
    values[plain] = convert(frame, entry, tokens[plain], raw[plain], scale[plain], plane[plain])
    escaped = np.flatnonzero(coded & (tokens == ESCAPE))
    check_block(len(escaped) == entry.outlier_count, "escapes and outliers differ in number")
    values[escaped] = np.frombuffer(sections["outliers"], frame.dtype.pattern)
    return values


def read_plane(section: bytes, plane_bytes: int, count: int) -> np.ndarray:
    """Section 3.2: one little-endian number of plane_bytes bytes per value."""
    entries = np.zeros((count, 8), np.uint8)
    entries[:, :plane_bytes] = np.frombuffer(section, np.uint8).reshape(count, plane_bytes)
    return entries.view("<u8")[:, 0]


# ---- section 3: tokens to values ----


def step_scales(dtype: DType) -> tuple[int, int]:
    """Section 3.1: the least and the largest k."""
    bias = (1 << dtype.exponent_bits - 1) - 1
    return 1 - bias - dtype.mantissa_bits, bias


def step_raw_bits(dtype: DType) -> list[int | None]:
    """Section 3.1: r(token); None for tokens that do not occur."""
    bits: list[int | None] = [None] * 32
    bits[0], bits[2], bits[ESCAPE] = 0, 1, 0
    for m in range(2, 12):
        bits[2 * m] = bits[2 * m + 1] = min(m - 1, dtype.mantissa_bits)
    return bits


def step_values(
    frame: Frame, entry: IndexEntry, tokens: np.ndarray, raw: np.ndarray, scale: np.ndarray,
    plane: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Section 3.1: q x 2^k, which is exact in float64 and in the type."""
    del entry, plane
    bits = np.array([r or 0 for r in step_raw_bits(frame.dtype)])[tokens]
    sign = np.where(bits > 0, raw >> np.maximum(bits - 1, 0), 0)
    rest = raw & ((1 << np.maximum(bits - 1, 0)) - 1)
    m = np.maximum(tokens >> 1, 2)
    rest <<= np.maximum(m - 1 - bits, 0)  # the bits that are not there are 0
    magnitude = (1 << (m - 1)) + ((tokens & 1) << (m - 2)) + rest
    magnitude = np.where(tokens == 0, 0, np.where(tokens == 2, 1, magnitude))
    with np.errstate(over="ignore"):
        exact = np.ldexp(np.where(sign == 1, -magnitude, magnitude).astype(np.float64), scale)
    most = math.ldexp(2 - 2.0**-frame.dtype.mantissa_bits, step_scales(frame.dtype)[1])
    check_block(bool(np.all(np.abs(exact) <= most)), "value is not finite")
    if frame.dtype.name == "bfloat16":  # the upper half of a float32
        return (exact.astype("<f4").view("<u4") >> np.uint32(16)).astype("<u2")
    return exact.astype(f"<f{frame.dtype.size}").view(frame.dtype.pattern)


def exponent_raw_bits(entry: IndexEntry) -> list[int | None]:
    """Section 3.2: r(token)."""
    u = 1 + entry.mantissa - 8 * entry.plane_bytes
    return [u] * 30 + [1, 0]


def exponent_values(
    frame: Frame, entry: IndexEntry, tokens: np.ndarray, raw: np.ndarray, scale: np.ndarray,
    plane: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Section 3.2: sign, exponent field below the group's, mantissa from lane bits and plane."""
    e_bits, b_bits = frame.dtype.exponent_bits, frame.dtype.mantissa_bits
    plane_bits = 8 * entry.plane_bytes
    high_bits = entry.mantissa - plane_bits
    is_zero = tokens == 30
    field = scale - tokens
    in_range = (field >= 0) & (field < (1 << e_bits) - 1)
    check_block(bool(np.all(in_range | is_zero)), "exponent out of range")
    sign = np.where(is_zero, raw, raw >> high_bits).astype(np.uint64)
    kept = (raw & ((1 << high_bits) - 1)).astype(np.uint64) << np.uint64(plane_bits) | plane
    number = field.astype(np.uint64) << np.uint64(b_bits)
    number |= kept << np.uint64(b_bits - entry.mantissa)
    number[is_zero] = 0
    number |= sign << np.uint64(e_bits + b_bits)
    return number.astype(frame.dtype.pattern)


# ---- section 4: fixed blocks ----


def widen(patterns: np.ndarray, narrow: DType, wide: DType) -> np.ndarray:
    """Section 4.1: float16 or bfloat16 to float32 or float64, exactly."""
    p = patterns.astype(np.uint64)
    mantissa = p & np.uint64((1 << narrow.mantissa_bits) - 1)
    field = p >> np.uint64(narrow.mantissa_bits) & np.uint64((1 << narrow.exponent_bits) - 1)
    # Finite values are exact in float64, and so is the step from there to `wide`.
    bias = (1 << narrow.exponent_bits - 1) - 1
    significand = mantissa + np.where(field > 0, np.uint64(1 << narrow.mantissa_bits), np.uint64(0))
    exponent = np.maximum(field, 1).astype(np.int64) - bias - narrow.mantissa_bits
    magnitude = np.ldexp(significand.astype(np.float64), exponent)
    is_special = field == (1 << narrow.exponent_bits) - 1
    magnitude[is_special] = 0
    number = magnitude.astype(f"<f{wide.size}").view(wide.pattern).astype(np.uint64)
    # Inf and NaN keep their mantissa bits at the top of the wider mantissa.
    special = mantissa << np.uint64(wide.mantissa_bits - narrow.mantissa_bits)
    special |= np.uint64(((1 << wide.exponent_bits) - 1) << wide.mantissa_bits)
    number[is_special] = special[is_special]
    number |= p >> np.uint64(15) << np.uint64(8 * wide.size - 1)
    return number.astype(wide.pattern)


def decode_fixed_point(
    frame: Frame, entry: IndexEntry, block: bytes, groups: Groups, count: int
) -> np.ndarray:
    """Section 4.2: codec `block`."""
    bits = frame.header.bits
    integers_at = 2 * groups.count
    raw_at = integers_at + (count * bits + 7) // 8
    check_block(raw_at <= len(block), "the sections do not fit the block")
    scale_patterns = np.frombuffer(block, "<u2", groups.count)
    is_raw, is_zero = scale_patterns == 0x7FC0, scale_patterns == 0
    check_block(np.count_nonzero(is_raw) == entry.outlier_count, "outlier_count is wrong")
    raw_values = int(groups.lengths[is_raw].sum())
    raw_end = raw_at + frame.dtype.size * raw_values
    check_block(raw_end == len(block), "the sections do not fill the block")
    smallest = (127 - 110) << 7  # 2^-110 as bfloat16; patterns of positive numbers are ordered
    is_scale = (scale_patterns >= smallest) & (scale_patterns < 0x7F80)
    check_block(bool(np.all(is_raw | is_zero | is_scale)), "scale out of range")

    integers = read_bit_array(block[integers_at:raw_at], bits, count)
    integers = np.where(integers >= 1 << bits - 1, integers - (1 << bits), integers)
    m = (1 << bits - 1) - 1
    scales = (np.where(is_scale, scale_patterns, 0).astype(np.uint32) << 16).view("<f4")
    d = scales / np.float32(m)
    counted = groups.spread(is_scale)
    check_block(bool(np.all((integers >= -m) | ~counted)), "integer below -m")
    products = integers.astype(np.float32) * groups.spread(d)
    values = of_type(np.where(counted & (integers != 0), products, np.float32(0)), frame.dtype)
    values[groups.spread(is_raw)] = np.frombuffer(block, frame.dtype.pattern, offset=raw_at)
    return values


def of_type(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Section 4.2: finite float32 as bit patterns of the type, rounded to nearest even, never to
    Inf."""
    if dtype.size > 2:
        return values.astype(f"<f{dtype.size}").view(dtype.pattern)
    least, bias = step_scales(dtype)
    most = math.ldexp(2 - 2.0**-dtype.mantissa_bits, bias)
    # In units of the last place, which below the normal numbers is that of the least one; all of
    # this is exact in float64, and so is what comes out in the type.
    exact = values.astype(np.float64)
    units = np.maximum(np.frexp(exact)[1] - 1 - dtype.mantissa_bits, least)
    rounded = np.clip(np.ldexp(np.rint(np.ldexp(exact, -units)), units), -most, most)
    if dtype.name == "bfloat16":  # the upper half of a float32
        return (rounded.astype("<f4").view("<u4") >> np.uint32(16)).astype("<u2")
    return rounded.astype("<f2").view("<u2")


# ---- section 5: the coder ----


@dataclass(frozen=True)
class Table:
    """Section 5.3: what a state means, and r(token) beside it."""

    symbol: np.ndarray
    bits: np.ndarray
    next: np.ndarray
    raw_bits: np.ndarray


def build_table(coder: int, frequencies: list[int], raw_bits: list[int | None]) -> Table:
    """Section 5.3. A token that does not occur in the form must have frequency 0."""
    check_block(sum(frequencies) == 128, "the frequencies do not add up to 128")
    step = 83
    if coder == HUFFMAN:
        is_prefix_code = set(frequencies) <= {0, 1, 2, 4, 8, 16, 32, 64}
        check_block(is_prefix_code, "a frequency is not a power of two up to 64")
        step = 1
    symbol, position = [0] * 128, 0
    for token, frequency in enumerate(frequencies):
        check_block(not frequency or raw_bits[token] is not None, f"token {token} does not occur")
        for _ in range(frequency):
            symbol[position] = token
            position = (position + step) % 128
    v = list(frequencies)
    bits, following = [], []
    for s in symbol:
        y = v[s]
        v[s] += 1
        bits.append(7 - (y.bit_length() - 1))
        following.append((y << bits[-1]) - 128)
        check_block(bits[-1] + (raw_bits[s] or 0) <= 16, "more than 16 bits per value")
    columns = (symbol, bits, following, [r or 0 for r in raw_bits])
    return Table(*(np.array(column, np.int64) for column in columns))


class Lanes:
    """Sections 2 (rows) and 5.1. A lane's window N0 N1 N2 is one number of 48 bits, N0 on top."""

    def __init__(self, states: bytes, count: int, words: np.ndarray, table: Table) -> None:
        n0, n1, n2 = np.frombuffer(states, "<u2", 3 * count).astype(np.int64).reshape(3, count)
        self.window = n0 << 32 | n1 << 16 | n2
        self.x = np.frombuffer(states, np.uint8, count, 6 * count).astype(np.int64)
        self.pos = np.frombuffer(states, np.uint8, count, 7 * count).astype(np.int64)
        check_block(bool(np.all(self.x <= 127)), "lane state above 127")
        check_block(bool(np.all(self.pos <= 15)), "lane position above 15")
        self.words, self.read_at, self.table = words, len(words), table
        lane = np.arange(count)
        if count == 64:
            self.value_of = 32 * (lane // 32) + (lane % 32) // 2 + 16 * (lane % 2)
        else:
            self.value_of = lane // 2 + (count // 2) * (lane % 2)

    def decode_rows(
        self, groups: Groups, is_coded: np.ndarray, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Token and lane bits of each value; both are 0 in zero groups."""
        tokens, raw = np.zeros(count, np.int64), np.zeros(count, np.int64)
        width = len(self.x)
        for group in np.flatnonzero(is_coded):
            end = groups.starts[group] + groups.lengths[group]
            for start in range(groups.starts[group], end, width):
                lanes = np.flatnonzero(self.value_of < end - start)
                tokens[start + self.value_of[lanes]], raw[start + self.value_of[lanes]] = (
                    self.decode_row(lanes)
                )
        check_block(self.read_at == 0, "words are left over")
        done = not (self.x.any() or self.pos.any() or self.window.any())
        check_block(done, "a lane does not end in its start state")
        return tokens, raw

    def decode_row(self, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Section 5.2 for one row; `lanes` are those whose value exists, in lane order."""
        x = self.x[lanes]
        token, state_bits = self.table.symbol[x], self.table.bits[x]
        raw_bits = self.table.raw_bits[token]
        after_state = 48 - self.pos[lanes] - state_bits
        window = self.window[lanes]
        self.x[lanes] = self.table.next[x] + (window >> after_state & (1 << state_bits) - 1)
        raw = window >> after_state - raw_bits & (1 << raw_bits) - 1
        self.pos[lanes] += state_bits + raw_bits
        self.refill(lanes[(self.pos[lanes] >= 16) & (lanes < 32)])
        self.refill(lanes[(self.pos[lanes] >= 16) & (lanes >= 32)])
        return token, raw

    def refill(self, lanes: np.ndarray) -> None:
        """Section 5.1, for the refilling lanes of one half, in lane order."""
        first = self.read_at - len(lanes)
        check_block(first >= 0, "the words end too early")
        new = self.words[first : self.read_at]
        self.read_at = first
        self.window[lanes] = (self.window[lanes] << 16 | new) & (1 << 48) - 1
        self.pos[lanes] -= 16


@functools.cache
def built_in_tables(coder: int) -> dict[int, list[int]]:
    """The frequencies that docs/format.md lists: for coder 1, then for coder 2."""
    text = FORMAT_DOCUMENT.read_text(encoding="utf-8")
    text = text.split("<!-- tables:begin")[1].split("<!-- tables:end")[0]
    rows = re.findall(r"^\| (\d+) \| ([\d ]+) \| ([\d ]+) \|$", text, re.MULTILINE)
    return {int(row[0]): [int(f) for f in row[coder].split()] for row in rows}
