"""The small examples run as their first lines say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"


def test_ddp_minimal() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    command += [str(ROOT / "examples" / "ddp_minimal.py")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    found = re.search(r"^ratio (\S+), error of the codec (\S+)$", result.stdout, re.MULTILINE)
    assert found, result.stdout
    assert float(found[1]) > 2.5
    assert 0 < float(found[2]) < 1.66e-3


@pytest.mark.skipif(not (RELEASE / "libgradwire.a").exists(), reason="no release build")
def test_cpp_all_reduce(tmp_path: Path) -> None:
    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, timeout=240)

    for command in (
        ["cmake", "--install", str(RELEASE), "--prefix", str(tmp_path / "prefix")],
        ["cmake", "-S", str(ROOT / "examples" / "cpp_all_reduce"), "-B", str(tmp_path / "build"),
         f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}", "-DCMAKE_BUILD_TYPE=Release"],
        ["cmake", "--build", str(tmp_path / "build")],
    ):  # fmt: skip
        result = run(*command)
        assert result.returncode == 0, result.stdout + result.stderr
    program = str(tmp_path / "build" / "cpp_all_reduce")
    near = run(program)
    assert near.returncode == 0, near.stderr
    words = r"near_lossless\S*: ratio 3\.\d+, error \S+, all 4 ranks identical$"
    assert re.match(words, near.stdout)
    wrong = run(program, "zip")
    assert wrong.returncode == 2
    assert "zip" in wrong.stderr
