"""Section 8 of docs/format.md as plain Python: what the encoder makes, value by value.

A model for golden frames and tests, slow and without tricks: exact integers wherever the document
speaks of exact values. The library's frames must equal it byte for byte.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import xxhash

import spec_baselines
import spec_blocks
import spec_own_table
from spec_bits import pack_bits
from spec_frame import (
    ABSMAX, ABSOLUTE, BLOCK, CAST, CODECS, CODED, DTYPES, ERROR_BOUNDED, FILTER, FIXED, HADAMARD,
    HUFFMAN, LOSSLESS, MXFP4, MXFP8, NATURAL, NEAR_LOSSLESS, PER_PART, QSGD, RANGE, RMS, STORED,
    TANS, TERNGRAD, DType, Header, IndexEntry, crc32c,
)  # fmt: skip
from spec_noise import Noise
from spec_numbers import (
    Float, bias, bound_scale, exact_value, floor_log2, group_scale, round_half_even,
    rounded_to_mantissa, rounded_to_step,
)  # fmt: skip

ESCAPE = spec_blocks.ESCAPE


@dataclass(frozen=True)
class Part:
    """Bit patterns of one parameter; the numbers choose the noise."""

    patterns: np.ndarray
    tensor: int = 0
    first_index: int = 0


@dataclass(frozen=True)
class Spec:
    codec: int
    dtype: int = 1
    group: int = 0
    quantizer_step: float = 0.0
    mantissa: int = 0
    bits: int = 0
    cast_dtype: int = 0
    variant: int = 0
    rounding: int = 0
    scale: int = 0
    options: int = 0
    coder: int = TANS  # of coded codecs
    seed: int = 0
    block_values: int = 262144
    context: dict[str, int] = field(default_factory=dict)  # op, phase, step, sender, ...
    metadata: bytes = b""
    own_table: tuple[int, ...] = ()  # frequencies that the encoder takes instead of its choice

    @property
    def type(self) -> DType:
        return DTYPES[self.dtype]

    @property
    def is_step_form(self) -> bool:
        return header_of(self).is_step_form

    @staticmethod
    def parse(text: str, dtype: int, **fields: object) -> Spec:
        """From the codec's text with all its parameters, "block:bits=8,group=64,..."."""
        name, _, parameters = text.partition(":")
        known: dict[str, object] = {"codec": CODEC_NUMBERS[name], "dtype": dtype}
        known |= SET_FIELDS.get(CODEC_NUMBERS[name], {})
        flags = 0
        for parameter in filter(None, parameters.split(",")):
            key, value = parameter.split("=")
            if (key, value) == ("group", "tensor"):
                known["group"] = 4096
                known["options"] = known.get("options", 0) | PER_PART
            elif key == "filter":
                known["options"] = known.get("options", 0) | (FILTER if value == "on" else 0)
            else:
                field_name, convert = SPEC_KEYS[key]
                known[field_name] = convert(value)
                if key in ("norm", "coding"):  # bits of one field
                    flags |= convert(value)
                    known[field_name] = flags
        return Spec(**(known | fields))


CODEC_NUMBERS = {codec.name: number for number, codec in CODECS.items()}
# What a codec's text need not say, as there is no choice, or as it is the default.
SET_FIELDS: dict[int, dict[str, object]] = {
    ERROR_BOUNDED: {"block_values": 1048576},
    NATURAL: {"rounding": 1}, MXFP8: {"group": 32}, MXFP4: {"group": 32},
    QSGD: {"rounding": 1}, TERNGRAD: {"rounding": 1, "bits": 2}, HADAMARD: {"rounding": 1},
}  # fmt: skip
SPEC_KEYS = {
    "group": ("group", int), "step": ("quantizer_step", float), "bound": ("quantizer_step", float),
    "scale": ("scale", ("", "rms", "range", "absmax", "absolute").index),
    "mantissa": ("mantissa", int),
    "bits": ("bits", int), "dtype": ("cast_dtype", {"fp32": 1, "fp16": 3, "bf16": 4}.__getitem__),
    "rounding": ("rounding", ("nearest", "stochastic").index), "seed": ("seed", int),
    "coder": ("coder", {"tans": TANS, "huffman": HUFFMAN}.__getitem__),
    "block": ("block_values", int), "bucket": ("group", int), "clip": ("quantizer_step", float),
    "format": ("cast_dtype", {"e4m3": 25, "e5m2": 26}.__getitem__),
    "norm": ("variant", ("l2", "max").index), "sample": ("variant", int),
    "coding": ("variant", {"fixed": 0, "elias": 2}.__getitem__),
    "fraction": ("quantizer_step", float),
}  # fmt: skip


