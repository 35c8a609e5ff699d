#!/usr/bin/env python3
"""Fuzzes the decoder for a while: `make fuzz SECONDS=60`.

Side by side run gradwire_mutate (release build, damaged frames between guard pages; hundreds of
thousands of frames a second) and, one after the other, the libFuzzer targets (clang, ASan and
UBSan; they follow coverage) and gradwire_msan (clang, MemorySanitizer). What they did goes to
reliability/ledger.jsonl unless --no-record is given. Corpora stay in out/fuzz/corpus, inputs that
broke something in out/fuzz/findings.

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
MSAN = ROOT / "build" / "msan" / "tests" / "fuzz" / "gradwire_msan"
MSAN_SUMMARY = re.compile(r"^msan: .* (\d+) decoded, (\d+) damaged .*, (\w+)$", re.MULTILINE)


def build() -> bool:
    """Three builds; the presets `fuzz` and `msan` make nothing but their programs."""
    commands = (
        "cmake --preset release && cmake --build --preset release --target gradwire_mutate",
        "cmake --preset fuzz && cmake --build --preset fuzz",
        "cmake --preset msan && cmake --build --preset msan",
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


def finding_of(done: subprocess.CompletedProcess[str]) -> str:
    """What the log of a sanitizer says, for the ledger; the end of the log is shown."""
    log = done.stdout + done.stderr
    print(log[-6000:])
    lines = [line for line in log.splitlines() if re.search("ERROR|SUMMARY|breach", line)]
    return "; ".join(lines[:3]) or f"exit status {done.returncode}"


def run_msan(seconds: int, seed: int) -> dict[str, object]:
    """Runs gradwire_msan, after a test that it would find something; its line of the ledger."""
    start = time.monotonic()
    frames, target, finding = 0, "", ""
    for arguments in (["--self-test"], [str(GOLDEN), str(seconds), str(seed)]):
        done = subprocess.run([str(MSAN), *arguments], capture_output=True, text=True,
                              errors="replace", check=False)  # fmt: skip
        found = MSAN_SUMMARY.search(done.stdout)
        if found is not None:
            frames, target = int(found.group(1)) + int(found.group(2)), found.group(3)
        if done.returncode != 0:
            finding = finding_of(done)
            break
    if frames == 0 and not finding:
        finding = "no summary"
    return {"kind": "msan", "promise": "W1", "name": "encoding; good and damaged frames",
            "count": frames, "planned": 0, "unit": "frames", "seed": seed,
            "seconds": round(time.monotonic() - start, 2), "target": f"MSan, {target}",
            "result": "fail" if finding else "pass", "finding": finding}  # fmt: skip


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
        finding = finding_of(done)
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
        share = max(1, seconds // (len(TARGETS) + 1))
        for name in (*TARGETS, "msan"):
            record = run_msan(share, seed) if name == "msan" else run_target(name, share, seed)
            print(f"{name:<14}{record['count']:>12} {record['unit']}  {record['result']}"
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
