"""Section 1 of docs/format.md: header, part table, block index.

Every rule is checked under the document's error names, in the document's order.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Container
from dataclasses import dataclass

import numpy as np

NONE, CAST, BLOCK, LOSSLESS, NEAR_LOSSLESS, ERROR_BOUNDED = range(6)
NATURAL, MXFP8, MXFP4, QSGD, TERNGRAD, SIGN, TOP_K, HADAMARD, COCKTAIL = range(16, 25)
RMS, RANGE, ABSMAX, ABSOLUTE = range(1, 5)
FILTER, PER_PART = 1, 2
TANS, HUFFMAN = 1, 2
STORED, CODED, FIXED = range(3)
ERROR_FRAME = 255


class FormatError(Exception):
    """The bytes are not a frame; `name` is the error name of the document."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


def check_header(condition: bool, message: str) -> None:
    if not condition:
        raise FormatError("BadHeader", message)


def check_block(condition: bool, message: str) -> None:
    if not condition:
        raise FormatError("CorruptBlock", message)


@dataclass(frozen=True)
class DType:
    """An element type (section 1.2). Only the first four can be compressed."""

    name: str
    size: int
    exponent_bits: int = 0  # E
    mantissa_bits: int = 0  # B

    @property
    def pattern(self) -> str:
        """numpy's name of the unsigned integer that holds one value's bits."""
        return f"<u{self.size}"


DTYPES = {
    1: DType("float32", 4, 8, 23), 2: DType("float64", 8, 11, 52),
    3: DType("float16", 2, 5, 10), 4: DType("bfloat16", 2, 8, 7),
    16: DType("uint8", 1), 17: DType("int8", 1), 18: DType("int16", 2), 19: DType("int32", 4),
    20: DType("int64", 8), 21: DType("uint16", 2), 22: DType("uint32", 4), 23: DType("uint64", 8),
    24: DType("bool", 1), 25: DType("float8_e4m3", 1), 26: DType("float8_e5m2", 1),
}  # fmt: skip
@dataclass(frozen=True)
class Codec:
    """What the fields of a frame may be that depend on its codec (section 1.1); left out: 0."""

    name: str
    dtypes: tuple[int, ...] = (1,)
    kind: int = FIXED  # of the blocks that are not stored
    counts_outliers: bool = True  # index: outlier_count may be more than 0
    group: Container[int] = range(1)
    bits: tuple[int, ...] = (0,)
    cast_dtypes: tuple[int, ...] = (0,)
    roundings: tuple[int, ...] = (0,)
    variant: Container[int] = range(1)
    quantizer_step: tuple[float, float] = (0, 0)  # near_lossless: of the step form
    may_lack_step: bool = False

    def takes_step(self, step: float) -> bool:
        if step == 0:
            may_be_zero = self.may_lack_step or self.quantizer_step[1] == 0
            return may_be_zero and math.copysign(1, step) > 0
        return self.quantizer_step[0] <= step <= self.quantizer_step[1]


CODED_GROUPS, FIXED_GROUPS = range(64, 4097, 64), range(8, 4097, 8)
CODECS = {
    NONE: Codec("none", tuple(DTYPES), STORED, counts_outliers=False),
    CAST: Codec("cast", (1, 2), counts_outliers=False, cast_dtypes=(3, 4)),
    BLOCK: Codec("block", (1, 2, 3, 4), group=FIXED_GROUPS, bits=(4, 6, 8), roundings=(0, 1)),
    LOSSLESS: Codec("lossless", (1, 2, 3, 4), CODED, group=CODED_GROUPS),
    NEAR_LOSSLESS: Codec("near_lossless", (1, 2, 3, 4), CODED, group=CODED_GROUPS,
                         roundings=(0, 1), quantizer_step=(2**-8, 8)),
    ERROR_BOUNDED: Codec("error_bounded", (1, 2, 3, 4), CODED, group=CODED_GROUPS,
                          roundings=(0, 1)),
    NATURAL: Codec("natural", roundings=(1,)),
    MXFP8: Codec("mxfp8", group=(32,), cast_dtypes=(25, 26)),
    MXFP4: Codec("mxfp4", group=(32,)),
    QSGD: Codec("qsgd", group=FIXED_GROUPS, bits=tuple(range(2, 9)), variant=range(4),
                roundings=(1,)),
    TERNGRAD: Codec("terngrad", group=FIXED_GROUPS, bits=(2,), roundings=(1,),
                    quantizer_step=(1, 8), may_lack_step=True),
    SIGN: Codec("sign", group=FIXED_GROUPS),
    TOP_K: Codec("top_k", counts_outliers=False, cast_dtypes=(1, 4), quantizer_step=(2**-20, 1)),
    HADAMARD: Codec("hadamard", group=[1 << k for k in range(4, 13)], bits=(4, 6, 8),
                    roundings=(1,)),
    COCKTAIL: Codec("cocktail", counts_outliers=False, group=FIXED_GROUPS, bits=(4, 6, 8),
                    roundings=(0, 1), variant=range(1, 4097), quantizer_step=(2**-20, 1)),
}  # fmt: skip


