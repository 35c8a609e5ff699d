#!/usr/bin/env python3
"""Ratio and speed of Gradwire beside other codecs: `make bench-peers`.

Usage: peers.py FILE.safetensors... [--megabytes N]... [--repeats N]

The peers are installed into build/peers-venv, which sees the packages of .venv. One process, one
thread, pinned to one core, measures all of them through their Python functions, results in new
memory; memcpy of the same bytes is measured beside each. Medians. `--megabytes` repeats the values
of a file up to that size (default: 8, inside the caches, and 100). Writes
out/bench-peers/report.{json,md,png}; a peer that cannot be installed or fails is named there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import report

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / "build" / "peers-venv"
OUT = ROOT / "out" / "bench-peers"
PEERS = ("zipnn", "blosc2", "zstandard", "lz4", "fpzip", "zfpy", "pysz")
LEAST_SECONDS = 0.2  # of all repeats of one figure


def make_venv() -> dict[str, str]:
    """Installs the peers; returns why one could not be, by name."""
    if not (VENV / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    site = next((VENV / "lib").glob("python3*/site-packages"))
    ours = next((ROOT / ".venv" / "lib").glob("python3*/site-packages"))
    (site / "gradwire.pth").write_text(f"{ours}\n", encoding="utf-8")
    failed = {}
    for peer in PEERS:
        command = [str(VENV / "bin" / "python"), "-m", "pip", "install", "-q", "--no-input",
                   "--disable-pip-version-check", peer]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            failed[peer] = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    return failed


def median_seconds(call: Callable[[], Any], repeats: int) -> float:
    """Median of at least `repeats` calls after one that does not count."""
    call()
    seconds: list[float] = []
    while len(seconds) < repeats or (sum(seconds) < LEAST_SECONDS and len(seconds) < 200):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[len(seconds) // 2]


def measure(codec: Any, values: Any, repeats: int) -> dict[str, Any]:
    """One line of the report."""
    import numpy as np

    target = np.empty_like(values)
    encoded = codec.encode(values)
    decoded = np.asarray(codec.decode(encoded, values.size)).reshape(-1)
    exact = bool(np.array_equal(decoded.view(np.uint32), values.view(np.uint32)))
    difference = np.subtract(decoded, values, dtype=np.float64)
    memcpy = median_seconds(lambda: np.copyto(target, values), repeats)
    encode = median_seconds(lambda: codec.encode(values), repeats)
    decode = median_seconds(lambda: codec.decode(encoded, values.size), repeats)
    gigabytes = values.nbytes / 1e9
    return {
        "codec": codec.name, "package": codec.package, "lossless": codec.lossless, "exact": exact,
        "ratio": values.nbytes / codec.size(encoded),
        "rel_l2": float(np.linalg.norm(difference) / np.linalg.norm(values.astype(np.float64))),
        "encode_gbps": gigabytes / encode, "decode_gbps": gigabytes / decode,
        "memcpy_gbps": gigabytes / memcpy, "encode_over_memcpy": memcpy / encode,
        "decode_over_memcpy": memcpy / decode,
    }  # fmt: skip


def read_values(file: Path, megabytes: int) -> Any:
    """All float32 values of a file, one after the other, repeated or cut to that size."""
    import numpy as np
    from safetensors import safe_open

    with safe_open(file, "np") as tensors:
        arrays = [tensors.get_tensor(name).reshape(-1) for name in tensors.keys()]
    values = np.concatenate([array for array in arrays if array.dtype == np.float32])
    return np.ascontiguousarray(np.resize(values, megabytes * 1_000_000 // 4))


def run_all(arguments: argparse.Namespace) -> dict[str, Any]:
    """In the process that measures."""
    from peers_codecs import all_codecs

    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    codecs, missing = all_codecs()
    results = []
    for file in arguments.files:
        for megabytes in arguments.megabytes:
            values = read_values(file, megabytes)
            for codec in codecs:
                try:
                    line = measure(codec, values, arguments.repeats)
                except Exception as error:  # a peer's own trouble is a line of the report
                    missing[f"{codec.name}, {megabytes} MB"] = f"{type(error).__name__}: {error}"
                    continue
                results.append({"file": file.name, "megabytes": megabytes} | line)
                print(f"{file.name} {megabytes} MB {codec.name}: ratio {line['ratio']:.3f}, "
                      f"{line['encode_gbps']:.2f} and {line['decode_gbps']:.2f} GB/s",
                      file=sys.stderr, flush=True)  # fmt: skip
    return {"results": results, "missing": missing}


def table(content: dict[str, Any]) -> str:
    lines = ["# Gradwire and its peers", "",
             "One core, Python functions, results in new memory, medians; GB/s of original bytes.",
             "`/ memcpy`: over a copy of the same bytes in the same run.", ""]  # fmt: skip
    places = dict.fromkeys((line["file"], line["megabytes"]) for line in content["results"])
    for file, megabytes in places:
        chosen = [r for r in content["results"] if (r["file"], r["megabytes"]) == (file, megabytes)]
        chosen.sort(key=lambda r: (not r["lossless"], -r["decode_over_memcpy"]))
        lines += [f"## {file}, {megabytes} MB", "", *report.table(chosen), ""]
    lines += [f"Not measured: {name} ({why})" for name, why in content["missing"].items()]
    return "\n".join(lines) + "\n"


def plot(content: dict[str, Any], path: Path) -> None:
    largest = max(line["megabytes"] for line in content["results"])
    report.plot((line for line in content["results"] if line["megabytes"] == largest),
                f"{largest} MB, one core; red: Gradwire", path)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures Gradwire beside other codecs.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--megabytes", type=int, action="append")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.megabytes = arguments.megabytes or [8, 100]
    if arguments.measure:
        json.dump(run_all(arguments), sys.stdout)
        return 0
    failed = make_venv()
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLOSC_NTHREADS"), "1")
    command = [str(VENV / "bin" / "python"), __file__, "--measure", *sys.argv[1:]]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=os.environ | one_thread, check=True)
    content = json.loads(done.stdout)
    content["missing"] = failed | content["missing"]
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "report.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (OUT / "report.md").write_text(table(content), encoding="utf-8")
    plot(content, OUT / "report.png")
    print(table(content))
    return 0


if __name__ == "__main__":
    sys.exit(main())
