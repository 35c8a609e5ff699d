"""Scheduled codecs under two ranks: see cases_schedule.py; and the example of docs/schedule.md."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import case_names

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "schedule.md"


@pytest.mark.parametrize("case", case_names("cases_schedule.py"))
def test_schedule(ranks, case: str) -> None:
    ranks.run("cases_schedule.py", case)


def test_the_documents_example(tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(re.search("```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)[1])
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", str(script)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    steps = re.findall(r"^(\d) (\w+)", result.stdout, re.MULTILINE)
    codecs = ["block"] * 4 + ["near_lossless"] * 4
    assert steps == [(str(step), codec) for step, codec in enumerate(codecs)]
