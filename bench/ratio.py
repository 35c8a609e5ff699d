#!/usr/bin/env python3
"""Exact sizes of frames: writes bench/results/ratio.csv and the table of it in README, or with
--check compares the file.

The values are inputs of the golden frames and longer ones from the same generators, so that every
machine has them. A size that changes is a change of the format or of the encoder: run this script,
and let the diff be reviewed. Needs the installed package (`make package`). Exit status: 0 fine, 1
the file is not what the package gives.
"""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

import gradwire

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from golden_inputs import normal, sparse  # noqa: E402

OUTPUT = ROOT / "bench" / "results" / "ratio.csv"
INPUTS = ROOT / "tests" / "golden" / "inputs"
LONG = 1 << 20  # values of the generated inputs: four blocks

FLOAT32 = ("none", "cast:dtype=bf16", "lossless", "near_lossless", "near_lossless:step=0.125",
           "near_lossless:step=1", "near_lossless:mantissa=6", "int8", "int4", "fine", "unbiased",
           "coarse", "error_bounded:bound=4", "compso", "lossless:coder=huffman",
           "near_lossless:coder=huffman", "near_lossless:mantissa=6,coder=huffman",
           "unbiased:coder=huffman", "coarse:coder=huffman")  # fmt: skip
LOSSLESS = ("lossless",)
OTHERS = ("lossless", "near_lossless", "near_lossless:step=0.125", "near_lossless:mantissa=6",
          "int8", "int4", "fine", "unbiased", "coarse", "compso")  # fmt: skip


def golden(name: str) -> np.ndarray:
    values = np.load(INPUTS / f"{name}.npy")
    return values.view(ml_dtypes.bfloat16) if name.endswith("_bf16") else values


def inputs() -> dict[str, tuple[np.ndarray, tuple[str, ...]]]:
    """Values and the codecs that take them, by name."""
    long_normal = normal(10, LONG).astype(np.float32)
    chosen = {
        "normal_long": (long_normal, FLOAT32),
        "sparse_long": (sparse(20, LONG).astype(np.float32), FLOAT32),
        "normal_long_bf16": (long_normal.astype(ml_dtypes.bfloat16), OTHERS),
        "normal_long_bf16_in_f32": (
            long_normal.astype(ml_dtypes.bfloat16).astype(np.float32), LOSSLESS),
    }  # fmt: skip
    for name in ("gpt_f32", "resnet_f32", "kfac_f32"):
        chosen[name] = (golden(name), FLOAT32)
    for name in ("gpt_bf16", "normal_f64", "normal_f16"):
        chosen[name] = (golden(name), OTHERS)
    return chosen


def table() -> str:
    lines = ["input,dtype,values,codec,encoded_bytes,ratio"]
    for name, (values, codecs) in inputs().items():
        for codec in codecs:
            encoded = len(gradwire.encode(values, codec=codec))
            text = f'"{codec}"' if "," in codec else codec
            lines.append(f"{name},{values.dtype},{values.size},{text},{encoded},"
                         f"{values.nbytes / encoded:.4f}")  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes or checks bench/results/ratio.csv.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    text = table()
    if not arguments.check:
        OUTPUT.parent.mkdir(parents=True, exist_ok=True)
        OUTPUT.write_text(text, encoding="utf-8")
        return subprocess.run([ROOT / "bench" / "readme_tables.py"], check=False).returncode
    old = OUTPUT.read_text(encoding="utf-8") if OUTPUT.is_file() else ""
    if old != text:
        sys.stdout.writelines(difflib.unified_diff(
            old.splitlines(True), text.splitlines(True), "ratio.csv", "the package", n=0))
        print("ratio: sizes have changed; if that is meant, run bench/ratio.py")
        return 1
    print(f"ratio: {text.count(chr(10)) - 1} sizes, all as in {OUTPUT.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
