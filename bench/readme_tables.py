#!/usr/bin/env python3
"""Writes the tables of README.md from bench/results: `make bench-tables`.

Usage: readme_tables.py [--check]

A table stands between `<!-- table:NAME begin -->` and `<!-- table:NAME end -->`; NAME is one of
TABLES below, which says what its file comes from. With --check nothing is written: exit status 1
if a table is not what the files give.

  sizes      ratio.csv, written by bench/ratio.py
  gradients  gradients.json: bench/record.py gradients .venv/bin/gradwire bench FILE... --json ...
  speed      speed.json: bench/record.py speed ... bench FILE... --min-bytes 100M --json ...
  peers      peers.json: out/bench-peers/report.json of `make bench-peers`
  network    network.json: bench/network.py --out bench/results/network.json
  demo       demo.json: out/demo/report.json of `make demo`
"""

from __future__ import annotations

import argparse
import csv
import difflib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "bench" / "results"
REGION = re.compile(r"(<!-- table:(\w+) begin -->\n)(.*?)(<!-- table:\2 end -->)", re.DOTALL)

Row = dict[str, Any]
# Files of gradients and what is in them.
MODELS = {"resnet18_step500": "ResNet-18", "gpt_step400": "GPT", "bert_step100": "BERT"}


def load(name: str) -> Any:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("| --- ", "|---").replace(
        "|--- |", "|---|")  # fmt: skip


def by_codec(results: Iterable[Row]) -> dict[str, list[Row]]:
    """Results of each codec, in the order of their first."""
    groups: dict[str, list[Row]] = {}
    for result in results:
        groups.setdefault(result["codec"], []).append(result)
    return groups


def median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def spread(values: Iterable[float], digits: int) -> str:
    """Median, and least to most."""
    values = list(values)
    least, middle, most = min(values), median(values), max(values)
    return f"{middle:.{digits}f} ({least:.{digits}f}-{most:.{digits}f})"


def scientific(value: float) -> str:
    """As 1.7e-3; 0 as 0."""
    return f"{value:.1e}".replace("e-0", "e-") if value else "0"


# ---- the tables ----


