"""HTML pages that stand alone: style, tables and lists, for the reports of demo and comparison."""

from __future__ import annotations

import html

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2430; background: #fff;
       max-width: 74rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.lead { font-size: 1.1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .35rem .8rem; text-align: right; border-bottom: 1px solid #dde3ea; }
th:first-child, td:first-child { text-align: left; font-weight: 600; }
th { background: #f4f6f9; }
td.bad { background: #ffd7d7; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: 1rem; }
figure { margin: 0; } figure img { width: 100%; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; font-size: .92rem; }
dt { font-weight: 600; } dd { margin: 0; }
"""


def html_table(
    header: list[str], rows: list[list[str]], bad: tuple[str, ...] = ("DIFFERENT",)
) -> str:
    """A table; cells whose text is in ``bad`` are marked."""
    lines = ["<tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in header) + "</tr>"]
    for row in rows:
        cells = (
            f'<td{" class=bad" if cell in bad else ""}>{html.escape(cell)}</td>'
            for cell in row
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return '<div class="scroll"><table>\n' + "\n".join(lines) + "\n</table></div>"


def html_list(items: dict[str, str]) -> str:
    entries = (f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in items.items())
    return "<dl>\n" + "\n".join(entries) + "\n</dl>"


def html_page(title: str, body: str) -> str:
    """A whole page; ``body`` is HTML, ``title`` text."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title><style>{STYLE}</style></head>
<body>
{body}
</body></html>
"""
