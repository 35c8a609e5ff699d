"""The built-in tables: docs/format.md lists what src/entropy/tables.h holds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import make_tables  # noqa: E402


@pytest.fixture(scope="module")
def header() -> dict[int, list[int]]:
    return make_tables.read_header(make_tables.HEADER.read_text(encoding="utf-8"))


def test_document_and_header_agree(header: dict[int, list[int]]) -> None:
    assert make_tables.read_listing(make_tables.FORMAT.read_text(encoding="utf-8")) == header


def test_numbers_and_sums(header: dict[int, list[int]]) -> None:
    assert sorted(header) == [1, *range(16, 39)]
    for number, frequencies in header.items():
        assert len(frequencies) == 32, number
        assert sum(frequencies) == 128, number
        assert frequencies[31] >= 1, number


def test_tool_reproduces_the_header_text(header: dict[int, list[int]]) -> None:
    assert make_tables.header_text(header) == make_tables.HEADER.read_text(encoding="utf-8")


def test_coder_cost_is_above_the_entropy(header: dict[int, list[int]]) -> None:
    """A check of the tool's cost model on shares that a table fits exactly."""
    import numpy as np

    frequencies = np.array(header[17])
    shares = frequencies / 128
    used = shares > 0
    entropy = -float((shares[used] * np.log2(shares[used])).sum())
    bits = make_tables.coder_bits(shares, frequencies)
    assert entropy <= bits < entropy * 1.01
