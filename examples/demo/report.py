"""The demo's results: a table for the terminal, report.json and report.html."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pictures

from gradwire._page import html_list, html_page, html_table

Report = dict[str, Any]

EXPLANATIONS = {
    "codec": "none: DDP without a hook; bf16: torch's own hook; the others: gradwire.attach()",
    "ratio": "bytes of the float32 gradients over bytes sent, headers included",
    "error (L2)": "all-reduced gradient against the mean of the ranks' gradients in float64, "
    "relative, mean over sampled steps",
    "MB/step": "sent by each rank, in millions of bytes",
    "ms/step": "median over all steps after the first few, tests and samples not counted",
    "against none": "time per step of none over time per step of this run",
    "accuracy": "on all test images, after the last step",
    "test loss": "cross-entropy on the same images",
    "replicas": "whether both ranks ended with the same bits in every parameter",
}


def columns(report: Report, run: dict[str, Any]) -> list[str]:
    """One row of the table, in the order of EXPLANATIONS."""
    none = next((other for other in report["runs"] if other["codec"] == "none"), None)
    against = f"{none['ms_per_step'] / run['ms_per_step']:.2f}x" if none else "-"
    return [
        run["codec"],
        f"{run['ratio']:.2f}",
        f"{run['rel_l2']:.1e}",
        f"{run['bytes_per_step'] / 1e6:.2f}",
        f"{run['ms_per_step']:.1f}",
        against,
        f"{run['accuracy']:.4f}",
        f"{run['loss']:.4f}",
        "identical" if run["replicas_identical"] else "DIFFERENT",
    ]


def text_table(report: Report) -> str:
    rows = [list(EXPLANATIONS), *(columns(report, run) for run in report["runs"])]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [f"{report['dataset']}, {report['parameters']:,} parameters, {describe_link(report)}"]
    for row in rows:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths))
        lines.append("  ".join([first.strip().ljust(widths[0]), *others]))
    return "\n".join(lines)


def describe_link(report: Report) -> str:
    return f"link {report['link']}: {report['link_description']}"


# ---- where the time goes ----

TIMES = {
    "step": "whole step (median)",
    "p10 to p90": "spread of the step",
    "CPU": "of all threads of rank 0, per step",
    "forward + backward": "without any communication",
    "optimizer": "AdamW, fused",
    "exchange": "the rest of the step: what exchanging gradients adds to it",
    "encode": "Gradwire: values to bytes",
    "decode": "Gradwire: bytes to values, with the sum",
    "wire": "Gradwire: blocked on the network",
    "wait": "Gradwire: what the backward waited for at its end; the rest was hidden behind it",
    "link MB": "sent per step as the network device counts it, with TCP and IP headers; on "
    "loopback that of both ranks",
}


def time_columns(run: dict[str, Any]) -> list[str]:
    breakdown = run["breakdown"]
    computing = [breakdown[name] for name in ("forward_backward_ms", "optimizer_ms")]
    exchanging = [breakdown[name] for name in ("encode_ms", "decode_ms", "wire_ms", "wait_ms")]
    rest = run["ms_per_step"] - sum(computing)
    values = [breakdown["cpu_ms"], *computing, rest, *exchanging]
    return [
        run["codec"],
        f"{run['ms_per_step']:.1f}",
        f"{run['ms_per_step_p10']:.0f} to {run['ms_per_step_p90']:.0f}",
        *("-" if value is None else f"{value:.1f}" for value in values),
        f"{run['link_bytes_per_step'] / 1e6:.2f}",
    ]


# ---- HTML ----

def summary(report: Report) -> str:
    """The result in words, whatever it is."""
    runs = {run["codec"]: run for run in report["runs"]}
    if not {"none", "near_lossless"} <= runs.keys():
        return ""
    none, near = runs["none"], runs["near_lossless"]
    sentences = [
        f"With near_lossless each rank sent {near['bytes_per_step'] / 1e6:.1f} MB per step instead "
        f"of {none['bytes_per_step'] / 1e6:.1f} MB (ratio {near['ratio']:.2f})",
    ]
    for name in ("none", "bf16"):
        if name in runs:
            factor = runs[name]["ms_per_step"] / near["ms_per_step"]
            way = "faster" if factor >= 1 else "slower"
            times = max(factor, 1 / factor)
            sentences.append(f"a step was {times:.2f} times {way} than with {name}")
    difference = near["accuracy"] - none["accuracy"]
    sentences.append(f"accuracy differed by {difference:+.4f} from none")
    return "; ".join(sentences) + "."


def machine_list(report: Report) -> dict[str, str]:
    machine = report["machine"]
    load = f"load average {machine['load_average']:.1f} at the end"
    return {
        "link": report["link_description"],
        "data": f"{report['dataset']}; {report['parameters']:,} parameters, "
        f"{4 * report['parameters'] / 1e6:.1f} MB of float32 gradients",
        "ranks": f"{report['ranks']}, each on one core with one thread",
        "machine": f"{machine['processor']}, {machine['cores']} cores, {load}",
        "software": f"{machine['system']}, Python {machine['python']}, torch {machine['torch']}, "
        f"Gradwire {machine['gradwire'] or 'not installed'}",
        "time": f"{report['seconds']:.0f} s for all runs, {report['runs'][0]['steps']} steps each",
    }


def page(report: Report) -> str:
    figures = "\n".join(
        f'<figure><img alt="{html.escape(title)}" src="{source}"></figure>'
        for title, source in pictures.draw(report).items()
    )
    rows = [columns(report, run) for run in report["runs"]]
    times = [time_columns(run) for run in report["runs"]]
    title = f"Gradwire demo: {report['dataset']}, link {report['link']}"
    body = f"""<h1>{html.escape(title)}</h1>
<p class="lead">{html.escape(summary(report))}</p>
{html_table(list(EXPLANATIONS), rows)}
<h2>Pictures</h2>
<div class="pictures">
{figures}
</div>
<h2>Where a step's time goes</h2>
<p>Milliseconds per step on rank 0. Encode, decode and wire run beside the backward on the same
core, so they do not add up to the step.</p>
{html_table(["codec", *TIMES], times)}
<h2>What the columns mean</h2>
{html_list(EXPLANATIONS)}
<h2>What the times mean</h2>
{html_list(TIMES)}
<h2>Where this was measured</h2>
{html_list(machine_list(report))}"""
    return html_page("Gradwire demo", body)


def write(report: Report, folder: Path) -> list[Path]:
    """Writes both files and returns their paths."""
    paths = [folder / "report.json", folder / "report.html"]
    paths[0].write_text(json.dumps(report, indent=1))
    paths[1].write_text(page(report), encoding="utf-8")
    return paths
