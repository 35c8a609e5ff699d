"""encode and decode give the file back: equal bytes where the codec is exact, else its bound."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from cli_support import Cli, gradient, mixed_tensors

EXACT = ["none", "lossless"]
LOSSY = ["cast:dtype=bf16", "cast:dtype=fp16", "int8", "int4", "block:bits=6,group=64",
         "near_lossless", "near_lossless:mantissa=6", "near_lossless:step=1,group=64"]  # fmt: skip


def write_safetensors(path: Path, entries: dict, data: bytes, padding: str = "") -> Path:
    header = json.dumps(entries).encode() + padding.encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


@pytest.mark.parametrize("codec", EXACT)
def test_safetensors_of_all_types_comes_back_equal(
    cli: Cli, tmp_path: Path, safetensors_file: Path, codec: str
) -> None:
    cli("encode", safetensors_file, tmp_path / "x.gw", "--codec", codec)
    cli("decode", tmp_path / "x.gw", tmp_path / "back.safetensors")
    assert (tmp_path / "back.safetensors").read_bytes() == safetensors_file.read_bytes()
    cli("verify", tmp_path / "x.gw")


def test_safetensors_written_by_hand_comes_back_equal(cli: Cli, tmp_path: Path) -> None:
    entries = {
        "z": {"shape": [2], "dtype": "C64", "data_offsets": [4, 20]},
        "a": {"dtype": "F8_E8M0", "shape": [2, 2], "data_offsets": [0, 4]},
        "none": {"dtype": "F32", "shape": [3, 0], "data_offsets": [20, 20]},
        "f8": {"dtype": "F8_E4M3", "shape": [], "data_offsets": [20, 21]},
    }
    path = write_safetensors(tmp_path / "x.safetensors", entries, bytes(range(21)), " \n ")
    cli("encode", path, tmp_path / "x.gw", "--codec", "none")
    cli("decode", tmp_path / "x.gw", tmp_path / "y.safetensors")
    assert (tmp_path / "y.safetensors").read_bytes() == path.read_bytes()


def test_safetensors_without_tensors(cli: Cli, tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "x.safetensors", {"__metadata__": {"a": "b"}}, b"")
    cli("encode", path, tmp_path / "x.gw", "--codec", "near_lossless")
    cli("decode", tmp_path / "x.gw", tmp_path / "y.safetensors")
    assert (tmp_path / "y.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("codec", EXACT)
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<f2", "<i8", "|b1"])
def test_npy_comes_back_equal(
    cli: Cli, tmp_path: Path, codec: str, version: tuple[int, int], order: str, dtype: str
) -> None:
    array = np.asarray(gradient((12, 7, 3)) * 1000, dtype=dtype, order=order)
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version=version)
    cli("encode", path, tmp_path / "x.gw", "--codec", codec)
    cli("decode", tmp_path / "x.gw", tmp_path / "y.npy")
    assert (tmp_path / "y.npy").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("shape", [(), (1,), (0,), (5, 0, 2), (1, 1, 1)])
def test_npy_of_odd_shapes(cli: Cli, tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "x.npy", np.full(shape, 1.5, np.float32))
    cli("encode", tmp_path / "x.npy", tmp_path / "x.gw", "--codec", "lossless")
    cli("decode", tmp_path / "x.gw", tmp_path / "y.npy")
    assert (tmp_path / "y.npy").read_bytes() == (tmp_path / "x.npy").read_bytes()


def test_npy_with_a_type_that_numpy_cannot_name(cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", gradient((300, 3)).astype(ml_dtypes.bfloat16))
    refused = cli("encode", tmp_path / "x.npy", tmp_path / "x.gw", "--codec", "none", status=2)
    assert "--dtype bfloat16" in refused.err
    cli("encode", tmp_path / "x.npy", tmp_path / "x.gw", "--codec", "lossless",
        "--dtype", "bfloat16")  # fmt: skip
    cli("decode", tmp_path / "x.gw", tmp_path / "y.npy")
    assert (tmp_path / "y.npy").read_bytes() == (tmp_path / "x.npy").read_bytes()
    shown = json.loads(cli("inspect", tmp_path / "x.gw", "--json").out)["results"]
    assert [frame["dtype"] for frame in shown] == ["bfloat16"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "uint16", "float8_e5m2"])
def test_raw_comes_back_equal(cli: Cli, tmp_path: Path, dtype: str, seed: int) -> None:
    path = tmp_path / "x.f32"
    path.write_bytes(np.random.default_rng(seed).bytes(8 * 4999))
    cli("encode", path, tmp_path / "x.gw", "--codec", "lossless", "--dtype", dtype)
    cli("decode", tmp_path / "x.gw", tmp_path / "y")
    assert (tmp_path / "y").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("codec", LOSSY)
def test_lossy_codecs_keep_shapes_and_stay_near(cli: Cli, tmp_path: Path, codec: str) -> None:
    tensors = {"w": gradient((64, 512)), "b": gradient((7,), 3), "steps": np.arange(4)}
    path = tmp_path / "x.safetensors"
    safetensors.numpy.save_file(tensors, path)
    cli("encode", path, tmp_path / "x.gw", "--codec", codec)
    assert (tmp_path / "x.gw").stat().st_size < path.stat().st_size / 1.9
    cli("decode", tmp_path / "x.gw", tmp_path / "y.safetensors")
    back = safetensors.numpy.load_file(tmp_path / "y.safetensors")
    assert {n: a.shape for n, a in back.items()} == {n: a.shape for n, a in tensors.items()}
    np.testing.assert_array_equal(back["steps"], tensors["steps"])
    relative = np.linalg.norm(back["w"] - tensors["w"]) / np.linalg.norm(tensors["w"])
    coarse = "int4" in codec or "step=1" in codec or "bits=6" in codec
    assert 0 < relative < (0.5 if coarse else 0.02)


def test_non_finite_values_stay(cli: Cli, tmp_path: Path) -> None:
    array = gradient((5000,))
    array[[3, 700, 4999]] = [np.nan, np.inf, -np.inf]
    np.save(tmp_path / "x.npy", array)
    for codec in LOSSY:
        cli("encode", tmp_path / "x.npy", tmp_path / "x.gw", "--codec", codec)
        cli("decode", tmp_path / "x.gw", tmp_path / "y.npy")
        back = np.load(tmp_path / "y.npy")
        np.testing.assert_array_equal(np.isnan(back), np.isnan(array), codec)
        np.testing.assert_array_equal(back[np.isinf(array)], array[np.isinf(array)], codec)


def test_values_alone(cli: Cli, tmp_path: Path, safetensors_file: Path) -> None:
    cli("encode", safetensors_file, tmp_path / "x.gw", "--codec", "none")
    cli("decode", tmp_path / "x.gw", tmp_path / "y.raw")
    whole = safetensors_file.read_bytes()
    (header,) = struct.unpack("<Q", whole[:8])
    assert (tmp_path / "y.raw").read_bytes() == whole[8 + header :]


def test_equal_input_gives_equal_bytes(cli: Cli, tmp_path: Path, safetensors_file: Path) -> None:
    more = ["--codec", "int8", "--fallback", "lossless"]
    for name in ("a.gw", "b.gw"):
        cli("encode", safetensors_file, tmp_path / name, *more)
    assert (tmp_path / "a.gw").read_bytes() == (tmp_path / "b.gw").read_bytes()


def test_threads_change_nothing(cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", gradient((1300, 1000)))
    for threads in (1, 3):
        gw, back = tmp_path / f"{threads}.gw", tmp_path / f"{threads}.npy"
        cli("encode", tmp_path / "x.npy", gw, "--codec", "near_lossless", "--threads", threads)
        cli("decode", tmp_path / "1.gw", back, "--threads", threads)
    assert (tmp_path / "1.gw").read_bytes() == (tmp_path / "3.gw").read_bytes()
    assert (tmp_path / "1.npy").read_bytes() == (tmp_path / "3.npy").read_bytes()
    run = cli("bench", tmp_path / "x.npy", "--codec", "lossless", "--runs", "1", "--threads", "2",
              "--json")  # fmt: skip
    assert {row["threads"] for row in json.loads(run.out)["results"]} == {2}


def test_fallback_is_needed_and_named(cli: Cli, tmp_path: Path, safetensors_file: Path) -> None:
    arguments = ["encode", safetensors_file, tmp_path / "x.gw", "--codec", "natural"]
    refused = cli(*arguments, status=2)
    named = [name for name in ("half", "bf16", "double") if f"tensor {name} is " in refused.err]
    assert len(named) == 1 and "--fallback" in refused.err
    assert not (tmp_path / "x.gw").exists()
    cli(*arguments, "--fallback", "lossless")
    cli("decode", tmp_path / "x.gw", tmp_path / "y.safetensors")
    back = safetensors.numpy.load_file(tmp_path / "y.safetensors")
    for name, tensor in mixed_tensors().items():
        if tensor.dtype != np.float32:
            assert back[name].tobytes() == tensor.tobytes(), name


def test_python_reads_files_and_writes_them(cli: Cli, tmp_path: Path) -> None:
    gradwire = pytest.importorskip("gradwire")
    tensors = {"w": gradient((40, 30)), "n": np.arange(5), "h": np.ones(3, np.float16)}
    safetensors.numpy.save_file(tensors, tmp_path / "x.safetensors")
    cli("encode", tmp_path / "x.safetensors", tmp_path / "x.gw", "--codec", "lossless")
    back = gradwire.decode((tmp_path / "x.gw").read_bytes())
    assert {name: array.tobytes() for name, array in back.items()} == {
        name: array.tobytes() for name, array in tensors.items()
    }
    (tmp_path / "y.gw").write_bytes(gradwire.encode(tensors))
    cli("verify", tmp_path / "y.gw")
    cli("decode", tmp_path / "y.gw", tmp_path / "y.safetensors")
    again = safetensors.numpy.load_file(tmp_path / "y.safetensors")
    assert all(again[name].tobytes() == array.tobytes() for name, array in tensors.items())
    for array in (np.asfortranarray(tensors["w"]), np.float32(3)):
        (tmp_path / "z.gw").write_bytes(gradwire.encode(array))
        cli("decode", tmp_path / "z.gw", tmp_path / "z.npy")
        np.save(tmp_path / "expected.npy", array)
        assert (tmp_path / "z.npy").read_bytes() == (tmp_path / "expected.npy").read_bytes()