@dataclass(frozen=True)
class Header:
    """The fields of section 1.1, in their order; struct's letters beside them."""

    magic: bytes  # 4s
    version: int  # H
    op: int  # B, as all up to scale
    phase: int
    dtype: int
    reduction: int
    codec: int
    coder: int
    table: int
    schedule: int
    rounding: int
    scale: int
    group: int  # I
    block_values: int  # I
    quantizer_step: float  # d
    mantissa: int  # B, as all up to options
    bits: int
    cast_dtype: int
    options: int
    world: int  # I, as all up to metadata_bytes
    sender: int
    segment: int
    segment_count: int
    part_count: int
    block_count: int
    metadata_bytes: int
    value_count: int  # Q, as all up to first_value
    encoded_length: int
    group_id: int
    step: int
    sequence: int
    seed: int
    first_value: int
    variant: int  # I
    checksum: int  # I

    LAYOUT = struct.Struct("<4sH10BIId4B7I7QII")

    @property
    def is_step_form(self) -> bool:
        return self.codec == ERROR_BOUNDED or (self.codec == NEAR_LOSSLESS and not self.mantissa)

    @property
    def x(self) -> float:
        """X of the step form."""
        is_doubled = self.codec == ERROR_BOUNDED and not self.rounding
        return self.quantizer_step * (2 if is_doubled else 1)


@dataclass(frozen=True)
class IndexEntry:
    """One entry of the block index (section 1.4)."""

    length: int
    kind: int
    lanes: int
    plane_bytes: int
    scale_bits: int
    scale_base: int
    mantissa: int
    flags: int
    word_count: int
    outlier_count: int
    reserved: int
    hash: int

    LAYOUT = struct.Struct("<I4BhBBIIIQ")

    @property
    def has_own_table(self) -> bool:
        return bool(self.flags & 1)


@dataclass(frozen=True)
class Frame:
    """A checked frame: everything but the values of its blocks."""

    header: Header
    parts: list[int]
    index: list[IndexEntry]
    metadata: bytes
    blocks: list[bytes]

    @property
    def dtype(self) -> DType:
        return DTYPES[self.header.dtype]


