"""Writes report.json, report.html and report.png."""

from __future__ import annotations

import base64
import html
import importlib.util
import json
from pathlib import Path
from typing import Any

from gradwire._page import html_list, html_page, html_table
from gradwire.compare import pictures, summary, tables

Report = dict[str, Any]

_BAD = (summary.LOSES_MORE, summary.LOSES, summary.DIVERGED)


def _groups(report: Report) -> str:
    parts = []
    for group in report["groups"]:
        rows = [tables.cells(row) for row in group["rows"]]
        parts.append(
            f"<h2>{html.escape(tables.heading(group))}</h2>\n"
            f"<p>{html.escape(tables.describe(group))}.</p>\n"
            f"{html_table(list(tables.COLUMNS), rows, bad=_BAD)}\n"
            f"<p>{html.escape(tables.describe_correlations(group))}.</p>"
        )
    return "\n".join(parts)


def page(report: Report, picture: bytes | None) -> str:
    image = "<p>No picture: matplotlib is not installed, or no run is done.</p>"
    if picture is not None:
        source = "data:image/svg+xml;base64," + base64.b64encode(picture).decode()
        image = f'<figure><img alt="change of the loss by ratio and noise" src="{source}"></figure>'
    notes = "".join(f"<li>{html.escape(line)}</li>" for line in tables.notes(report))
    body = f"""<h1>What compressed gradients cost in learning</h1>
<p class="lead">{html.escape(report["settings"])}.</p>
{_groups(report)}
<ul>{notes}</ul>
<h2>Picture</h2>
{image}
<h2>What the columns mean</h2>
{html_list(tables.COLUMNS)}"""
    return html_page("Gradwire comparison", body)


def write(report: Report, folder: Path) -> list[Path]:
    """Writes the files and returns their paths; without matplotlib, or results, no picture."""
    paths = [folder / "report.json", folder / "report.html"]
    paths[0].write_text(json.dumps(report, indent=1, allow_nan=False), encoding="utf-8")
    picture = None
    if report["groups"] and importlib.util.find_spec("matplotlib") is not None:
        picture = pictures.draw(report, folder / "report.png")
        paths.append(folder / "report.png")
    paths[1].write_text(page(report, picture), encoding="utf-8")
    return paths
