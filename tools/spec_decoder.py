#!/usr/bin/env python3
"""A second decoder of Gradwire frames, written from docs/format.md alone.

It shares no code with the library and checks every rule of the document under the document's error
names, so that the two can be tested against each other. It is meant to be read: each function names
the section that it follows. Values are handled as bit patterns (unsigned integers of the type's
size), so that NaN and -0 pass through unharmed.

Usage: spec_decoder.py FILE.gw [--raw OUT]

Needs Python 3.10, numpy and xxhash. Built-in tables are read from docs/format.md itself.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

import numpy as np
import xxhash

from spec_blocks import cut_groups, decode_block
from spec_frame import Frame, FormatError, read_frame


def decode_frame(data: bytes) -> tuple[Frame, np.ndarray]:
    """Checks and decodes exactly one frame; the values come as bit patterns."""
    frame = read_frame(data)
    values = np.zeros(frame.header.value_count, frame.dtype.pattern)
    for number, (entry, block) in enumerate(zip(frame.index, frame.blocks)):
        if xxhash.xxh3_64_intdigest(block) != entry.hash:
            raise FormatError("BlockChecksum", f"block {number} is damaged")
        begin = number * frame.header.block_values
        end = min(begin + frame.header.block_values, frame.header.value_count)
        groups = cut_groups(frame, begin, end)
        values[begin:end] = decode_block(frame, entry, block, groups, end - begin)
    return frame, values


def split_frames(data: bytes) -> list[bytes]:
    """A file is one or more frames, one after the other."""
    frames = []
    while data or not frames:
        length = int.from_bytes(data[72:80], "little")
        if len(data) < 128 or data[:4] != b"GWRF" or length < 128:
            length = len(data)  # read_frame() says what is wrong
        frames.append(data[:length])
        data = data[length:]
    return frames


# ---- command line ----


def summary(frame: Frame, values: np.ndarray) -> str:
    header = frame.header
    codec = ("none", "cast", "block", "lossless", "near_lossless")[header.codec]
    lines = [
        f"{codec}, {frame.dtype.name}, {header.value_count} values in {header.part_count} parts, "
        f"{header.encoded_length} bytes",
        f"  header {header}",
        f"  metadata {frame.metadata!r}",
    ]
    lines += [f"  block {number} {entry}" for number, entry in enumerate(frame.index)]
    lines.append(f"  sha256 of the values {hashlib.sha256(values.tobytes()).hexdigest()}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Decodes Gradwire frames by docs/format.md.")
    parser.add_argument("file", type=Path, metavar="FILE.gw")
    parser.add_argument("--raw", type=Path, metavar="OUT", help="write the values as they are")
    arguments = parser.parse_args()
    try:
        frames = [decode_frame(data) for data in split_frames(arguments.file.read_bytes())]
    except (FormatError, OSError) as error:
        print(f"{arguments.file}: {error}", file=sys.stderr)
        return 1
    for frame, values in frames:
        print(summary(frame, values))
    if arguments.raw:
        arguments.raw.write_bytes(b"".join(values.tobytes() for _, values in frames))
    return 0


if __name__ == "__main__":
    sys.exit(main())
