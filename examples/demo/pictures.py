"""The report's pictures, as data URLs of SVG."""

from __future__ import annotations

import base64
import io
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no display needed

from matplotlib import pyplot
from matplotlib.axes import Axes

COLORS = {
    "none": "#6b7280",
    "bf16": "#d97706",
    "int8": "#9333ea",
    "int4": "#c026d3",
    "lossless": "#0891b2",
    "near_lossless": "#16a34a",
    "fine": "#2563eb",
    "unbiased": "#4f46e5",
    "coarse": "#dc2626",
}
SMOOTHED = 10  # steps that a point of a loss curve is the mean of


def smooth(values: list[float]) -> list[float]:
    """Mean of the last SMOOTHED values up to each."""
    windows = (values[max(0, end - SMOOTHED) : end] for end in range(1, len(values) + 1))
    return [sum(window) / len(window) for window in windows]


def curves(axes: Axes, runs: list[dict[str, Any]], abscissa: str | None) -> None:
    for number, run in enumerate(runs):
        losses = smooth(run["loss_curve"])
        x = run[abscissa] if abscissa else list(range(1, len(losses) + 1))
        # Ever thinner, so that curves which coincide are all seen.
        width = 1 + 0.9 * (len(runs) - 1 - number)
        axes.plot(x, losses, color=COLORS[run["codec"]], label=run["codec"], linewidth=width)
    axes.set_ylabel(f"training loss, mean of {SMOOTHED} steps")
    axes.set_yscale("log")  # the steep start would flatten the rest
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)


def bars(axes: Axes, runs: list[dict[str, Any]], values: list[float], form: str) -> None:
    names = [run["codec"] for run in runs]
    drawn = axes.barh(names, values, color=[COLORS[name] for name in names], height=0.65)
    axes.bar_label(drawn, [form.format(value) for value in values], padding=4)
    axes.invert_yaxis()
    axes.margins(x=0.18)
    axes.spines[["top", "right"]].set_visible(False)


def loss_by_step(axes: Axes, report: dict[str, Any]) -> None:
    curves(axes, report["runs"], None)
    axes.set_xlabel("step")


def loss_by_time(axes: Axes, report: dict[str, Any]) -> None:
    curves(axes, report["runs"], "seconds_curve")
    axes.set_xlabel("seconds of training")


def bytes_per_step(axes: Axes, report: dict[str, Any]) -> None:
    values = [run["bytes_per_step"] / 1e6 for run in report["runs"]]
    bars(axes, report["runs"], values, "{:.1f}")
    axes.set_xlabel("MB sent by each rank per step")


def time_per_step(axes: Axes, report: dict[str, Any]) -> None:
    runs = report["runs"]
    bars(axes, runs, [run["ms_per_step"] for run in runs], "{:.0f}")
    compute = min(run["breakdown"]["forward_backward_ms"] for run in runs)
    axes.axvline(compute, color="#1c2430", linewidth=1, linestyle="--")
    axes.annotate(
        f"forward and backward alone: {compute:.0f} ms",
        (compute, -0.45), xytext=(4, 0), textcoords="offset points", va="bottom", fontsize=8.5,
    )  # fmt: skip
    axes.set_xlabel("milliseconds per step (median)")


PICTURES = {
    "Loss against step": loss_by_step,
    "Loss against time": loss_by_time,
    "Bytes per step": bytes_per_step,
    "Time per step": time_per_step,
}


def draw(report: dict[str, Any]) -> dict[str, str]:
    """Title to data URL."""
    urls = {}
    for title, painter in PICTURES.items():
        figure, axes = pyplot.subplots(figsize=(6, 3.8), layout="constrained")
        painter(axes, report)
        axes.set_title(title, loc="left", fontweight="bold", pad=14)
        content = io.BytesIO()
        figure.savefig(content, format="svg")
        pyplot.close(figure)
        urls[title] = "data:image/svg+xml;base64," + base64.b64encode(content.getvalue()).decode()
    return urls
