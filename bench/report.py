"""Table and plot of measured codecs, shared by bench.py and peers.py.

A result is a dict with the keys that `gradwire bench --json` prints: codec, ratio, rel_l2,
encode_gbps, decode_gbps, encode_over_memcpy, decode_over_memcpy; optionally lossless, and package
("gradwire" is drawn in red).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
SPEEDS = ("encode", "decode")


def table(results: Iterable[Row]) -> list[str]:
    """Lines of a Markdown table."""
    lines = ["| codec | ratio | relative L2 error | encode GB/s | / memcpy | decode GB/s | "
             "/ memcpy |", "|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in results:
        error = f"{row['rel_l2']:.2e}" if row["rel_l2"] else "0"
        speeds = " | ".join(f"{row[f'{name}_gbps']:.2f} | {row[f'{name}_over_memcpy']:.3f}"
                            for name in SPEEDS)  # fmt: skip
        lines.append(f"| {row['codec']} | {row['ratio']:.3f} | {error} | {speeds} |")
    return lines


def plot(results: Iterable[Row], title: str, path: Path) -> None:
    """Ratio against speed over memcpy, for encode and decode."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    results = list(results)
    figure, axes = plt.subplots(1, 2, figsize=(13, 6), sharey=True)
    for axis, name in zip(axes, SPEEDS):
        for row in results:
            ours = row.get("package", "gradwire") == "gradwire"
            point = (row[f"{name}_over_memcpy"], row["ratio"])
            axis.scatter(*point, color="tab:red" if ours else "tab:blue",
                         marker="^" if row["rel_l2"] else "o")  # fmt: skip
            axis.annotate(row["codec"], point, fontsize=7, xytext=(4, 3),
                          textcoords="offset points")  # fmt: skip
        axis.set(xscale="log", yscale="log", xlabel=f"{name} over memcpy", ylabel="ratio")
        axis.grid(True, which="both", alpha=0.3)
    figure.suptitle(f"{title}; circles: exact, triangles: lossy")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
