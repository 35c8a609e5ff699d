"""Chooses the link and runs one codec after the other on two ranks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

HERE = Path(__file__).resolve().parent
TWO_HOSTS = HERE.parent.parent / "tools" / "two_hosts"


class RunFailed(Exception):
    """A run did not end well; what happened was printed by then."""


class Link(NamedTuple):
    name: str  # what two_hosts takes: 1gbit, none, loopback
    description: str


def try_link(name: str) -> str | None:
    """None if the link can be made here, else why not."""
    check = subprocess.run(
        [sys.executable, str(TWO_HOSTS), "--check", name],
        capture_output=True,
        text=True,
        check=False,
    )
    if check.returncode == 0:
        return None
    lines = check.stderr.strip().splitlines() or ["no reason given"]
    return lines[-1].removeprefix("two_hosts: ")


def describe(name: str) -> str:
    if name == "loopback":
        return "loopback of one host, not limited"
    if name == "none":
        return "veth pair between two network namespaces, not limited"
    rate = name.replace("gbit", " Gbit/s").replace("mbit", " Mbit/s").replace("kbit", " kbit/s")
    return f"veth pair between two network namespaces, limited to {rate} each way by tc tbf"


def choose_link(wanted: str) -> Link:
    """`auto`: 1 Gbit/s between namespaces where they may be made, else loopback."""
    if wanted != "auto":
        if (reason := try_link(wanted)) is not None:
            raise RunFailed(reason)
        return Link(wanted, describe(wanted))
    reason = try_link("1gbit")
    if reason is None:
        return Link("1gbit", describe("1gbit"))
    return Link("loopback", f"{describe('loopback')} ({reason})")


def environment() -> dict[str, str]:
    """c10d says on every connection between namespaces that it finds no host name: not that."""
    return {"TORCH_CPP_LOG_LEVEL": "ERROR"} | os.environ


def run_codec(link: Link, codec: str, options: list[str], folder: Path, timeout: float) -> Any:
    """One run on two ranks; its result as worker.py writes it. Raises RunFailed."""
    result = folder / f"{codec}.json"
    result.unlink(missing_ok=True)
    command = [sys.executable, str(TWO_HOSTS), "--timeout", str(timeout)]
    command += ["--logs", str(folder / "logs" / codec), link.name]
    command += [sys.executable, str(HERE / "worker.py"), "--codec", codec]
    command += ["--result", str(result), *options]
    with subprocess.Popen(command, env=environment()) as process:
        try:
            # two_hosts keeps the time itself; this is for the case that it does not.
            status = process.wait(timeout + 60)
        except subprocess.TimeoutExpired:
            process.kill()
            status = None
        except BaseException:
            # Ctrl-C or a signal: two_hosts ends its ranks and removes its namespaces.
            process.send_signal(signal.SIGTERM)
            process.wait()
            raise
    if status != 0:
        raise RunFailed(f"the run '{codec}' failed; logs in {folder / 'logs' / codec}")
    return json.loads(result.read_text())


def stop(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def end_on_signals() -> None:
    """SIGTERM and SIGHUP unwind as Ctrl-C does, so that nothing is left running."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
