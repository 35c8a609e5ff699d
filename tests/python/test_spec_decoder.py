"""The second decoder (tools/spec_decoder.py) and the model encoder, against golden frames.

Library-free: docs/format.md is tested here for being complete and consistent.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
GOLDEN = ROOT / "tests" / "golden"
sys.path.insert(0, str(TOOLS))

import make_golden  # noqa: E402
from golden_cases import Case, all_cases  # noqa: E402
from golden_errors import flip, set_byte  # noqa: E402
from spec_blocks import build_table, built_in_tables, read_bit_array, step_raw_bits  # noqa: E402
from spec_decoder import decode_frame, split_frames  # noqa: E402
from spec_encoder import Part, Spec, encode, pack_bits, seal  # noqa: E402
from spec_frame import DTYPES, FormatError, crc32c, read_frame  # noqa: E402

MANIFEST = json.loads((GOLDEN / "manifest.json").read_text())
CASES = {case.name: case for case in all_cases()}


def frame_bytes(name: str) -> bytes:
    return (GOLDEN / "frames" / f"{name}.gw").read_bytes()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ---- golden frames ----


@pytest.mark.parametrize("entry", MANIFEST["frames"], ids=lambda entry: entry["file"])
def test_golden_frame(entry: dict) -> None:
    data = (GOLDEN / "frames" / entry["file"]).read_bytes()
    assert sha256(data) == entry["frame_sha256"]
    frame, values = decode_frame(data)
    assert frame.parts == [part["values"] for part in entry["parts"]]
    assert frame.metadata.decode() == entry["metadata"]
    for name, value in entry["context"].items():
        assert getattr(frame.header, name) == value
    assert sha256(values.tobytes()) == entry["values_sha256"]


@pytest.mark.parametrize("entry", MANIFEST["errors"], ids=lambda entry: entry["file"])
def test_damaged_frame(entry: dict) -> None:
    with pytest.raises(FormatError) as caught:
        decode_frame((GOLDEN / "errors" / entry["file"]).read_bytes())
    assert caught.value.name == entry["error"]


def test_golden_files_are_what_make_golden_makes() -> None:
    files = make_golden.make_files(make_golden.read_inputs(GOLDEN, None))
    there = {path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*")
             if path.suffix in (".gw", ".npy", ".json")}  # fmt: skip
    assert there == files.keys()
    assert [name for name in files if (GOLDEN / name).read_bytes() != files[name]] == []


def test_make_golden_changes_nothing_unasked(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(make_golden, "GOLDEN", tmp_path)
    frames = {"frames/a.gw": b"GWRF\0\0 old", "manifest.json": b"{}"}
    monkeypatch.setattr(make_golden, "read_inputs", lambda golden, data: {})
    monkeypatch.setattr(make_golden, "make_files", lambda inputs: dict(frames))
    monkeypatch.setattr(sys, "argv", ["make_golden"])
    assert make_golden.main() == 0
    frames["frames/a.gw"] = b"GWRF\0\0 new"
    assert make_golden.main() == 1
    assert (tmp_path / "frames/a.gw").read_bytes() == b"GWRF\0\0 old"
    monkeypatch.setattr(sys, "argv", ["make_golden", "--force"])
    assert make_golden.main() == 0
    assert (tmp_path / "frames/a.gw").read_bytes() == b"GWRF\0\0 new"
    (tmp_path / "frames/a.gw").write_bytes(b"GWRF\1\0 released")
    assert make_golden.main() == 1
    assert (tmp_path / "frames/a.gw").read_bytes() == b"GWRF\1\0 released"
    assert "released frame" in capsys.readouterr().err


# ---- bounds ----


def given_and_decoded(case: Case) -> tuple[np.ndarray, np.ndarray]:
    inputs = make_golden.read_inputs(GOLDEN, None)
    parts = make_golden.parts_of(case, inputs[case.input])
    values = decode_frame(frame_bytes(case.name))[1]
    return np.concatenate([part.patterns for part in parts]), values


LOSSY = [case.name for case in CASES.values() if case.codec.startswith("near_lossless")
         and sum(case.parts)]  # fmt: skip


def numbers(patterns: np.ndarray, dtype: str) -> np.ndarray:
    """The values of these bit patterns as long doubles, whose range holds squares of float64."""
    if dtype == "bfloat16":
        return (patterns.astype("<u4") << 16).view("<f4").astype(np.longdouble)
    return patterns.view({"float16": "<f2", "float32": "<f4", "float64": "<f8"}[dtype]).astype(
        np.longdouble)  # fmt: skip


@pytest.mark.parametrize("name", LOSSY)
def test_near_lossless_obeys_its_bound(name: str) -> None:
    case = CASES[name]
    given, decoded = given_and_decoded(case)
    finite = np.isfinite(numbers(given, case.dtype))
    assert np.array_equal(given[~finite], decoded[~finite])
    x, y = (numbers(np.where(finite, bits, 0).astype(bits.dtype), case.dtype)
            for bits in (given, decoded))  # fmt: skip
    error = np.abs(y - x)
    spec = make_golden.spec_of(case)
    if spec.mantissa:
        assert not np.any(~(error <= 2.0 ** -(spec.mantissa + 1 - spec.rounding) * np.abs(x)))
        return
    # Group by group: step = 2^floor(log2(X RMS)), not below the type's least subnormal. RMS is
    # computed with 11-bit significands, cut, hence never above the true one.
    form = next(dtype for dtype in DTYPES.values() if dtype.name == case.dtype)
    least = 2 - 2 ** (form.exponent_bits - 1) - form.mantissa_bits
    at = 0
    for count in case.parts:
        for start in range(at, at + count, spec.group):
            part = slice(start, min(start + spec.group, at + count))
            values = x[part][finite[part]]
            if not len(values):
                continue
            wanted = spec.quantizer_step * np.sqrt(np.mean(values * values))
            lowest = np.ldexp(np.longdouble(1), least)
            step = np.ldexp(np.longdouble(1), int(np.floor(np.log2(max(wanted, lowest)))))
            assert not np.any(~(error[part] <= step / 2))
        at += count


def test_cast_is_what_numpy_makes() -> None:
    for name in ("cast_dtypefp16_specials", "cast_dtypefp16_bits", "cast_fp16_f64"):
        given, decoded = given_and_decoded(CASES[name])
        wide = f"<f{given.itemsize}"
        with np.errstate(over="ignore", invalid="ignore"):
            expected = given.view(wide).astype("<f2").astype(wide)
        is_nan = np.isnan(expected)
        assert np.array_equal(expected.view(given.dtype)[~is_nan], decoded[~is_nan])
        assert np.all(np.isnan(decoded.view(wide)[is_nan]))


# ---- damage ----

SMALL = ["none_metadata", "step_result", "int8_noise", "none_float8_e4m3"]


@pytest.mark.parametrize("name", SMALL)
def test_every_truncation_and_extension(name: str) -> None:
    data = frame_bytes(name)
    for length in range(len(data)):
        with pytest.raises(FormatError, match="^Truncated"):
            read_frame(data[:length])
    for length in range(1, 17):
        with pytest.raises(FormatError, match="^TrailingBytes"):
            read_frame(data + data[:length])


@pytest.mark.parametrize("name", SMALL)
def test_every_bit_flip(name: str) -> None:
    data = frame_bytes(name)
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FormatError):
            decode_frame(bytes(damaged))


@pytest.mark.parametrize("name", ["step_result", "lossless_group_64", "own_table_step"])
def test_flips_with_mended_checksums_are_errors_or_values(name: str) -> None:
    """Never another exception: every check comes before what relies on it."""
    data = frame_bytes(name)
    block = len(read_frame(data).blocks[0])
    for at in range(0, block, 1 + block // 70):
        damaged = set_byte(data, at, data[len(data) - block + at] ^ 1 << at % 8)
        try:
            values = decode_frame(damaged)[1]
        except FormatError as error:
            assert error.name == "CorruptBlock"
        else:
            assert len(values) == read_frame(data).header.value_count
    for at in range(0, 128 + 40, 3):
        try:
            decode_frame(seal(flip(data, at)))
        except FormatError:
            pass


# ---- pieces of the document ----


def test_crc32c_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_bit_array_is_least_significant_first() -> None:
    assert pack_bits([1, 2, 3, 4, 5], 3) == bytes([0b11010001, 0b01011000])
    assert read_bit_array(bytes([0b11010001, 0b01011000]), 3, 5).tolist() == [1, 2, 3, 4, 5]
    assert read_bit_array(b"", 0, 3).tolist() == [0, 0, 0]


def test_worked_example_of_the_table() -> None:
    table = build_table(1, [128] + [0] * 31, step_raw_bits(DTYPES[1]))
    assert set(table.bits.tolist()) == {0}
    assert table.next.tolist() == list(range(128))


def test_built_in_tables_are_listed() -> None:
    for coder in (1, 2):
        check_built_in_tables(coder)


def check_built_in_tables(coder: int) -> None:
    tables = built_in_tables(coder)
    assert sorted(tables) == [1, *range(16, 39)]
    for number, frequencies in tables.items():
        raw_bits = step_raw_bits(DTYPES[1]) if number > 1 else [9] * 30 + [1, 0]
        build_table(coder, frequencies, raw_bits)
        assert frequencies[31] > 0


def test_worked_example_of_the_step_form() -> None:
    """q = -13: token 9, lane bits 101. One lane, all probability on token 9."""
    own_table = tuple(64 if token in (9, 31) else 0 for token in range(32))
    values = np.full(64, -13.0, "<f4").view("<u4")
    spec = Spec.parse("near_lossless:step=0.125,group=64", 1, own_table=own_table)
    frame, decoded = decode_frame(encode(spec, [Part(values)]))
    assert frame.index[0].scale_base == 0
    assert frame.index[0].outlier_count == 0
    assert frame.index[0].word_count == 64 * 4 // 16  # a bit for the token, three behind it
    assert np.array_equal(decoded, values)


def test_file_of_several_frames(tmp_path: Path) -> None:
    names = ["none_metadata", "step_result", "lossless_f64_normal"]
    file = tmp_path / "three.gw"
    file.write_bytes(b"".join(frame_bytes(name) for name in names))
    assert split_frames(file.read_bytes()) == [frame_bytes(name) for name in names]
    raw = tmp_path / "values"
    command = [sys.executable, str(TOOLS / "spec_decoder.py"), str(file), "--raw", str(raw)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.count("sha256 of the values") == 3
    values = [decode_frame(frame_bytes(name))[1].tobytes() for name in names]
    assert raw.read_bytes() == b"".join(values)


def test_command_line_names_the_error(tmp_path: Path) -> None:
    for data, name in ((b"", "Truncated"), (frame_bytes("step_result")[:-1], "Truncated"),
                       (frame_bytes("step_result") + b"x", "Truncated"), (bytes(200), "BadMagic")):
        file = tmp_path / "bad.gw"
        file.write_bytes(data)
        command = [sys.executable, str(TOOLS / "spec_decoder.py"), str(file)]
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 1
        assert result.stdout == ""
        assert name in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("dtype", [number for number, dtype in DTYPES.items() if dtype.size > 1])
def test_stored_values_are_kept_bit_for_bit(dtype: int) -> None:
    patterns = np.frombuffer(bytes(range(256)), DTYPES[dtype].pattern)
    _, values = decode_frame(encode(Spec.parse("none", dtype), [Part(patterns)]))
    assert np.array_equal(values, patterns)
