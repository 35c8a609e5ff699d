#!/usr/bin/env python3
"""Runs a program that can take long and keeps what it found in reliability/ledger.jsonl.

Usage: ledger.py [--ledger FILE] -- PROGRAM ARGUMENT...

The program is given `--result FILE` in addition and appends a line of JSON for each thing that it
did: kind, promise, name, count, planned, unit, seed, seconds, target, result, finding. Each line
gets the date, the commit of the checkout when the program began (with `+` if src, include or tests
differed from it) and the machine's processor, and goes to the ledger, findings included. Exit
status: that of the program.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEDGER = ROOT / "reliability" / "ledger.jsonl"


def git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def commit() -> str:
    """Short name of HEAD; `+` after it where what is built from differs."""
    name = git("rev-parse", "--short=10", "HEAD") or "unknown"
    return name + ("+" if git("status", "--porcelain", "--", "src", "include", "tests") else "")


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def stamp() -> dict[str, str]:
    """What every line of one run shares; to be taken before the run."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"date": now.strftime("%Y-%m-%dT%H:%MZ"), "commit": commit(), "machine": processor()}


def append(records: list[dict[str, object]], shared: dict[str, str], ledger: Path = LEDGER) -> None:
    ledger.parent.mkdir(parents=True, exist_ok=True)
    with ledger.open("a", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(shared | record) + "\n")


def read(ledger: Path = LEDGER) -> list[dict[str, object]]:
    lines = ledger.read_text(encoding="utf-8").splitlines() if ledger.is_file() else []
    return [json.loads(line) for line in lines if line]


def run(program: list[str], ledger: Path = LEDGER) -> int:
    """Runs it; what it recorded is kept whatever its end was."""
    shared = stamp()
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.jsonl"
        try:
            status = subprocess.run([*program, "--result", str(result)], check=False).returncode
        finally:
            if result.is_file():
                append(read(result), shared, ledger)
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs a program and keeps what it found.")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()
    return run(arguments.program, arguments.ledger)


if __name__ == "__main__":
    sys.exit(main())
