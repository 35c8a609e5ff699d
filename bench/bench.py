#!/usr/bin/env python3
"""Ratio, error and speed of codecs on files: `make bench`.

Usage: bench.py FILE... --codec SPEC... [options of `gradwire bench`]

Runs `gradwire bench`, pinned to one core, prints its figures and writes
out/bench/report.{json,md,png}. The JSON names machine, commit and load; where other work runs
(load not near 0) speeds say little. Exit status: that of `gradwire bench`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import ledger  # noqa: E402

OUT = ROOT / "out" / "bench"


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 2
    load = os.getloadavg()[0]
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    command = [str(ROOT / ".venv" / "bin" / "gradwire"), "bench", "--json", *sys.argv[1:]]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return done.returncode
    content = ledger.stamp() | {"load_average": round(load, 2)} | json.loads(done.stdout)
    lines = [f"# {content['machine']}, commit {content['commit']}, load {load:.1f}", ""]
    for file, dtype in dict.fromkeys((row["file"], row["dtype"]) for row in content["results"]):
        rows = [row for row in content["results"] if (row["file"], row["dtype"]) == (file, dtype)]
        lines += [f"## {Path(file).name}, {dtype}", "", *report.table(rows), ""]
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "report.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (OUT / "report.md").write_text("\n".join(lines), encoding="utf-8")
    first = content["results"][0]
    report.plot((row for row in content["results"] if row["file"] == first["file"]),
                Path(first["file"]).name, OUT / "report.png")  # fmt: skip
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