def as_float32(v: Float) -> Float:
    """Halves as the float32 of the same value; others as they are."""
    if v.dtype.size != 2:
        return v
    pattern = spec_blocks.widen(np.array([v.pattern], "<u2"), v.dtype, DTYPES[1])[0]
    return Float(DTYPES[1], int(pattern))


# ---- tokens ----


@dataclass(frozen=True)
class Coded:
    """One value after quantization; `outlier` goes with the escape."""

    token: int
    raw: int = 0
    raw_bits: int = 0
    plane: int = 0


def step_token(v: Float, k: int) -> Coded:
    if not v.is_finite:
        return Coded(ESCAPE)
    q = round_half_even(v.significand, k - v.exponent)
    if q > 2047 or q.bit_length() + k > bias(v.dtype) + 1:  # q 2^k >= 2^(bias + 1)
        return Coded(ESCAPE)
    if q == 0:
        return Coded(0)
    if q == 1:
        return Coded(2, v.sign, 1)
    m = q.bit_length()
    r = min(m - 1, v.dtype.mantissa_bits)
    rest, missing = divmod(q & (1 << m - 2) - 1, 1 << m - 1 - r)
    assert missing == 0, "the value has more significant bits than its type"
    return Coded(2 * m + (q >> m - 2 & 1), v.sign << r - 1 | rest, r)


def exponent_token(v: Float, scale: int, kept: int, plane_bytes: int, is_lossy: bool) -> Coded:
    dtype = v.dtype
    if not v.is_finite:
        return Coded(ESCAPE)
    if v.is_zero:
        return Coded(30, 0 if is_lossy else v.sign, 1)
    if is_lossy and v.field == 0:
        return Coded(ESCAPE)
    magnitude = v.field << dtype.mantissa_bits | v.mantissa
    rounded = round_half_even(magnitude, dtype.mantissa_bits - kept)
    exponent, mantissa = rounded >> kept, rounded & (1 << kept) - 1
    token = scale - exponent
    if exponent == (1 << dtype.exponent_bits) - 1 or not 0 <= token <= 29:
        return Coded(ESCAPE)
    plane_bits = 8 * plane_bytes
    high_bits = kept - plane_bits
    raw = v.sign << high_bits | mantissa >> plane_bits
    return Coded(token, raw, 1 + high_bits, mantissa & (1 << plane_bits) - 1)


def kept_mantissa(spec: Spec, values: Sequence[Float]) -> int:
    if spec.is_step_form:
        return 0
    if spec.codec == NEAR_LOSSLESS:
        return min(spec.mantissa, spec.type.mantissa_bits)
    common = 0
    for v in values:
        if v.is_finite:
            common |= v.mantissa
    zeros = (common & -common).bit_length() - 1 if common else spec.type.mantissa_bits
    return spec.type.mantissa_bits - zeros


