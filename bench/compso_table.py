#!/usr/bin/env python3
"""The table of docs/compso.md: COMPSO's compressor and ours on the gradients published with COMPSO.

Usage: compso_table.py --gradwire PROGRAM compso_resnet50_step100_kfac.safetensors

The file holds the even layers up to 43 of `grad_res50` of github.com/Presciman/COMPSO_Compressor as
float32 tensors; it has no licence and is no part of this project. Prints the table as Markdown.
Exit status: that of `gradwire bench`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# Bound relative to the range of a layer, then COMPSO's filter and stochastic rounding with a step
# of that size: values kept, bits per value by order-0 entropy (what an entropy coder can reach),
# ratio, relative L2 error. Layers 0 to 43, one table for all.
PUBLISHED = {
    "1e-3": (99.0, 8.59, 3.72, 0.0057),
    "4e-3": (96.1, 6.60, 4.85, 0.0235),
    "1e-2": (90.4, 5.27, 6.07, 0.062),
    "2e-2": (81.0, 4.25, 7.53, 0.130),
    "1e-1": (24.7, 1.35, 23.7, 0.529),
}
OURS = ("int8", "int4", "fine", "unbiased", "coarse", "error_bounded:bound=1,group=tensor")


def measure(program: str, file: Path, codecs: list[str]) -> dict[str, dict[str, Any]]:
    command = [program, "bench", str(file), "--only", "--runs", "1", "--json"]
    for codec in codecs:
        command += ["--codec", codec]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return dict(zip(codecs, json.loads(done.stdout)["results"], strict=True))


def row(name: str, reference: tuple[float, ...] | None, ours: dict[str, Any]) -> str:
    known = "- | - | -" if reference is None else (
        f"{reference[1]:.2f} | {reference[2]:.2f} | {reference[3]:.2g}")  # fmt: skip
    entropy = ours["entropy_bits"]
    return (f"| {name} | {known} | {ours['bits_per_value']:.2f} | {entropy:.2f} | "
            f"{ours['ratio']:.2f} | {ours['rel_l2']:.2g} |")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Prints the table of docs/compso.md.")
    parser.add_argument("--gradwire", default="gradwire", help="the command line program")
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    bounds = {eb: f"compso:bound={eb}" for eb in PUBLISHED}
    measured = measure(arguments.gradwire, arguments.file, [*bounds.values(), *OURS])
    print("| | COMPSO's rule: bits | ratio | L2 error "
          "| here: bits | their entropy | ratio | L2 error |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for eb, codec in bounds.items():
        print(row(f"`{codec}`", PUBLISHED[eb], measured[codec]))
    for codec in OURS:
        print(row(f"`{codec}`", None, measured[codec]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
