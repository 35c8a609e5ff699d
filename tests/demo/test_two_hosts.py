"""tools/two_hosts: what ranks find, and that it ends and cleans up whatever they do."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TWO_HOSTS = Path(__file__).resolve().parents[2] / "tools" / "two_hosts"
LINKS = ["loopback", "none", "1gbit"]


def two_hosts(*arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TWO_HOSTS), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds)


def needs(link: str) -> None:
    if link != "loopback" and two_hosts("--check", link).returncode != 0:
        pytest.skip("network namespaces may not be made here")


def left_over(process_id: int) -> bool:
    listing = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
    return f"two_hosts_{process_id}_" in listing.stdout


@pytest.mark.parametrize("link", LINKS)
def test_ranks_reach_each_other(link: str, tmp_path: Path) -> None:
    needs(link)
    program = (
        "import os, sys, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "values = torch.tensor([float(dist.get_rank() + 1)])\n"
        "dist.all_reduce(values)\n"
        "print(dist.get_world_size(), values.item(), len(os.sched_getaffinity(0)),\n"
        "      os.environ['OMP_NUM_THREADS'])\n"
        "dist.barrier()\n"
        "dist.destroy_process_group()\n"
    )
    logs = tmp_path / "logs"
    options = ["--timeout", "100", "--logs", str(logs)]
    result = two_hosts(*options, link, sys.executable, "-c", program, seconds=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "2 3.0 1 1\n"
    assert "2 3.0 1 1" in (logs / "rank1.log").read_text()


@pytest.mark.parametrize("link", LINKS)
def test_a_failing_rank_is_named(link: str) -> None:
    needs(link)
    result = two_hosts(link, "sh", "-c", "exit $((3 * RANK))")
    assert result.returncode == 1
    assert "rank 1 ended with status 3" in result.stderr


def test_time_runs_out(tmp_path: Path) -> None:
    start = time.monotonic()
    program = "echo last words >&2; exec sleep 60"
    options = ["--timeout", "1", "--logs", str(tmp_path)]
    result = two_hosts(*options, "loopback", "sh", "-c", program)
    assert time.monotonic() - start < 20
    assert result.returncode == 1
    assert "rank 0 and rank 1 still running after 1 s" in result.stderr
    assert result.stderr.count("last words") == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("link", LINKS)
def test_a_signal_leaves_nothing(link: str, number: signal.Signals, tmp_path: Path) -> None:
    needs(link)
    marks = [tmp_path / "0", tmp_path / "1"]
    made = tmp_path / "made"  # moved, so that a mark is never read half-written
    program = f"echo $$ > {made}_$RANK; mv {made}_$RANK {tmp_path}/$RANK; sleep 60"
    process = subprocess.Popen([sys.executable, str(TWO_HOSTS), link, "sh", "-c", program])
    deadline = time.monotonic() + 30
    while not all(mark.exists() for mark in marks):
        assert time.monotonic() < deadline, "the ranks did not start"
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(20) == 128 + number
    assert not left_over(process.pid)
    for mark in marks:
        assert not Path("/proc", mark.read_text().strip()).exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["1gbi", "true"], "link '1gbi'"),
        (["loopback"], "give a COMMAND"),
        (["--check", "loopback", "true"], "without one"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str) -> None:
    result = two_hosts(*arguments)
    assert result.returncode == 2
    assert words in result.stderr


def test_unknown_command() -> None:
    result = two_hosts("loopback", "no-such-command")
    assert result.returncode == 1
    assert "no-such-command: not found" in result.stderr
