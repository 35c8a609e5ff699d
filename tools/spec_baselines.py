"""Codecs 16 and up of docs/format.md, both ways: sections 4.3 and following, and their part of 8.

The model of the baselines: bit patterns to bytes and back, value by value where it has to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spec_bits import pack_bits, read_bit_array
from spec_frame import NATURAL, Header, IndexEntry, check_block
from spec_noise import Noise

if TYPE_CHECKING:
    from spec_blocks import Groups
    from spec_encoder import Pieces, Spec

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
        noise = Noise(spec, part.tensor)
        for i, pattern in enumerate(map(int, patterns)):
            sign, magnitude = pattern >> 31 << 8, pattern & 0x7FFFFFFF
            if magnitude > 254 << 23:
                codes.append(sign | 255)
                raw.append(pattern)
            else:
                codes.append(sign | magnitude + (noise.of(first + i) << 7) + 64 >> 23)
    return len(raw), pack_bits(codes, 9) + np.array(raw, "<u4").tobytes()


# ---- all of them ----

DECODERS = {NATURAL: decode_natural}
ENCODERS = {NATURAL: encode_natural}


def decode(
    header: Header, entry: IndexEntry, block: bytes, groups: Groups, count: int
) -> np.ndarray:
    """The bit patterns of the `count` values of one fixed block."""
    return DECODERS[header.codec](header, entry, block, groups, count)


def encode(spec: Spec, pieces: Pieces) -> tuple[int, bytes]:
    """outlier_count and bytes of one fixed block."""
    return ENCODERS[spec.codec](spec, pieces)
