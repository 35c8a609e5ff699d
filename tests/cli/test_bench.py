"""gradwire bench: fields, and figures against what numpy says."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from cli_support import Cli, gradient

FIELDS = [
    "file", "dtype", "codec", "values", "ratio", "reference_ratio", "bits_per_value",
    "entropy_bits", "rel_l2", "worst_tensor_rel_l2", "max_error_over_bound", "encode_gbps",
    "decode_gbps", "memcpy_gbps", "encode_over_memcpy", "decode_over_memcpy", "threads",
]  # fmt: skip


def bench(cli: Cli, path: Path, *codecs: str, more: tuple[str, ...] = ("--only",)) -> list[dict]:
    chosen = [word for codec in codecs for word in ("--codec", codec)]
    run = cli("bench", path, *chosen, "--runs", 1, "--json", *more)
    assert run.out.count("\n") == 1
    return json.loads(run.out)["results"]


@pytest.fixture
def npy(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", gradient((300, 200)))
    return tmp_path / "x.npy"


def entropy(symbols: np.ndarray) -> float:
    """Bits that all symbols together need."""
    counts = np.unique(symbols, return_counts=True)[1]
    return float(-(counts * np.log2(counts / counts.sum())).sum())


def decoded(cli: Cli, path: Path, codec: str) -> np.ndarray:
    cli("encode", path, path.with_suffix(".gw"), "--codec", codec)
    cli("decode", path.with_suffix(".gw"), path.parent / "decoded.npy")
    return np.load(path.parent / "decoded.npy")


def test_fields(cli: Cli, npy: Path) -> None:
    none, cast = bench(cli, npy, "none", "cast:dtype=bf16")
    for row in (none, cast):
        assert list(row) == FIELDS
        assert row["file"] == str(npy) and row["dtype"] == "float32" and row["threads"] == 1
        assert row["values"] == 60000
        assert min(row["encode_gbps"], row["decode_gbps"], row["memcpy_gbps"]) > 0
        ratio = row["encode_gbps"] / row["memcpy_gbps"]
        assert row["encode_over_memcpy"] == pytest.approx(ratio)
        assert row["reference_ratio"] is row["entropy_bits"] is row["max_error_over_bound"] is None
    assert none["codec"] == "none" and 0.99 < none["ratio"] < 1 and none["rel_l2"] == 0
    assert cast["codec"] == "cast:dtype=bf16" and 1.99 < cast["ratio"] < 2
    assert cast["bits_per_value"] == pytest.approx(32 / cast["ratio"])
    x = np.load(npy).astype(np.float64)
    error = np.load(npy).astype(ml_dtypes.bfloat16).astype(np.float64) - x
    assert cast["rel_l2"] == pytest.approx(np.linalg.norm(error) / np.linalg.norm(x), rel=1e-9)
    assert cast["worst_tensor_rel_l2"] == pytest.approx(cast["rel_l2"], rel=1e-9)


def test_rivals_stand_beside_unless_only(cli: Cli, npy: Path) -> None:
    assert [r["codec"] for r in bench(cli, npy, "none", more=())] == [
        "none", "cast:dtype=bf16", "int8"]  # fmt: skip
    assert [r["codec"] for r in bench(cli, npy, "int8", more=())] == ["int8", "cast:dtype=bf16"]
    table = cli("bench", npy, "--codec", "none", "--runs", 1).out.splitlines()
    assert len(table) == 4 and table[0].split()[0] == "file"
    assert {len(line) for line in table} == {len(table[0])}


def test_min_bytes_repeats_the_input(cli: Cli, npy: Path) -> None:
    (row,) = bench(cli, npy, "cast:dtype=fp16", more=("--only", "--min-bytes", "1M"))
    assert row["values"] == 300_000  # 240 kB five times
    (once,) = bench(cli, npy, "cast:dtype=fp16")
    assert row["rel_l2"] == once["rel_l2"]


def test_block_entropy_and_bound(cli: Cli, npy: Path) -> None:
    codec = "block:bits=8,group=64,rounding=nearest"
    (row,) = bench(cli, npy, codec)
    assert 0.8 < row["max_error_over_bound"] <= 1
    x = np.pad(np.load(npy).reshape(-1), (0, 32)).reshape(-1, 64)  # 60,000 = 937.5 groups
    bits = np.abs(x).max(1).view(np.uint32)
    scales = ((bits + 0xFFFF) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    step = (scales / np.float32(127))[:, None]
    back = np.pad(decoded(cli, npy, codec).reshape(-1), (0, 32)).reshape(-1, 64)
    integers = np.rint(back.astype(np.float64) / step).reshape(-1)[:60000]
    expected = (entropy(integers) + entropy(scales)) / 60000
    assert row["entropy_bits"] == pytest.approx(expected, rel=1e-9)
    assert row["bits_per_value"] > row["entropy_bits"]


def test_step_entropy_and_bound(cli: Cli, tmp_path: Path) -> None:
    # Whole groups without zeros; RMS in float64 tells the step but for ties at powers of two.
    x = gradient((200, 256), 5)
    np.save(tmp_path / "x.npy", x)
    (row,) = bench(cli, tmp_path / "x.npy", "near_lossless")
    rms = np.sqrt((x.astype(np.float64) ** 2).mean(1))
    k = np.floor(np.log2(0.00575 * rms))
    back = decoded(cli, tmp_path / "x.npy", "near_lossless").astype(np.float64)
    q = back / np.exp2(k)[:, None]
    assert (q == np.rint(q)).mean() > 0.99  # the others: groups at a tie, or escaped values
    expected = (entropy(np.rint(q)) + entropy(k)) / x.size
    assert row["entropy_bits"] == pytest.approx(expected, rel=0.01)
    over = np.abs(back - x) / np.exp2(k)[:, None] * 2
    assert row["max_error_over_bound"] == pytest.approx(over.max(), rel=0.01)
    assert 0.9 < row["max_error_over_bound"] <= 1
    assert row["entropy_bits"] * 0.99 < row["bits_per_value"] < row["entropy_bits"] * 1.06


def test_mantissa_bound(cli: Cli, npy: Path) -> None:
    (row,) = bench(cli, npy, "near_lossless:mantissa=6")
    x = np.load(npy)
    back = decoded(cli, npy, "near_lossless:mantissa=6")
    over = np.abs(back.astype(np.float64) - x) / np.abs(x.astype(np.float64)) * 2**7
    assert row["max_error_over_bound"] == pytest.approx(np.nanmax(over), rel=1e-9)
    assert 0.9 < row["max_error_over_bound"] <= 1
    assert 7 < row["entropy_bits"] < row["bits_per_value"] < row["entropy_bits"] * 1.06


def test_lossless_reference(cli: Cli, npy: Path) -> None:
    (row,) = bench(cli, npy, "lossless")
    x = np.load(npy).reshape(-1)
    exponents = (x.view(np.uint32) >> 23) & 0xFF  # fewer than 65,536 values: one table
    reference = 32 / (entropy(exponents) / x.size + 24)
    assert row["reference_ratio"] == pytest.approx(reference, rel=1e-9)
    assert row["rel_l2"] == 0 and row["max_error_over_bound"] == 0
    assert 1.05 < row["ratio"] and row["entropy_bits"] > 24


def test_a_row_for_each_type(cli: Cli, tmp_path: Path) -> None:
    x = gradient((60, 100))
    tensors = {"a": x, "b": x.astype(ml_dtypes.bfloat16), "n": np.arange(9), "c": x[:2]}
    safetensors.numpy.save_file(tensors, tmp_path / "x.safetensors")
    rows = bench(cli, tmp_path / "x.safetensors", "none", "natural")
    assert [(r["dtype"], r["codec"], r["values"]) for r in rows] == [
        ("float32", "none", 6200), ("float32", "natural", 6200),
        ("bfloat16", "none", 6000)]  # fmt: skip
    run = cli("bench", tmp_path / "x.safetensors", "--codec", "natural", "--runs", 1, "--json")
    assert "natural left out" in run.err and "bfloat16" in run.err


def test_nothing_to_measure(cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "half.npy", gradient((40, 40)).astype(np.float16))
    np.save(tmp_path / "int.npy", np.arange(5))
    for name in ("half.npy", "int.npy"):
        run = cli_any_lines(cli, "bench", tmp_path / name, "--codec", "natural", "--json")
        assert run.returncode == 2 and run.stdout == ""


def cli_any_lines(cli: Cli, *arguments: object):
    """As cli(), for calls that print notes beside their error."""
    import subprocess

    return subprocess.run([cli.binary, *map(str, arguments)], capture_output=True, text=True)


def test_values_that_are_not_finite_or_zero(cli: Cli, tmp_path: Path) -> None:
    x = gradient((4000,))
    x[:300] = 0
    x[1000:1004] = [np.nan, np.inf, -np.inf, -0.0]
    np.save(tmp_path / "x.npy", x)
    codecs = ["lossless", "near_lossless", "near_lossless:mantissa=6", "int8", "cast:dtype=bf16"]
    for row in bench(cli, tmp_path / "x.npy", *codecs):
        assert row["rel_l2"] < 0.02, row
        assert row["max_error_over_bound"] is None or row["max_error_over_bound"] <= 1, row
