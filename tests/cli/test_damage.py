"""Damaged, truncated, foreign and empty files: one line, exit 1, no output, never a crash."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from cli_support import Cli, gradient


def refuse(cli: Cli, path: Path, *words: str) -> None:
    """decode, inspect or verify must refuse the file; verify and decode both do."""
    out = path.parent / "refused.safetensors"
    for arguments in (["verify", path], ["decode", path, out]):
        run = cli(*arguments, status=1)
        assert str(path) in run.err
        assert all(word in run.err for word in words), run
    assert run.out == ""
    assert [p.name for p in path.parent.iterdir() if "refused" in p.name] == []


@pytest.fixture(params=["none", "int8", "lossless", "near_lossless"])
def encoded(request: pytest.FixtureRequest, cli: Cli, tmp_path: Path) -> bytes:
    """Two frames: one of float32 in two blocks' worth of parts, one of integers."""
    tensors = {"w": gradient((50, 90)), "b": gradient((11,), 2), "n": np.arange(6)}
    safetensors.numpy.save_file(tensors, tmp_path / "x.safetensors")
    cli("encode", tmp_path / "x.safetensors", tmp_path / "x.gw", "--codec", request.param)
    return (tmp_path / "x.gw").read_bytes()


def test_truncation_is_named(cli: Cli, tmp_path: Path, encoded: bytes, seed: int) -> None:
    rng = random.Random(seed)
    (first,) = struct.unpack_from("<Q", encoded, 72)  # encoded_length of the first frame
    lengths = {1, 127, 128, first - 1, first, first + 1, len(encoded) - 1}
    lengths |= {rng.randrange(1, len(encoded)) for _ in range(10)}
    for length in sorted(lengths):
        path = tmp_path / "cut.gw"
        path.write_bytes(encoded[:length])
        refuse(cli, path, "Truncated")


