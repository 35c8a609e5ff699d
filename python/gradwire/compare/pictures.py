"""The comparison as a picture: what each codec's ratio costs, and what predicts it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from gradwire.compare import settings, summary

_COLORS = {
    summary.REFERENCE: "#1c2430",
    summary.WITHIN: "#16a34a",
    summary.OPEN: "#6b7280",
    summary.LOSES: "#d97706",
    summary.LOSES_MORE: "#dc2626",
    summary.DIVERGED: "#9333ea",
}


def _label(axes: Any, row: dict[str, Any], x: float, y: float) -> None:
    axes.annotate(row["codec"], (x, y), xytext=(4, 3), textcoords="offset points", fontsize=6.5)


def _costs(axes: Any, group: dict[str, Any]) -> None:
    """Change of the loss against the ratio."""
    for row in group["rows"]:
        if row["loss_change"] is None or row["codec"] == settings.CONTROL:
            continue
        axes.errorbar(row["ratio"], row["loss_change"], yerr=row["loss_change_error"] or 0,
                      fmt="o", markersize=4, color=_COLORS[row["verdict"]], capsize=2)  # fmt: skip
        _label(axes, row, row["ratio"], row["loss_change"])
    if group["margin"] is not None:
        axes.axhspan(-group["margin"], group["margin"], color="#16a34a", alpha=0.12)
    axes.axhline(0, color="#1c2430", linewidth=0.8)
    axes.margins(x=0.15)  # room for the names
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("ratio to float32; band: worth 1 % of the steps")
    axes.set_ylabel("change of held-out loss")


def _predictor(axes: Any, group: dict[str, Any]) -> None:
    """Change of the loss against the noise relative to the second moment."""
    for row in group["rows"]:
        if not row["noise_share"] or row["loss_change"] is None:
            continue
        if row["codec"] in (settings.REFERENCE, settings.CONTROL):
            continue
        axes.errorbar(row["noise_share"], row["loss_change"], yerr=row["loss_change_error"] or 0,
                      fmt="o", markersize=4, color=_COLORS[row["verdict"]], capsize=2)  # fmt: skip
        _label(axes, row, row["noise_share"], row["loss_change"])
    axes.axhline(0, color="#1c2430", linewidth=0.8)
    axes.margins(x=0.15)  # room for the names
    axes.set_xscale("log")
    axes.set_xlabel("noise's share n / (n + v)")
    axes.set_ylabel("change of held-out loss")


def _figure(report: dict[str, Any]) -> Any:
    import matplotlib

    matplotlib.use("Agg")  # no display needed
    from matplotlib import pyplot

    groups = report["groups"]
    figure, axes = pyplot.subplots(
        len(groups), 2, figsize=(15, 5.2 * len(groups)), layout="constrained", squeeze=False
    )
    for group, (left, right) in zip(groups, axes, strict=True):
        _costs(left, group)
        _predictor(right, group)
        left.set_title(f"{group['task']}, {group['ranks']} ranks", loc="left", fontweight="bold")
        for one in (left, right):
            one.grid(alpha=0.25)
    handles = [pyplot.Line2D([], [], marker="o", linestyle="", color=color, label=verdict)
               for verdict, color in _COLORS.items()]  # fmt: skip
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), frameon=False)
    return figure


def draw(report: dict[str, Any], path: Path) -> bytes:
    """Writes a PNG to ``path``; returns the same as SVG. ImportError without matplotlib."""
    figure = _figure(report)
    from matplotlib import pyplot

    figure.savefig(path, format="png", dpi=110)
    content = io.BytesIO()
    figure.savefig(content, format="svg")
    pyplot.close(figure)
    return content.getvalue()
