#!/usr/bin/env python3
"""Runs the C++ tests that show a promise and keeps how many there were: `make reliability`.

Works on the release build (`make release`). Each promise gets one line in reliability/ledger.jsonl;
the counts are of tests, not of cases inside them. Exit status: 0 all passed, 1 one did not.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time

import ledger

BUILD = ledger.ROOT / "build" / "release"
# Promise -> ctest's regular expression.
TESTS = {
    "W2": r"Truncat|TrailingBytes|OneByteMoreIsTrailing",
    "W4": r"LyingCounts|TakesNoMemory|LengthOfTheLargest|WithoutOverflow",
    "W5": r"AllocationFailure|RunningOutIsAnError",
    "N2": r"RoundTripTest|RoundTripBorderTest|EveryCodec|BlockInt",
    "N3": r"Special|NonFinite|NaN|Nan|MinusZero|CastTest",
    "N5": r"Float32Simd|TansSimd|Golden",
    "V1": r"GoldenFrameTest|GoldenSetTest",
    "V2": r"GoldenErrorTest",
    "C1": r"AllReduceProperty",
    "C2": r"AllReduce\.|FinishReduction",
    "C5": r"Mismatch\.|CompareHeaders",
}
PASSED = re.compile(r"(\d+)% tests passed, (\d+) tests failed out of (\d+)")


def run_tests(promise: str, pattern: str) -> dict[str, object]:
    command = ["ctest", "--test-dir", str(BUILD), "-j", "2", "-R", pattern]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = PASSED.search(done.stdout)
    failed, count = (int(found.group(2)), int(found.group(3))) if found else (0, 0)
    finding = ""
    if done.returncode != 0 or count == 0:
        finding = f"{failed} failed" if count else "no such tests"
        print(done.stdout[-3000:])
    return {"kind": "tests", "promise": promise, "name": pattern, "count": count, "planned": count,
            "unit": "tests", "seed": 0, "seconds": round(time.monotonic() - start, 2), "target": "",
            "result": "fail" if finding else "pass", "finding": finding}  # fmt: skip


def main() -> int:
    shared = ledger.stamp()
    records = [run_tests(promise, pattern) for promise, pattern in TESTS.items()]
    for record in records:
        print(f"{record['promise']}  {record['count']:>5} tests  {record['result']}")
    ledger.append(records, shared)
    return 1 if any(record["result"] != "pass" for record in records) else 0


if __name__ == "__main__":
    sys.exit(main())