def scale_of(
    spec: Spec, group: Sequence[Float], part: Sequence[Float] | None = None
) -> int | str:
    """The group's scale, or why it has none: "zero" or "base". `part`: what has one scale."""
    is_lossy = spec.codec != LOSSLESS
    if all(v.pattern == 0 or (v.is_zero and is_lossy) for v in group):
        return "zero"
    finite = [v for v in (group if part is None else part) if v.is_finite]
    if not finite:
        return "base"
    if spec.is_step_form:
        scale = spec.scale if spec.codec == ERROR_BOUNDED else RMS
        k = bound_scale([as_float32(v) for v in finite], scale, header_of(spec).x)
        least, most = spec_blocks.step_scales(spec.type)
        return least if k is None else min(max(k, least), most)
    k = group_scale(finite, 1.0)
    most = (1 << spec.type.exponent_bits) - 1
    return 0 if k is None else min(max(k + bias(spec.type) + 4, 0), most)


# ---- the coder, backwards ----


class BackwardCoder:
    """Undoes section 5 from the last value to the first."""

    def __init__(
        self, coder: int, lanes: int, frequencies: Sequence[int], raw_bits: list[int | None]
    ) -> None:
        table = spec_blocks.build_table(coder, list(frequencies), raw_bits)
        self.before = {}  # (token, state after) -> (state before, bits, their number)
        for x in range(128):
            for bits in range(1 << int(table.bits[x])):
                after = int(table.next[x]) + bits
                self.before[int(table.symbol[x]), after] = (x, bits, int(table.bits[x]))
        self.x, self.pos, self.window = [0] * lanes, [0] * lanes, [0] * lanes
        self.words: list[int] = []

    def put(self, lane: int, value: Coded) -> None:
        self.x[lane], bits, count = self.before[value.token, self.x[lane]]
        bits = bits << value.raw_bits | value.raw
        count += value.raw_bits
        if self.pos[lane] < count:  # the decoder refills after this value
            self.words.append(self.window[lane] & 0xFFFF)
            self.window[lane] >>= 16
            self.pos[lane] += 16
        self.window[lane] |= bits << 48 - self.pos[lane]
        self.pos[lane] -= count

    def states(self) -> bytes:
        words = [window >> shift & 0xFFFF for shift in (32, 16, 0) for window in self.window]
        return struct.pack(f"<{len(words)}H", *words) + bytes(self.x) + bytes(self.pos)


def lane_count(values: int) -> int:
    return 64 if values >= 32768 else 32 if values >= 8192 else 16 if values >= 4096 else 1


