#!/usr/bin/env python3
"""Runs a measurement and keeps what it printed, with machine and commit, for the tables of README.

Usage: record.py NAME PROGRAM ARGUMENT...      for instance:
       record.py gradients .venv/bin/gradwire bench FILE... --codec int8 --json

The program prints one JSON object with "results". bench/results/NAME.json gets it together with
date, commit, processor, load average at the start and the command (files without their folders).
Exit status: that of the program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import ledger  # noqa: E402

RESULTS = ROOT / "bench" / "results"


def main() -> int:
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    name, *command = sys.argv[1:]
    shared = ledger.stamp() | {
        "load_average": round(os.getloadavg()[0], 2),
        "command": " ".join(Path(word).name if os.path.exists(word) else word for word in command),
    }
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return done.returncode
    content = json.loads(done.stdout)
    for result in content["results"]:
        result["file"] = Path(result["file"]).name
    text = json.dumps(shared | content, indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
