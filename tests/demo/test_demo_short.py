"""The short run of the demo: what its report says is there and plausible."""

from __future__ import annotations

import base64
import html
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = [sys.executable, str(ROOT / "examples" / "demo" / "run.py")]
CODECS = ["none", "bf16", "int8", "int4", "lossless", "near_lossless", "fine", "unbiased",
          "coarse"]  # fmt: skip
# Least and most ratio, and most relative L2 error of the mean of two ranks.
PLAUSIBLE = {
    "none": (1.0, 1.0, 1e-7),
    "bf16": (2.0, 2.0, 4e-3),
    "int8": (3.8, 3.9, 2e-2),
    "int4": (7.6, 7.8, 4e-1),
    "lossless": (1.1, 1.4, 1e-7),
    "near_lossless": (3.05, 3.6, 2.4e-3),
    "fine": (4.0, 5.2, 2.5e-2),
    "unbiased": (5.3, 7.5, 1e-1),
    "coarse": (11.0, 18.0, 6e-1),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo")
    result = subprocess.run(
        [*RUN, "--short", "--out", str(out)], capture_output=True, text=True, timeout=420
    )
    assert result.returncode == 0, result.stdout + result.stderr
    for codec in CODECS:
        assert re.search(rf"^{codec} .*identical$", result.stdout, re.MULTILINE), result.stdout
        assert re.search(rf": {codec} +step +12/12 ", result.stdout), result.stdout
    return out


@pytest.fixture(scope="module")
def report(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "report.json").read_text())


def test_head(report: dict[str, Any]) -> None:
    assert report["link"] in ("1gbit", "loopback")
    assert report["dataset"] in ("Fashion-MNIST", "scikit-learn digits")
    assert report["parameters"] >= 5_000_000
    assert report["ranks"] == 2
    assert [run["codec"] for run in report["runs"]] == CODECS


@pytest.mark.parametrize("codec", CODECS)
def test_run(report: dict[str, Any], codec: str) -> None:
    run = report["runs"][CODECS.index(codec)]
    least, most, error = PLAUSIBLE[codec]
    assert run["replicas_identical"] is True
    assert least <= run["ratio"] <= most
    assert 0 < run["rel_l2"] <= error
    assert run["bytes_per_step"] == pytest.approx(4 * report["parameters"] / run["ratio"], rel=1e-3)
    assert run["ms_per_step"] > 0
    assert 0.3 < run["accuracy"] <= 1  # guessing gives 0.1
    assert 0 < run["loss"] < math.log(10)
    assert len(run["loss_curve"]) == len(run["seconds_curve"]) == run["steps"] == 12
    assert all(map(math.isfinite, run["loss_curve"]))


def test_runs_are_the_same_training(report: dict[str, Any]) -> None:
    none = report["runs"][0]
    for run in report["runs"]:
        # The first loss is from before any exchange.
        assert run["loss_curve"][0] == none["loss_curve"][0]
        assert abs(run["accuracy"] - none["accuracy"]) < 0.1


def test_device_counted_what_was_sent(report: dict[str, Any]) -> None:
    if report["link"] == "loopback":
        pytest.skip("on loopback the device counts both ranks")
    for run in report["runs"]:
        overhead = run["link_bytes_per_step"] / run["bytes_per_step"]
        assert 1.0 < overhead < 1.1, run["codec"]


def test_page(folder: Path, report: dict[str, Any]) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    text = html.unescape(page)
    assert report["dataset"] in text and report["link_description"] in text
    pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert len(pictures) == 4
    for picture in pictures:
        assert ElementTree.fromstring(base64.b64decode(picture)).tag.endswith("svg")
    assert not re.search(r'(?:src|href)="(?!data:)', page), "not self-contained"


def test_wrong_usage() -> None:
    for options in (["--codec", "zip"], ["--steps", "3"]):
        result = subprocess.run([*RUN, *options], capture_output=True, text=True, timeout=60)
        assert result.returncode == 2, result.stderr
        assert options[1] in result.stderr


def test_failing_rank_ends_the_demo(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()  # there, but without any image
    command = [*RUN, "--short", "--link", "loopback", "--codec", "none", "--data", str(data)]
    result = subprocess.run(
        [*command, "--out", str(tmp_path / "out")], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 1
    assert "the run 'none' failed" in result.stderr
    assert "train-images-idx3-ubyte.gz" in result.stderr