def lane_value(lane: int, lanes: int) -> int:
    """Section 2: the value of a row that a lane carries."""
    half = min(lanes, 32) // 2
    return 32 * (lane // 32) + lane % 32 // 2 + half * (lane % 2)


# ---- blocks ----

Pieces = list[tuple[np.ndarray, Part, int]]  # patterns, part, index of the first in the part


def coded_block(spec: Spec, pieces: Pieces) -> tuple[IndexEntry, bytes]:
    groups = [
        [Float(spec.type, int(p)) for p in patterns[at : at + spec.group]]
        for patterns, _, _ in pieces
        for at in range(0, len(patterns), spec.group)
    ]
    places = [(part, first + at) for patterns, part, first in pieces
              for at in range(0, len(patterns), spec.group)]  # fmt: skip
    kept = kept_mantissa(spec, [v for group in groups for v in group])
    plane_bytes = 0 if spec.is_step_form else max(0, -(-(kept - 8) // 8))

    scales = [scale_of(spec, group, whole_part(spec, part))
              for group, (part, _) in zip(groups, places)]  # fmt: skip
    if spec.rounding:
        groups = [round_group(spec, *one) for one in zip(groups, scales, places)]
        if spec.is_step_form:
            scales = ["zero" if not any(v.pattern for v in group) else scale
                      for group, scale in zip(groups, scales)]  # fmt: skip
    values = [v for group in groups for v in group]
    known = [scale for scale in scales if isinstance(scale, int)]
    base = min(known, default=0)
    codes = [0 if s == "zero" else 1 if s == "base" else s - base + 1 for s in scales]
    scale_bits = max(codes).bit_length()

    lanes = lane_count(len(values)) if any(codes) else 1
    entry = IndexEntry(0, CODED, lanes, plane_bytes, scale_bits, base, kept,
                       0, 0, 0, 0, 0)  # fmt: skip
    if spec.is_step_form:
        raw_bits = spec_blocks.step_raw_bits(spec.type)
    else:
        raw_bits = spec_blocks.exponent_raw_bits(entry)
    tokens = []
    for group, code in zip(groups, codes):
        scale = base + code - 1
        if code == 0:
            tokens.append([Coded(-1)] * len(group))
        elif spec.is_step_form:
            tokens.append([step_token(v, scale) for v in group])
        else:
            is_lossy = spec.codec != LOSSLESS
            tokens.append([exponent_token(v, scale, kept, plane_bytes, is_lossy) for v in group])

    built_in = spec_blocks.built_in_tables(spec.coder)[header_of(spec).table]
    if spec.own_table:
        own, failed = spec.own_table, lambda bits: False
    else:
        sampled = [[t.token for t in group] for group in tokens]
        own, failed = spec_own_table.choose(
            sampled, raw_bits, built_in, spec.is_step_form, 8 * spec.type.size, spec.coder
        )
    block = code_with(spec, entry, own or built_in, raw_bits, tokens, codes)
    if own:
        escapes = sum(t.token == ESCAPE for group in block.tokens for t in group)
        if failed(256 + 16 * len(block.coder.words) + 8 * spec.type.size * escapes):
            own, block = (), code_with(spec, entry, built_in, raw_bits, tokens, codes)

    flat = [token for group in block.tokens for token in group]
    outliers = [v.pattern for v, token in zip(values, flat) if token.token == ESCAPE]
    words = block.coder.words
    data = bytes(own or ()) + block.coder.states() + struct.pack(f"<{len(words)}H", *words)
    data += pack_bits(codes, scale_bits)
    data += b"".join(token.plane.to_bytes(plane_bytes, "little") for token in flat)
    data += np.array(outliers, spec.type.pattern).tobytes()
    flags = 1 if own else 0
    return entry_with(entry, flags=flags, word_count=len(words), outlier_count=len(outliers)), data


@dataclass(frozen=True)
class CodedGroups:
    tokens: list[list[Coded]]  # with escapes for tokens that the table lacks
    coder: BackwardCoder


def code_with(
    spec: Spec, entry: IndexEntry, frequencies: Sequence[int], raw_bits: list[int | None],
    tokens: list[list[Coded]], codes: list[int],
) -> CodedGroups:  # fmt: skip
    tokens = [
        [Coded(ESCAPE) if t.token >= 0 and not frequencies[t.token] else t for t in group]
        for group in tokens
    ]
    coder = BackwardCoder(spec.coder, entry.lanes, frequencies, raw_bits)
    code_backwards(coder, entry.lanes, tokens, codes)
    return CodedGroups(tokens, coder)


def whole_part(spec: Spec, part: Part) -> list[Float] | None:
    """The values that have one scale; None for groups of their own."""
    if not spec.options & PER_PART:
        return None
    return [Float(spec.type, int(p)) for p in part.patterns]


def round_group(
    spec: Spec, group: list[Float], scale: int | str, place: tuple[Part, int]
) -> list[Float]:
    """Stochastic rounding, for groups that are not zero groups."""
    if scale == "zero":
        return group
    part, first = place
    noise = Noise.of_tensor(spec, part.tensor)
    us = [noise.of(first + i) for i in range(len(group))]
    if not spec.is_step_form:
        return [rounded_to_mantissa(v, spec.mantissa, u) for v, u in zip(group, us)]
    k = -149 if scale == "base" else scale
    return [rounded_to_step(v, k, bool(spec.options & FILTER), u) for v, u in zip(group, us)]


def code_backwards(
    coder: BackwardCoder, lanes: int, tokens: list[list[Coded]], codes: list[int]
) -> None:
    for group, code in reversed(list(zip(tokens, codes))):
        for start in reversed(range(0, len(group), lanes) if code else ()):
            row = group[start : start + lanes]
            # The decoder's order backwards: the second half first, each from its lowest lane.
            for half in reversed(range(0, lanes, 32)):
                for lane in range(half, min(half + 32, lanes)):
                    if lane_value(lane, lanes) < len(row):
                        coder.put(lane, row[lane_value(lane, lanes)])


def narrow(v: Float, to: DType) -> int:
    """Section 4.1: round to nearest even."""
    sign = v.sign << 15
    infinity = ((1 << to.exponent_bits) - 1) << to.mantissa_bits
    if not v.is_finite:
        payload = v.mantissa >> v.dtype.mantissa_bits - to.mantissa_bits
        quiet = 1 << to.mantissa_bits - 1 if v.mantissa else 0
        return sign | infinity | payload | quiet
    if v.is_zero:
        return sign
    least = 1 - bias(to) - to.mantissa_bits
    top = v.significand.bit_length() - 1 + v.exponent
    quantum = max(top - to.mantissa_bits, least)
    number = round_half_even(v.significand, quantum - v.exponent)
    return sign | min(number + (quantum - least << to.mantissa_bits), infinity)


def fixed_point_scale(group: list[Float]) -> int:
    """The largest magnitude rounded up to bfloat16, as its pattern; 7FC0 for a raw group."""
    if not all(v.is_finite for v in group):
        return 0x7FC0
    largest = max(exact_value(v) * (-1) ** v.sign for v in group)
    if largest == 0:
        return 0
    unit = floor_log2(largest) - 7
    number = math.ceil(largest / Fraction(2) ** unit)  # 128 to 256; 256 carries into the exponent
    scale = (unit + 7 + 127 << 7) + number - 128
    return scale if 127 - 110 << 7 <= scale < 0x7F80 else 0x7FC0


def float32_of(patterns: np.ndarray, dtype: DType) -> np.ndarray:
    """Values as float32; float64 rounded to nearest even."""
    if dtype.size == 2:
        return spec_blocks.widen(patterns, dtype, DTYPES[1]).view("<f4")
    return patterns.view(f"<f{dtype.size}").astype("<f4")


def fixed_point_block(spec: Spec, pieces: Pieces) -> tuple[IndexEntry, bytes]:
    m = (1 << spec.bits - 1) - 1
    scales, integers, raw = [], [], []
    for patterns, part, first in pieces:
        noise = Noise.of_tensor(spec, part.tensor)
        for at in range(0, len(patterns), spec.group):
            group = patterns[at : at + spec.group]
            scale = fixed_point_scale([Float(spec.type, int(p)) for p in group])
            if scale == 0x7FC0:
                scales.append(scale)
                raw.append(group)
                integers += [0] * len(group)
                continue
            scales.append(scale)
            if scale == 0:
                integers += [0] * len(group)
                continue
            s = np.array([scale << 16], np.uint32).view("<f4")[0]
            t = float32_of(group, spec.type) * (np.float32(m) / s)
            for i, f in enumerate(np.rint(t.astype(np.float64) * 65536)):
                up = noise.of(first + at + i) if spec.rounding else 32768
                integers.append(min(max(int(f) + up >> 16, -m), m))
    block = np.array(scales, "<u2").tobytes() + pack_bits(integers, spec.bits)
    block += b"".join(group.tobytes() for group in raw)
    return IndexEntry(0, FIXED, 0, 0, 0, 0, 0, 0, 0, len(raw), 0, 0), block


def encode_block(spec: Spec, pieces: Pieces) -> tuple[IndexEntry, bytes]:
    stored = b"".join(patterns.tobytes() for patterns, _, _ in pieces)
    entry, block = IndexEntry(0, STORED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), stored
    if CODECS[spec.codec].kind == CODED:
        entry, block = coded_block(spec, pieces)
    elif spec.codec == BLOCK:
        entry, block = fixed_point_block(spec, pieces)
    elif spec.codec == CAST:
        narrowed = [narrow(Float(spec.type, int(p)), DTYPES[spec.cast_dtype])
                    for patterns, _, _ in pieces for p in patterns]  # fmt: skip
        entry, block = entry_with(entry, kind=FIXED), np.array(narrowed, "<u2").tobytes()
    elif spec.codec >= NATURAL:
        fixed = spec_baselines.encode(spec, pieces)
        if fixed is not None:
            entry, block = entry_with(entry, kind=FIXED, outlier_count=fixed[0]), fixed[1]
    if entry.kind != STORED and len(block) >= len(stored):
        entry, block = IndexEntry(0, STORED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), stored
    return entry_with(entry, length=len(block), hash=xxhash.xxh3_64_intdigest(block)), block


def entry_with(entry: IndexEntry, **changes: int) -> IndexEntry:
    return IndexEntry(**(vars(entry) | changes))


# ---- frames ----


def header_of(spec: Spec, **fields: int | bytes) -> Header:
    coder = spec.coder if CODECS[spec.codec].kind == CODED else 0
    known = dict.fromkeys(Header.__dataclass_fields__, 0)
    known |= {
        "magic": b"GWRF", "dtype": spec.dtype, "codec": spec.codec, "coder": coder,
        "rounding": spec.rounding, "scale": spec.scale, "options": spec.options,
        "group": spec.group, "block_values": spec.block_values,
        "quantizer_step": spec.quantizer_step, "mantissa": spec.mantissa, "bits": spec.bits,
        "cast_dtype": spec.cast_dtype, "seed": spec.seed, "variant": spec.variant,
        "segment_count": 1,
    }  # fmt: skip
    header = Header(**(known | spec.context | fields))
    return Header(**(vars(header) | {"table": table_of(header)}))


def table_of(header: Header) -> int:
    if not header.coder:
        return 0
    if not header.is_step_form:
        return 1
    x = {RANGE: 8 * header.x, ABSMAX: 4 * header.x, ABSOLUTE: 0.25}.get(header.scale, header.x)
    square = x * x
    log2 = math.frexp(square * square)[1] - 1
    return 16 + min(max((log2 + 33) // 2, 0), 22)


def pack_header(header: Header) -> bytes:
    return Header.LAYOUT.pack(*vars(header).values())


def pack_entry(entry: IndexEntry) -> bytes:
    return IndexEntry.LAYOUT.pack(*vars(entry).values())


def seal(frame: bytes) -> bytes:
    """The frame with a right header checksum, whatever else is wrong with it."""
    part_count, block_count, metadata_bytes = struct.unpack_from("<3I", frame, 52)
    end = 128 + 8 * part_count + 32 * block_count + metadata_bytes
    return frame[:124] + struct.pack("<I", crc32c(frame[:124] + frame[128:end])) + frame[128:]


def encode(spec: Spec, parts: Sequence[Part]) -> bytes:
    """One frame of the parts."""
    counts = [len(part.patterns) for part in parts]
    total = sum(counts)
    entries, blocks = [], []
    for begin in range(0, total, spec.block_values):
        end = min(begin + spec.block_values, total)
        pieces, at = [], 0
        for part, count in zip(parts, counts):
            first, last = max(begin, at), min(end, at + count)
            if first < last:
                cut = part.patterns[first - at : last - at]
                pieces.append((cut, part, part.first_index + first - at))
            at += count
        entry, block = encode_block(spec, pieces)
        entries.append(pack_entry(entry))
        blocks.append(block)
    tables = struct.pack(f"<{len(counts)}Q", *counts) + b"".join(entries) + spec.metadata
    header = header_of(
        spec, part_count=len(counts), block_count=len(blocks), metadata_bytes=len(spec.metadata),
        value_count=total, encoded_length=128 + len(tables) + sum(map(len, blocks)),
    )  # fmt: skip
    return seal(pack_header(header) + tables + b"".join(blocks))
