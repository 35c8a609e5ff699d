"""Bit arrays of section 2 of docs/format.md."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def read_bit_array(data: bytes, width: int, count: int) -> np.ndarray:
    """`count` unsigned elements of `width` bits, least significant bit first."""
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=width * count, bitorder="little")
    return bits.reshape(count, width).astype(np.int64) @ (1 << np.arange(width, dtype=np.int64))


def pack_bits(elements: Sequence[int], width: int) -> bytes:
    """The other way; of a negative element the low bits."""
    number = sum((element & (1 << width) - 1) << i * width for i, element in enumerate(elements))
    return number.to_bytes((len(elements) * width + 7) // 8, "little")