@functools.cache
def crc32c_table() -> list[int]:
    def entry(byte: int) -> int:
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        return byte

    return [entry(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """CRC-32C, reflected, initial value and final xor FFFFFFFF."""
    table, crc = crc32c_table(), 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def read_frame(data: bytes) -> Frame:
    """Reads and checks header, part table and index, in the order of section 1.1."""
    if len(data) < Header.LAYOUT.size:
        raise FormatError("Truncated", f"{len(data)} bytes, a header has 128")
    header = Header(*Header.LAYOUT.unpack_from(data))
    if header.magic != b"GWRF":
        raise FormatError("BadMagic", f"{header.magic!r}")
    if header.version != 0:
        raise FormatError("UnsupportedVersion", f"{header.version}")
    if len(data) != header.encoded_length:
        name = "Truncated" if len(data) < header.encoded_length else "TrailingBytes"
        raise FormatError(name, f"{len(data)} bytes, encoded_length {header.encoded_length}")
    index_at = 128 + 8 * header.part_count
    metadata_at = index_at + 32 * header.block_count
    blocks_at = metadata_at + header.metadata_bytes
    check_header(blocks_at <= header.encoded_length, "the tables are longer than the frame")
    if crc32c(data[:124] + data[128:blocks_at]) != header.checksum:
        raise FormatError("HeaderChecksum", "header, part table, index or metadata are damaged")
    check_fields(header)
    parts = [int(count) for count in np.frombuffer(data, "<u8", header.part_count, 128)]
    check_header(sum(parts) == header.value_count, "the parts do not add up to value_count")
    index = [IndexEntry(*fields)
             for fields in IndexEntry.LAYOUT.iter_unpack(data[index_at:metadata_at])]  # fmt: skip
    for number, entry in enumerate(index):
        check_entry(header, entry)
        values = min(header.block_values, header.value_count - number * header.block_values)
        size = values * DTYPES[header.dtype].size
        check_header(entry.kind != STORED or entry.length == size, "index: stored block's length")
    lengths = sum(entry.length for entry in index)
    check_header(blocks_at + lengths == header.encoded_length, "the blocks do not fill the frame")
    blocks, at = [], blocks_at
    for entry in index:
        blocks.append(data[at : at + entry.length])
        at += entry.length
    return Frame(header, parts, index, data[metadata_at:blocks_at], blocks)


def check_fields(header: Header) -> None:
    """Section 1.1: the fields, each in its range, and those that depend on the codec."""
    h = header
    check_header(h.op in (0, 1, 2, 3, 4, ERROR_FRAME), f"op {h.op}")
    check_header(h.phase <= 2, f"phase {h.phase}")
    check_header(h.dtype in DTYPES, f"dtype {h.dtype}")
    check_header(h.reduction <= 2, f"reduction {h.reduction}")
    check_header(h.codec in CODECS, f"codec {h.codec}")
    codec = CODECS[h.codec]
    check_header(h.dtype in codec.dtypes, f"codec {h.codec} with dtype {h.dtype}")
    is_coded = codec.kind == CODED
    check_header(h.coder in ((TANS, HUFFMAN) if is_coded else (0,)), f"coder {h.coder}")
    check_header(h.schedule <= 1, f"schedule {h.schedule}")
    # near_lossless rounds with noise to a mantissa only.
    is_near_step = h.codec == NEAR_LOSSLESS and not h.mantissa
    roundings = (0,) if is_near_step else codec.roundings
    check_header(h.rounding in roundings, f"rounding {h.rounding} of codec {h.codec}")

    check_header(h.group in codec.group, f"group {h.group}")
    check_header(4096 <= h.block_values <= 1 << 20 and h.block_values % 4096 == 0,
                 f"block_values {h.block_values}")  # fmt: skip
    check_header(1 <= h.mantissa <= 16 if h.codec == NEAR_LOSSLESS and h.mantissa else
                 h.mantissa == 0, f"mantissa {h.mantissa}")  # fmt: skip
    if h.codec == ERROR_BOUNDED:
        check_bound(h)
    else:
        check_header(h.scale == h.options == 0, "scale or options of another codec")
        takes_step = CODECS[NONE] if h.codec == NEAR_LOSSLESS and h.mantissa else codec
        check_header(takes_step.takes_step(h.quantizer_step), f"quantizer_step {h.quantizer_step}")
    tables = range(16, 39) if h.is_step_form else (1,) if is_coded else (0,)  # section 5.3
    check_header(h.table in tables, f"table {h.table}")
    check_header(h.variant in codec.variant, f"variant {h.variant}")
    check_header(h.bits in codec.bits, f"bits {h.bits}")
    check_header(h.cast_dtype in codec.cast_dtypes, f"cast_dtype {h.cast_dtype}")
    check_header(h.segment < h.segment_count, f"segment {h.segment} of {h.segment_count}")
    blocks = -(-h.value_count // h.block_values)
    check_header(h.block_count == blocks, f"block_count {h.block_count} instead of {blocks}")
    if h.op == ERROR_FRAME:  # section 7
        check_header(h.value_count == h.part_count == 0, "an error frame has values")


def check_bound(header: Header) -> None:
    h = header
    check_header(RMS <= h.scale <= ABSOLUTE, f"scale {h.scale}")
    check_header(h.options <= FILTER | PER_PART, f"options {h.options}")
    check_header(not h.options & PER_PART or h.group == 4096, f"group {h.group} per part")
    if h.scale == RMS:
        in_range = 2**-8 <= h.x <= 8
    elif h.scale == ABSOLUTE:
        in_range = 2.0**-126 <= h.quantizer_step <= 2.0**127
    else:
        in_range = 2**-10 <= h.quantizer_step <= 1
    check_header(in_range, f"bound {h.quantizer_step} of scale {h.scale}")


def check_entry(header: Header, entry: IndexEntry) -> None:
    """Section 1.4, and what sections 3.1 and 3.2 ask of an index entry."""
    e = entry
    check_header(e.reserved == 0, "index: reserved is not 0")
    codec = CODECS[header.codec]
    check_header(e.kind in (STORED, codec.kind), f"index: kind {e.kind}")
    if e.kind != CODED:
        coded_fields = (e.lanes, e.plane_bytes, e.scale_bits, e.scale_base, e.mantissa, e.flags)
        check_header(not any(coded_fields), "index: a field of coded blocks is not 0")
        check_header(e.word_count == 0, "index: word_count is not 0")
        counts_outliers = e.kind != STORED and codec.counts_outliers
        check_header(counts_outliers or e.outlier_count == 0, "index: outlier_count is not 0")
        return
    check_header(e.lanes in (1, 16, 32, 64), f"index: lanes {e.lanes}")
    check_header(e.plane_bytes <= 6, f"index: plane_bytes {e.plane_bytes}")
    check_header(e.scale_bits <= 12, f"index: scale_bits {e.scale_bits}")
    check_header(e.flags <= 1, f"index: flags {e.flags}")
    if header.is_step_form:
        check_header(e.plane_bytes == e.mantissa == 0, "index: the step form has no mantissa")
        return
    check_header(e.mantissa <= DTYPES[header.dtype].mantissa_bits, f"index: mantissa {e.mantissa}")
    check_header(8 * e.plane_bytes <= e.mantissa, "index: the plane is wider than the mantissa")
    check_header(1 + e.mantissa - 8 * e.plane_bytes <= 9, "index: more than 9 lane bits")