def sizes() -> str:
    """Exact ratios; an input is a column, a codec a row."""
    with (RESULTS / "ratio.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["dtype"] == "float32"]
    counts = Counter(row["input"] for row in rows)
    inputs = [name for name in counts if counts[name] > 1]
    ratios = {(row["codec"], row["input"]): row["ratio"] for row in rows}
    codecs = dict.fromkeys(row["codec"] for row in rows)
    names = [f"`{name}`" for name in inputs]
    return table(["codec", *names], ([f"`{codec}`", *(ratios.get((codec, name), "-")
                                                      for name in inputs)]
                                     for codec in codecs))  # fmt: skip


def over_entropy(results: list[Row]) -> str:
    over = [100 * (row["bits_per_value"] / row["entropy_bits"] - 1)
            for row in results if row["entropy_bits"]]  # fmt: skip
    if not over:
        return "-"
    least, most = f"{min(over):.1f}", f"{max(over):.1f}"
    return f"{least} %" if least == most else f"{least}-{most} %"


def gradients() -> str:
    """Ratio on gradients of models, bits over the entropy, error of the worst tensor."""
    groups = by_codec(load("gradients.json")["results"])
    files = [row["file"] for row in next(iter(groups.values()))]
    models = [MODELS.get(Path(file).stem, file) for file in files]
    rows = []
    for codec, results in groups.items():
        worst = max(row["worst_tensor_rel_l2"] for row in results)
        rows.append([f"`{codec}`", *(f"{row['ratio']:.3f}" for row in results),
                     over_entropy(results), scientific(worst)])  # fmt: skip
    return table(["codec", *models, "over entropy", "worst tensor"], rows)


def speed() -> str:
    """GB/s of values and the same over memcpy, over all files."""
    content = load("speed.json")
    rows = [
        [f"`{codec}`", *(spread((row[name] for row in results), 1 + ("over" in name))
                         for name in ("encode_gbps", "decode_gbps", "encode_over_memcpy",
                                      "decode_over_memcpy"))]
        for codec, results in by_codec(content["results"]).items()
    ]  # fmt: skip
    head = ["codec", "encode, GB/s", "decode, GB/s", "encode / memcpy", "decode / memcpy"]
    return f"{content['machine']}, commit {content['commit']}:\n\n" + table(head, rows)


def peers() -> str:
    """Gradwire and other codecs, largest size: medians over the files."""
    results = load("peers.json")["results"]
    size = max(row["megabytes"] for row in results)
    rows = []
    for codec, lines in by_codec(row for row in results if row["megabytes"] == size).items():
        speeds = (median(row[name] for row in lines) for name in ("encode_gbps", "decode_gbps"))
        worst = max(row["rel_l2"] for row in lines)
        rows.append([f"`{codec}`", f"{median(row['ratio'] for row in lines):.3f}",
                     scientific(worst), *(f"{speed:.2f}" for speed in speeds)])  # fmt: skip
    head = ["codec", "ratio", "error (L2)", "encode, GB/s", "decode, GB/s"]
    return f"{size} MB, one core:\n\n" + table(head, rows)


def network() -> str:
    """Milliseconds of an all-reduce over a link."""
    content = load("network.json")
    rows = []
    for row in content["results"]:
        base = next(other["ms"] for other in content["results"] if other["mib"] == row["mib"])
        rows.append([str(row["mib"]), f"`{row['name']}`", f"{row['ratio']:.2f}",
                     scientific(row["rel_l2"]), f"{row['ms']:.1f}", f"{base / row['ms']:.2f}x"])
    head = ["MiB", "exchange", "ratio", "error (L2)", "ms", "speed"]
    return f"Link {content['link']}:\n\n" + table(head, rows)


def demo() -> str:
    """The runs of the demo."""
    runs = load("demo.json")["runs"]
    base = next(run["ms_per_step"] for run in runs if run["codec"] == "none")
    rows = [
        [f"`{run['codec']}`", f"{run['ratio']:.2f}", scientific(run["rel_l2"]),
         f"{run['bytes_per_step'] / 1e6:.2f}", f"{run['ms_per_step']:.0f}",
         f"{base / run['ms_per_step']:.2f}x", f"{run['accuracy']:.4f}",
         "identical" if run["replicas_identical"] else "DIFFERENT"]
        for run in runs
    ]  # fmt: skip
    head = ["codec", "ratio to float32", "error (L2)", "MB per step", "ms per step",
            "against `none`", "accuracy", "replicas"]  # fmt: skip
    return table(head, rows)


TABLES: dict[str, Callable[[], str]] = {
    "sizes": sizes, "gradients": gradients, "speed": speed, "peers": peers, "network": network,
    "demo": demo,
}  # fmt: skip


def render(text: str) -> str:
    """README with each region filled anew."""

    def fill(region: re.Match[str]) -> str:
        name = region.group(2)
        if name not in TABLES:
            raise ValueError(f"README.md has a table {name}; there are {', '.join(TABLES)}")
        return region.group(1) + TABLES[name]() + region.group(4)

    filled, count = REGION.subn(fill, text)
    marks = len(re.findall(r"<!-- table:", text))
    if count == 0 or marks != 2 * count:
        raise ValueError(f"README.md has {marks} marks of tables and {count} tables")
    return filled


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the tables of README.md.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    old = README.read_text(encoding="utf-8")
    try:
        text = render(old)
    except (OSError, ValueError, KeyError) as error:
        print(f"readme_tables: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    if arguments.check and old != text:
        sys.stdout.writelines(difflib.unified_diff(
            old.splitlines(True), text.splitlines(True), "README.md", "bench/results", n=0))
        print("README.md is not what bench/results gives; run `make bench-tables`")
        return 1
    if not arguments.check:
        README.write_text(text, encoding="utf-8")
    print(f"readme_tables: {len(REGION.findall(text))} tables, "
          f"{'up to date' if old == text else 'written'}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
