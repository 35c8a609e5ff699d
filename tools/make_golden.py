#!/usr/bin/env python3
"""Makes tests/golden: frames with known values, and damaged frames with known errors.

The frames come from the model encoder (tools/spec_encoder.py) and the values from the second
decoder, never from the library, which is tested against them. What is there already must come out
the same: without --force nothing is changed, and frames of a released format version (1 and above)
are never changed.

Usage: make_golden.py [--force] [--data FOLDER]

--data takes the slices of real gradients anew from FOLDER; else those in tests/golden/inputs stay.
Exit status: 0 fine, 1 a file would change, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
from pathlib import Path

import numpy as np

from golden_cases import DTYPE_NUMBERS, Case, all_cases
from golden_errors import bad_frames
from golden_inputs import SLICES, generated_inputs, real_inputs
from spec_decoder import decode_frame
from spec_encoder import Part, Spec, encode
from spec_frame import DTYPES, LOSSLESS, NONE, FormatError

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"


def npy(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def read_inputs(golden: Path, data: Path | None) -> dict[str, np.ndarray]:
    inputs = generated_inputs()
    if data is not None:
        return inputs | real_inputs(data)
    return inputs | {name: np.load(golden / "inputs" / f"{name}.npy") for name in SLICES}


def spec_of(case: Case) -> Spec:
    return Spec.parse(case.codec, DTYPE_NUMBERS[case.dtype], context=case.context,
                      metadata=case.metadata.encode(), own_table=case.own_table)  # fmt: skip


def parts_of(case: Case, values: np.ndarray) -> list[Part]:
    """The first values of the input, as bit patterns, cut into parts."""
    dtype = DTYPES[DTYPE_NUMBERS[case.dtype]]
    patterns = np.frombuffer(values.tobytes()[: sum(case.parts) * dtype.size], dtype.pattern)
    if len(patterns) != sum(case.parts):
        raise ValueError(f"{case.name}: {case.input} is too short")
    parts, at = [], 0
    for number, count in enumerate(case.parts):
        first_index = case.first_index if number == 0 else 0
        parts.append(Part(patterns[at : at + count], case.tensor + number, first_index))
        at += count
    return parts


def make_frame(case: Case, inputs: dict[str, np.ndarray]) -> tuple[bytes, dict[str, object]]:
    """The frame and its entry in the manifest."""
    spec, parts = spec_of(case), parts_of(case, inputs[case.input])
    frame = encode(spec, parts)
    decoded, values = decode_frame(frame)
    given = np.concatenate([part.patterns for part in parts]) if parts else values
    if spec.codec in (NONE, LOSSLESS) and not np.array_equal(given, values):
        raise ValueError(f"{case.name}: not lossless")
    entry = {
        "file": f"{case.name}.gw", "codec": case.codec, "dtype": case.dtype, "input": case.input,
        "parts": [{"values": len(part.patterns), "tensor": part.tensor,
                   "first_index": part.first_index} for part in parts],
        "context": case.context, "metadata": case.metadata, "decode_only": case.decode_only,
        "version": decoded.header.version,
        "frame_sha256": hashlib.sha256(frame).hexdigest(),
        "values_sha256": hashlib.sha256(values.tobytes()).hexdigest(),
    }  # fmt: skip
    return frame, entry


def check_bad_frames(bad: dict[str, dict[str, bytes]]) -> None:
    for name, files in bad.items():
        for file, frame in files.items():
            try:
                decode_frame(frame)
            except FormatError as error:
                if error.name != name:
                    raise ValueError(f"{name}/{file} gives {error}") from error
            else:
                raise ValueError(f"{name}/{file} is a good frame")


def make_files(inputs: dict[str, np.ndarray]) -> dict[str, bytes]:
    """All files of tests/golden that this program makes, by relative path."""
    files = {f"inputs/{name}.npy": npy(values) for name, values in inputs.items()}
    frames, entries = {}, []
    for case in all_cases():
        if case.name in frames:
            raise ValueError(f"two cases are called {case.name}")
        frames[case.name], entry = make_frame(case, inputs)
        entries.append(entry)
        files[f"frames/{case.name}.gw"] = frames[case.name]
    bad = bad_frames(frames)
    check_bad_frames(bad)
    errors = []
    for name, bad_files in bad.items():
        for file, frame in bad_files.items():
            files[f"errors/{name}/{file}.gw"] = frame
            errors.append({"file": f"{name}/{file}.gw", "error": name})
    manifest = json.dumps({"frames": entries, "errors": errors}, indent=1)
    return files | {"manifest.json": manifest.encode() + b"\n"}


def released(path: Path) -> bool:
    """A frame of a format version that is kept for ever."""
    return path.suffix == ".gw" and path.parent.name == "frames" and (
        int.from_bytes(path.read_bytes()[4:6], "little") >= 1)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes the golden frames.")
    parser.add_argument("--force", action="store_true", help="change frames of format version 0")
    parser.add_argument("--data", type=Path, help="folder of the measured gradients")
    arguments = parser.parse_args()
    files = make_files(read_inputs(GOLDEN, arguments.data))
    there = {str(path.relative_to(GOLDEN)): path for path in GOLDEN.rglob("*")
             if path.suffix in (".gw", ".npy", ".json")}  # fmt: skip
    changed = [name for name, path in there.items() if path.read_bytes() != files.get(name)]
    kept = [name for name in changed if released(there[name])]
    frames_change = [name for name in changed if name != "manifest.json"]
    if kept or (frames_change and not arguments.force):
        for name in kept or frames_change:
            print(f"would change {name}" + (", a released frame" if kept else ""), file=sys.stderr)
        return 1
    for name in changed:
        if name not in files:
            there[name].unlink()
    for name, data in files.items():
        path = GOLDEN / name
        if name not in there or name in changed:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    new = len(files.keys() - there.keys())
    total = sum(map(len, files.values()))
    print(f"{len(files)} files, {total} bytes; {new} new, {len(changed)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