def test_any_flipped_bit_is_noticed(cli: Cli, tmp_path: Path, encoded: bytes, seed: int) -> None:
    rng = random.Random(seed)
    places = [rng.randrange(8 * len(encoded)) for _ in range(40)]
    places += [8 * 74 + 3, 8 * 79 + 7, 0]  # a length in the middle, a huge one, the magic
    for place in places:
        damaged = bytearray(encoded)
        damaged[place // 8] ^= 1 << place % 8
        (tmp_path / "flipped.gw").write_bytes(damaged)
        refuse(cli, tmp_path / "flipped.gw", "frame ")


def test_a_file_cut_while_it_is_read(cli: Cli, tmp_path: Path) -> None:
    path, out = tmp_path / "x.raw", tmp_path / "x.gw"
    with path.open("wb") as file:
        file.truncate(1 << 29)  # no blocks on the disk; takes tenths of a second to encode
    arguments = [cli.binary, "encode", path, out, "--dtype", "float32", "--codec", "lossless"]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(tmp_path.glob("*.part")):
        pass
    os.truncate(path, 4096)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (
        1, f"gradwire: {path}: the file became shorter while it was read\n"
    )  # fmt: skip
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.raw"]


def test_bytes_after_the_end_are_noticed(cli: Cli, tmp_path: Path, encoded: bytes) -> None:
    for tail in (b"\0", encoded[:50], bytes(200), encoded):
        (tmp_path / "long.gw").write_bytes(encoded + tail)
        refuse(cli, tmp_path / "long.gw")


def test_lost_and_repeated_frames_are_noticed(cli: Cli, tmp_path: Path, encoded: bytes) -> None:
    (length,) = struct.unpack_from("<Q", encoded, 72)
    first, second = encoded[:length], encoded[length:]
    assert second[:4] == b"GWRF"
    for name, frames in {"a": first, "b": second, "c": second + first, "d": first * 2}.items():
        (tmp_path / f"{name}.gw").write_bytes(frames)
        refuse(cli, tmp_path / f"{name}.gw", "frame ")


@pytest.mark.parametrize("content", [b"", b"x", b"GWRF", b"\x7fELF" + bytes(300), bytes(4096)])
def test_foreign_files(cli: Cli, tmp_path: Path, content: bytes) -> None:
    for name in ("x.gw", "x.safetensors", "x.npy"):
        path = tmp_path / name
        path.write_bytes(content)
        refuse(cli, path)
        if not name.endswith(".gw"):
            run = cli("encode", path, tmp_path / "out.gw", "--codec", "none", status=1)
            assert str(path) in run.err
            assert not list(tmp_path.glob("out.gw*"))


def safetensors_bytes(header: object, data: bytes, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(begin: int, end: int, shape: object = (1,), dtype: object = "F32") -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


BAD_SAFETENSORS = {
    "header length beyond the file": safetensors_bytes({}, b"", 1000),
    "header length of 2^64 - 1": safetensors_bytes({}, b"", 2**64 - 1),
    "no JSON": safetensors_bytes(b"{nonsense", b""),
    "a list": safetensors_bytes([], b""),
    "deep nesting": safetensors_bytes(b"[" * 200_000, b""),
    "deep metadata": safetensors_bytes(
        b'{"__metadata__": {"a": %s%s}}' % (b"[" * 200_000, b"]" * 200_000), b""
    ),
    "bad UTF-8": safetensors_bytes(b'{"\xff\xfe": {}}', b""),
    "offset beyond the end": safetensors_bytes({"a": entry(0, 8, [2])}, bytes(4)),
    "offsets reversed": safetensors_bytes({"a": entry(4, 0)}, bytes(4)),
    "negative offset": safetensors_bytes({"a": entry(-4, 0)}, bytes(4)),
    "overlap": safetensors_bytes({"a": entry(0, 4), "b": entry(2, 6)}, bytes(6)),
    "hole": safetensors_bytes({"a": entry(0, 4), "b": entry(8, 12)}, bytes(12)),
    "data that belongs to nobody": safetensors_bytes({"a": entry(0, 4)}, bytes(5)),
    "shape does not fit": safetensors_bytes({"a": entry(0, 4, [2])}, bytes(4)),
    "shape overflows": safetensors_bytes({"a": entry(0, 4, [2**62, 4, 2])}, bytes(4)),
    "shape of floats": safetensors_bytes({"a": entry(0, 4, [1.0])}, bytes(4)),
    "shape is text": safetensors_bytes({"a": entry(0, 4, "1")}, bytes(4)),
    "unknown dtype": safetensors_bytes({"a": entry(0, 4, [1], "F4X")}, bytes(4)),
    "dtype is a number": safetensors_bytes({"a": entry(0, 4, [1], 32)}, bytes(4)),
    "entry is a number": safetensors_bytes({"a": 1}, b""),
    "metadata is a number": safetensors_bytes({"__metadata__": 1}, b""),
    "a name twice": safetensors_bytes(
        b'{"a":%s,"a":%s}' % (json.dumps(entry(0, 4)).encode(), json.dumps(entry(0, 4)).encode()),
        bytes(4),
    ),
}


@pytest.mark.parametrize("name", BAD_SAFETENSORS)
def test_bad_safetensors(cli: Cli, tmp_path: Path, name: str) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(BAD_SAFETENSORS[name])
    run = cli("encode", path, tmp_path / "out.gw", "--codec", "none", status=1)
    assert str(path) in run.err
    assert not list(tmp_path.glob("out.gw*"))


def npy_bytes(text: str, data: bytes, version: int = 1, length: int | None = None) -> bytes:
    size = len(text) if length is None else length
    return (b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", size)
            + text.encode() + data)  # fmt: skip


def npy_text(descr: str = "'<f4'", order: str = "False", shape: str = "(1,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


BAD_NPY = {
    "version 4": npy_bytes(npy_text(), bytes(4), 4),
    "header beyond the file": npy_bytes(npy_text(), b"", 2, 2**32 - 1),
    "cut inside the header": npy_bytes(npy_text(), b"")[:40],
    "cut inside the length": npy_bytes(npy_text(), b"")[:9],
    "too little data": npy_bytes(npy_text(shape="(2,)"), bytes(7)),
    "too much data": npy_bytes(npy_text(), bytes(5)),
    "big-endian": npy_bytes(npy_text("'>f4'"), bytes(4)),
    "complex": npy_bytes(npy_text("'<c8'"), bytes(8)),
    "objects": npy_bytes(npy_text("'|O'"), bytes(8)),
    "record": npy_bytes(npy_text("[('a', '<f4')]"), bytes(4)),
    "shape overflows": npy_bytes(npy_text(shape="(4611686018427387904, 4, 4)"), bytes(4)),
    "shape is too large for a number": npy_bytes(npy_text(shape=f"({2**70},)"), bytes(4)),
    "negative shape": npy_bytes(npy_text(shape="(-1,)"), bytes(4)),
    "no shape": npy_bytes("{'descr': '<f4', 'fortran_order': False}\n", bytes(4)),
    "a key twice": npy_bytes(npy_text().replace("}", "'shape': (1,)}"), bytes(4)),
    "something behind": npy_bytes(npy_text().strip() + " evil()\n", bytes(4)),
    "not closed": npy_bytes(npy_text().replace("}", ""), bytes(4)),
}


@pytest.mark.parametrize("name", BAD_NPY)
def test_bad_npy(cli: Cli, tmp_path: Path, name: str) -> None:
    path = tmp_path / "bad.npy"
    path.write_bytes(BAD_NPY[name])
    run = cli("encode", path, tmp_path / "out.gw", "--codec", "none", status=1)
    assert str(path) in run.err
    assert not list(tmp_path.glob("out.gw*"))


def test_raw_of_broken_size(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(7))
    arguments = ["encode", tmp_path / "x.bin", tmp_path / "x.gw", "--codec", "none"]
    assert "7 bytes" in cli(*arguments, "--dtype", "float32", status=1).err


def test_a_frame_whose_metadata_lies(cli: Cli, tmp_path: Path) -> None:
    core = pytest.importorskip("gradwire._core")
    good = {"format": "npy", "tensors": [{"name": "data", "shape": [2, 2]}]}
    lies = {
        "wrong count": good | {"tensors": [{"name": "data", "shape": [3]}]},
        "two tensors": good | {"tensors": good["tensors"] * 2},
        "no list": good | {"tensors": 3},
        "entry is a number": good | {"tensors": [3]},
        "huge shape": good | {"tensors": [{"name": "data", "shape": [2**63, 4]}]},
        "text in shape": good | {"tensors": [{"name": "data", "shape": ["2", 2]}]},
        "header of another shape": good | {"header": npy_text(shape="(4,)"), "npy_version": 1},
        "header is a number": good | {"header": 3},
        "bad version": good | {"header": npy_text(shape="(2, 2)"), "npy_version": 9},
        "safetensors header": good | {"format": "safetensors", "header": "{}"},
        "unknown format": good | {"format": "tar"},
        "type of another size": good | {"tensors": [good["tensors"][0] | {"dtype": "<f8"}]},
        "type of objects": good | {"tensors": [good["tensors"][0] | {"dtype": "|O"}]},
        "type that ends the text": good
        | {"tensors": [good["tensors"][0] | {"dtype": "<f4', 'shape': (9,), 'x': '"}]},
    }
    values = [np.zeros(16, np.uint8)]
    path = tmp_path / "x.gw"
    path.write_bytes(core.encode_frame(values, "float32", "none", json.dumps(good)))
    cli("decode", path, tmp_path / "y.npy")
    for name, metadata in lies.items():
        path.write_bytes(core.encode_frame(values, "float32", "none", json.dumps(metadata)))
        run = cli("decode", path, tmp_path / "z", status=1)
        assert str(path) in run.err, name
    deep = "[" * 200_000 + "]" * 200_000
    for text in (
        "[]",
        "nonsense",
        "[" * 100_000,
        '{"frame": {}, "frames": []}',
        f'{{"frame": {deep}}}',
        f'{{"tensors": {deep}}}',
        f'{{"format": "safetensors", "__metadata__": {deep}}}',
    ):
        path.write_bytes(core.encode_frame(values, "float32", "none", text))
        cli("decode", path, tmp_path / "z", status=1)
        cli("inspect", path, status=1)
    assert not list(tmp_path.glob("z*"))
    steering = json.dumps({"format": "\x1b[2J", "tensors": [{"name": "\x1b[2J", "shape": [4]}]})
    path.write_bytes(core.encode_frame(values, "float32", "none", steering))
    assert "\x1b" not in cli("inspect", path).out
