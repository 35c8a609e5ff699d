#!/usr/bin/env python3
"""Fuzzes the decoder for a while: `make fuzz SECONDS=60`.

Side by side run gradwire_mutate (release build, damaged frames between guard pages; hundreds of
thousands of frames a second) and, one after the other, the libFuzzer targets (clang, ASan and
UBSan; they follow coverage). What they did goes to reliability/ledger.jsonl unless --no-record is
given. Corpora stay in out/fuzz/corpus, inputs that broke something in out/fuzz/findings.

Exit status: 0 nothing found, 1 a finding or a failed build, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import ledger

ROOT = ledger.ROOT
OUT = ROOT / "out" / "fuzz"
GOLDEN = ROOT / "tests" / "golden"
# Target -> (promise of RELIABILITY.md, what it is given).
TARGETS = {
    "decode": ("W1", "any bytes to decode()"),
    "decode_fixed": ("W1", "frames with checksums put right to decode()"),
    "inspect": ("W1", "any bytes to inspect()"),
    "spec": ("W1", "any text to CodecSpec::parse()"),
}
MOST_BYTES = 40000  # of an input: blocks of 64 lanes fit
UNITS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def build() -> bool:
    """Both builds; the preset `fuzz` makes nothing but the targets."""
    commands = (
        "cmake --preset release && cmake --build --preset release --target gradwire_mutate",
        "cmake --preset fuzz && cmake --build --preset fuzz",
    )
    for command in commands:
        done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stdout[-6000:], done.stderr[-6000:], sep="\n", file=sys.stderr)
            return False
    return True


def start_mutator(seconds: int, seed: int, result: Path) -> subprocess.Popen[bytes]:
    program = ROOT / "build" / "release" / "tests" / "fuzz" / "gradwire_mutate"
    findings = OUT / "findings" / f"mutate-{seed}.gw"
    return subprocess.Popen([str(program), "--seconds", str(seconds), "--seed", str(seed),
                             "--save", str(findings), "--result", str(result)])  # fmt: skip


def run_target(name: str, seconds: int, seed: int) -> dict[str, object]:
    """Runs a libFuzzer target; its line of the ledger."""
    program = ROOT / "build" / "fuzz" / "tests" / "fuzz" / f"fuzz_{name}"
    corpus = OUT / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = [] if name == "spec" else [GOLDEN / "frames", GOLDEN / "errors"]
    command = [str(program), f"-max_total_time={seconds}", f"-seed={seed % 2**31}", "-timeout=10",
               "-rss_limit_mb=2048", f"-max_len={MOST_BYTES}", "-print_final_stats=1",
               f"-artifact_prefix={OUT / 'findings'}/{name}-", str(corpus), *map(str, seeds)]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    log = done.stdout + done.stderr
    found = UNITS.search(log)
    finding = ""
    if done.returncode != 0 or found is None:
        lines = [line for line in log.splitlines() if re.search("ERROR|SUMMARY|breach", line)]
        finding = "; ".join(lines[:3]) or f"exit status {done.returncode}"
        print(log[-6000:])
    promise, what = TARGETS[name]
    return {"kind": "libfuzzer", "promise": promise, "name": what,
            "count": int(found.group(1)) if found else 0, "planned": 0, "unit": "inputs",
            "seed": seed % 2**31, "seconds": round(time.monotonic() - start, 2),
            "target": "ASan, UBSan", "result": "fail" if finding else "pass",
            "finding": finding}  # fmt: skip


def fuzz(seconds: int, seed: int) -> list[dict[str, object]]:
    (OUT / "findings").mkdir(parents=True, exist_ok=True)
    result = OUT / "mutate.jsonl"
    result.unlink(missing_ok=True)
    records = []
    mutator = start_mutator(seconds, seed, result)
    try:
        for name in TARGETS:
            record = run_target(name, max(1, seconds // len(TARGETS)), seed)
            print(f"fuzz_{name:<14}{record['count']:>12} inputs  {record['result']}"
                  f"  {record['finding']}", flush=True)
            records.append(record)
        mutator.wait()
    finally:
        mutator.kill()
    mutated = ledger.read(result)
    if not mutated:
        print("gradwire_mutate recorded nothing", file=sys.stderr)
        mutated = [{"kind": "mutate", "result": "fail", "finding": "no result"}]
    return mutated + records


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzzes the decoder for a while.")
    parser.add_argument("--seconds", type=int, default=60, help="of each of the two sides")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--no-record", action="store_true", help="leave the ledger alone")
    arguments = parser.parse_args()
    if shutil.which("clang++-14") is None:
        print("fuzz: clang++-14 is missing; see tools/setup", file=sys.stderr)
        return 2
    shared = ledger.stamp()
    if not build():
        return 1
    records = fuzz(arguments.seconds, arguments.seed)
    if not arguments.no_record:
        ledger.append(records, shared)
    failed = [record for record in records if record["result"] != "pass"]
    print(f"fuzz: {len(records)} runs, {len(failed)} with findings; seed {arguments.seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
