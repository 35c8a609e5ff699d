"""Exit statuses, help, JSON, files that must not be touched."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from cli_support import Cli, gradient


@pytest.fixture
def npy(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", gradient((30, 40)))
    return tmp_path / "x.npy"


@pytest.fixture
def gw(cli: Cli, tmp_path: Path, npy: Path) -> Path:
    cli("encode", npy, tmp_path / "x.gw", "--codec", "int8")
    return tmp_path / "x.gw"


def test_version_and_help(cli: Cli) -> None:
    assert cli("--version").out.startswith("gradwire 0.")
    text = cli("--help").out
    for verb in ("encode", "decode", "inspect", "verify", "codecs", "bench"):
        assert verb in text
        assert "--help" in cli(verb, "--help").out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["encode"],
        ["encode", "IN"],
        ["encode", "IN", "OUT"],
        ["encode", "IN", "OUT", "--codec", "nonsense"],
        ["encode", "IN", "OUT", "--codec", "cast:nonsense=1"],
        ["encode", "IN", "OUT", "--codec", "block:bits=5"],
        ["encode", "IN", "OUT", "--codec", "none", "--fallback", "nonsense"],
        ["encode", "IN", "OUT", "--codec", "none", "--nonsense"],
        ["encode", "IN", "OUT", "--codec", "none", "--dtype", "nonsense"],
        ["encode", "IN", "OUT", "--codec", "none", "--dtype", "float64"],
        ["encode", "IN", "IN", "--codec", "none"],
        ["decode", "IN"],
        ["inspect"],
        ["verify", "a", "b"],
        ["bench", "IN"],
        ["bench", "--codec", "none"],
        ["bench", "IN", "--codec", "nonsense"],
        ["bench", "IN", "--codec", "none", "--runs", "0"],
        ["bench", "IN", "--codec", "none", "--threads", "257"],
        ["encode", "IN", "OUT", "--codec", "none", "--threads", "-1"],
        ["encode", "IN", "OUT", "--codec", "none", "--frame-bytes", "-1"],
        ["encode", "IN", "OUT", "--codec", "none", "--frame-bytes", "many"],
        ["bench", "IN", "--codec", "none", "--min-bytes", "much"],
        ["bench", "IN", "--codec", "none", "--min-bytes", "-1"],
    ],
)
def test_wrong_usage_is_status_2(
    cli: Cli, tmp_path: Path, npy: Path, arguments: list[str]
) -> None:
    before = npy.read_bytes()
    files = {"IN": npy, "OUT": tmp_path / "out.gw"}
    cli(*[files.get(argument, argument) for argument in arguments], status=2)
    assert npy.read_bytes() == before
    assert not list(tmp_path.glob("out.gw*"))


def test_messages_list_what_is_valid(cli: Cli, tmp_path: Path, npy: Path) -> None:
    def message(*more: str) -> str:
        return cli("encode", npy, tmp_path / "out.gw", *more, status=2).err

    names = [codec["name"] for codec in json.loads(cli("codecs", "--json").out)["results"]]
    assert len(names) >= 5
    assert all(name in message("--codec", "nonsense") for name in names)
    assert "dtype" in message("--codec", "cast:nonsense=1")
    assert "bfloat16" in message("--codec", "none", "--dtype", "nonsense")


@pytest.mark.parametrize(
    "arguments",
    [["inspect", "F"], ["verify", "F"], ["decode", "F", "OUT"],
     ["bench", "F.npy", "--codec", "none"],
     ["encode", "F.npy", "OUT", "--codec", "none"],
     ["encode", "F", "OUT", "--codec", "none", "--dtype", "float32"]],
)  # fmt: skip
def test_missing_file_is_status_1(cli: Cli, tmp_path: Path, arguments: list[str]) -> None:
    files = {"F": tmp_path / "gone", "F.npy": tmp_path / "gone.npy", "OUT": tmp_path / "out"}
    run = cli(*[files.get(argument, argument) for argument in arguments], status=1)
    assert "gone" in run.err and "No such file" in run.err
    assert not (tmp_path / "out").exists()


def test_a_directory_is_no_file(cli: Cli, tmp_path: Path, npy: Path, gw: Path) -> None:
    assert "directory" in cli("verify", tmp_path, status=1).err
    (tmp_path / "folder").mkdir()
    cli("decode", gw, tmp_path / "folder", status=1)
    cli("decode", gw, tmp_path / "missing" / "out.npy", status=1)
    cli("encode", npy, tmp_path / "folder", "--codec", "none", status=1)


def test_in_is_never_overwritten(cli: Cli, tmp_path: Path, npy: Path, gw: Path) -> None:
    (tmp_path / "link.npy").symlink_to(npy)
    os.link(gw, tmp_path / "hard.gw")
    for arguments in (["encode", npy, tmp_path / "link.npy", "--codec", "none"],
                      ["encode", tmp_path / "link.npy", npy, "--codec", "none"],
                      ["decode", gw, gw], ["decode", gw, tmp_path / "hard.gw"]):  # fmt: skip
        before = [npy.read_bytes(), gw.read_bytes()]
        assert "same file" in cli(*arguments, status=2).err
        assert [npy.read_bytes(), gw.read_bytes()] == before


def test_an_older_output_survives_a_failure(cli: Cli, tmp_path: Path, gw: Path) -> None:
    out = tmp_path / "out.npy"
    cli("decode", gw, out)
    good = out.read_bytes()
    damaged = bytearray(gw.read_bytes())
    damaged[-1] ^= 1  # in the last block: found only when it is decoded
    (tmp_path / "damaged.gw").write_bytes(damaged)
    assert "BlockChecksum" in cli("decode", tmp_path / "damaged.gw", out, status=1).err
    assert out.read_bytes() == good
    assert not list(tmp_path.glob("*.part"))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 MB of zeros that take no space on the disk."""
    path = tmp_path_factory.mktemp("large") / "x.bin"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    return path


