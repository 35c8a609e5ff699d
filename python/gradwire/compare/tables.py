"""The comparison as text, Markdown and HTML: one table for each task and number of ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradwire.compare import settings

Group = dict[str, Any]
Row = dict[str, Any]

BEGIN = "<!-- table: written by make compare-full -->"
END = "<!-- end of table -->"

_PERCENT = round(100 * settings.MARGIN)
COLUMNS = {
    "codec": "none: the same collective without compression; control: "
    f"{settings.CONTROL_CODEC} in the first {settings.CONTROL_STEPS} steps (half of a shorter run) "
    "and exact after, so its ratio is not that of a codec",
    "ratio": "bytes of float32 over bytes that all ranks sent, headers included, all steps",
    "rel. L2": "error of the exchanged gradient against the ranks' mean, relative, mean over the "
    "steps",
    "noise/v": "mean over the values of n / v: n the error's squares, v the exact gradient's "
    "squares, both averaged over steps as Adam does",
    "n/(n+v)": "mean over the values of n / (n + v), which no single value dominates",
    "seeds": "pairs of runs, with and without the codec, of the same weights and batches",
    "loss change": "held-out loss at the end minus that of none, mean and standard error over the "
    "seeds",
    "extra steps": "how many steps more that loss is worth, from what none gains in a run that is "
    "10 % longer; mean and standard error, the slope's own error not counted",
    f"P(within {_PERCENT} %)": "probability that the true mean change is worth at most "
    f"{_PERCENT} % of the steps in either direction: Student's t with seeds - 1 degrees of freedom",
    "P(worse)": f"probability that it costs more than {_PERCENT} % of the steps, likewise",
    "gradient norm": "of the exchanged gradient, mean over the steps",
    "clipped": "part of the steps whose gradient was cut to the norm that the task sets",
    "verdict": "at a probability of .95 of one row alone; among twenty rows one is wrong on "
    "average. 'not decided' does not mean 'none'",
}


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _with_error(value: float | None, error: float | None, form: str, unit: str = "") -> str:
    if value is None:
        return "-"
    shown = "?" if error is None else format(error, form.removeprefix("+"))
    return f"{value:{form}} ± {shown}{unit}"


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


def cells(row: Row) -> list[str]:
    """One row, in the order of COLUMNS."""
    is_reference = row["codec"] == settings.REFERENCE
    change = (row["loss_change"], row["loss_change_error"])
    steps = (_percent(row["extra_steps"]), _percent(row["extra_steps_error"]))
    return [
        row["codec"],
        _number(row["ratio"], ".2f"),
        _number(row["rel_l2"], ".1e"),
        _number(row["noise_over_moment"], ".1e"),
        _number(row["noise_share"], ".1e"),
        f"{row['pairs']}" + (f", {row['diverged']} diverged" if row["diverged"] else ""),
        "-" if is_reference else _with_error(*change, "+.4f"),
        "-" if is_reference else _with_error(*steps, "+.1f", " %"),
        _number(row["within_margin"], ".2f"),
        _number(row["beyond_margin"], ".2f"),
        _number(row["gradient_norm"], ".3g"),
        _number(row["clip_rate"], ".2f"),
        row["verdict"],
    ]


def heading(group: Group) -> str:
    return f"{group['task']}, {group['ranks']} ranks"


def describe(group: Group) -> str:
    """What was trained, and what its steps are worth."""
    loss = "not finite" if group["loss"] is None else f"{group['loss']:.4f}"
    text = (
        f"{group['data']}; {group['parameters']:,} parameters, {group['optimizer']}, "
        f"{group['steps']} steps of {group['batch']}; loss of none {loss}"
    )
    if group["gain"] is None:
        return f"{text}; a longer run gained nothing, so losses are not turned into steps"
    gain = _with_error(group["gain"], group["gain_error"], ".4f")
    steps = f"{group['gain_steps']:.0f} steps more gain {gain}"
    return f"{text}; {steps}, so {_PERCENT} % of the steps is worth {group['margin']:.4f}"


_NAMES = {"noise_over_moment": "noise/v", "noise_share": "n/(n+v)", "rel_l2": "rel. L2"}


def describe_correlations(group: Group) -> str:
    """How well each error predicts the change of the loss, over this group's codecs."""
    parts = []
    for field, name in _NAMES.items():
        found = group["correlations"][field]
        parts.append(
            f"{name} {_number(found['spearman'], '+.2f')} "
            f"({_number(found['pearson_of_log'], '+.2f')})"
        )
    count = group["correlations"]["noise_over_moment"]["codecs"]
    return f"Correlation with the change of the loss over {count} codecs, Spearman's (Pearson's " \
           f"with the logarithm): {', '.join(parts)}"  # fmt: skip


def text_table(rows: list[list[str]]) -> str:
    """Columns of even width; the first and the last to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        middle = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *middle, row[-1]]))
    return "\n".join(lines)


def text(report: dict[str, Any]) -> str:
    parts = []
    for group in report["groups"]:
        rows = [list(COLUMNS), *map(cells, group["rows"])]
        parts.append(
            f"{heading(group)}: {describe(group)}\n\n{text_table(rows)}\n\n"
            f"{describe_correlations(group)}\n"
        )
    return "\n".join([*parts, *notes(report)])


def notes(report: dict[str, Any]) -> list[str]:
    """What is not in the tables, and why."""
    lines = [f"not in this build: {codec}: {reason}"
             for codec, reason in report["missing"].items()]  # fmt: skip
    lines += [f"FAILED: {title}: {message}" for title, message in report["failures"].items()]
    if report["runs_done"] < report["runs_wanted"]:
        lines.append(f"{report['runs_done']} of {report['runs_wanted']} runs are done; the same "
                     "command goes on with the rest")  # fmt: skip
    return lines


def _markdown_table(rows: list[list[str]]) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in escaped]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


def markdown(report: dict[str, Any]) -> str:
    parts = [f"Settings: {report['settings']}."]
    for group in report["groups"]:
        rows = [list(COLUMNS), *([f"`{row[0]}`", *row[1:]] for row in map(cells, group["rows"]))]
        parts += [f"### {heading(group)}", f"{describe(group)}.", _markdown_table(rows),
                  f"{describe_correlations(group)}."]  # fmt: skip
    parts += [f"* {line}" for line in notes(report)]
    return "\n\n".join(parts)


def write_document(path: Path, report: dict[str, Any]) -> None:
    """Puts the tables between the two marks of a Markdown file. ValueError where these are not."""
    content = path.read_text(encoding="utf-8")
    if content.count(BEGIN) != 1 or content.count(END) != 1:
        raise ValueError(f"{path} does not have the lines {BEGIN} and {END} once")
    before, rest = content.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n{markdown(report)}\n{END}{after}", encoding="utf-8")