def test_a_full_disk_leaves_nothing(cli: Cli, tmp_path: Path, large: Path) -> None:
    done = subprocess.run(
        [cli.binary, "encode", large, tmp_path / "out.gw", "--codec", "none", "--dtype", "int8"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done
    assert "out.gw: cannot write" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_leaves_nothing(
    cli: Cli, tmp_path: Path, large: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [cli.binary, "encode", large, tmp_path / "out.gw", "--codec", "lossless",
         "--dtype", "float64"], stdout=subprocess.DEVNULL)  # fmt: skip
    while not list(tmp_path.iterdir()):
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(number)
    assert process.wait(timeout=60) in (-number, 0)  # 0: it was done before the signal came
    left = [path.name for path in tmp_path.iterdir()]
    assert left == ([] if process.returncode else ["out.gw"])


def test_names_cannot_steer_the_terminal(cli: Cli, tmp_path: Path) -> None:
    safetensors.numpy.save_file({"a\x1b[2Jb": np.zeros(2)}, tmp_path / "x.safetensors")
    cli("encode", tmp_path / "x.safetensors", tmp_path / "x.gw", "--codec", "none")
    assert "\x1b" not in cli("inspect", tmp_path / "x.gw").out
    (frame,) = json.loads(cli("inspect", tmp_path / "x.gw", "--json").out)["results"]
    assert frame["parts"][0]["name"] == "a\x1b[2Jb"


def test_output_through_a_link_replaces_its_target(cli: Cli, tmp_path: Path, gw: Path) -> None:
    (tmp_path / "target.npy").write_bytes(b"old")
    (tmp_path / "link.npy").symlink_to(tmp_path / "target.npy")
    cli("decode", gw, tmp_path / "link.npy")
    assert (tmp_path / "link.npy").is_symlink()
    assert np.load(tmp_path / "target.npy").shape == (30, 40)


def test_formats_are_not_mixed_up(cli: Cli, tmp_path: Path, gw: Path) -> None:
    cli("decode", gw, tmp_path / "y.safetensors", status=2)
    cli("decode", gw, tmp_path / "y.raw")
    assert (tmp_path / "y.raw").stat().st_size == 4 * 30 * 40
    cli("encode", tmp_path / "y.raw", tmp_path / "z.gw", "--codec", "none", status=2)  # no dtype


def test_a_pipe_can_be_read(cli: Cli, gw: Path) -> None:
    with gw.open("rb") as file:
        done = subprocess.run(
            f"cat | {cli.binary} verify /dev/stdin", shell=True, stdin=file, capture_output=True
        )
    assert done.returncode == 0, done


def test_progress_goes_to_stderr(cli: Cli, tmp_path: Path, npy: Path) -> None:
    arguments = ["encode", npy, tmp_path / "y.gw", "--codec", "none"]
    assert cli(*arguments).err == ""
    run = cli(*arguments, "--progress", "--json")
    assert "100 %" in run.err
    (result,) = json.loads(run.out)["results"]
    assert result["bytes"] == 4 * 30 * 40
    assert result["encoded_bytes"] == (tmp_path / "y.gw").stat().st_size
    assert result["ratio"] == result["bytes"] / result["encoded_bytes"]


def test_inspect_shows_header_parts_and_blocks(cli: Cli, gw: Path) -> None:
    (frame,) = json.loads(cli("inspect", gw, "--json").out)["results"]
    assert frame["codec"] == "block:bits=8" or frame["codec"].startswith("block:bits=8,")
    assert frame["dtype"] == "float32" and frame["values"] == 1200 and frame["version"] == 0
    assert frame["parts"] == [{"name": "data", "shape": [30, 40], "values": 1200}]
    assert [(block["kind"], block["values"]) for block in frame["blocks"]] == [("fixed", 1200)]
    assert frame["encoded_length"] == gw.stat().st_size
    assert frame["header_length"] + frame["blocks"][0]["length"] == frame["encoded_length"]
    assert frame["op"] == "none" and frame["segment_count"] == 1
    text = cli("inspect", gw, "--blocks").out
    assert "float32" in text and "[30, 40]" in text and "fixed" in text


def test_verify_reports_as_json(cli: Cli, tmp_path: Path, gw: Path) -> None:
    (result,) = json.loads(cli("verify", gw, "--json").out)["results"]
    size = gw.stat().st_size
    assert result == {"file": str(gw), "ok": True, "frames": 1, "values": 1200, "bytes": size,
                      "error": None}  # fmt: skip
    (tmp_path / "bad.gw").write_bytes(gw.read_bytes()[:-1])
    run = cli("verify", tmp_path / "bad.gw", "--json", status=1)
    (result,) = json.loads(run.out)["results"]
    assert not result["ok"] and "Truncated" in result["error"]


def test_codecs_names_the_kernels_in_use(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADWIRE_TARGET", "portable")
    results = json.loads(cli("codecs", "--json").out)["results"]
    assert {result["target"] for result in results} == {"portable"}


def test_codecs_lists_the_registry(cli: Cli) -> None:
    results = json.loads(cli("codecs", "--json").out)["results"]
    assert {"none", "cast", "block", "lossless", "near_lossless"} <= {r["name"] for r in results}
    keys = {"name", "id", "summary", "parameters", "bound", "dtypes", "examples", "target"}
    text = cli("codecs").out
    for result in results:
        assert set(result) == keys
        assert result["name"] in text
        assert result["examples"] and "float32" in result["dtypes"]
