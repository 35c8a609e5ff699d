"""Rows and tables of the comparison, from results that are made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gradwire.compare import settings, summary, tables
from gradwire.compare.summary import summarize

SEEDS = 8
STEPS = 100


def result(codec: str, seed: int, loss: float | None, **others: Any) -> dict[str, Any]:
    return {
        "task": "gpt", "codec": codec, "ranks": 2, "seed": seed, "steps": STEPS, "batch": 8,
        "loss": loss, "accuracy": None, "ratio": 2.0, "rel_l2": 0.01, "noise_over_moment": 0.5,
        "noise_share": 0.1, "gradient_norm": 1.0, "clip_rate": 0.25, "parameters": 1234,
        "data": "bytes", "optimizer": "AdamW",
    } | others  # fmt: skip


def results() -> list[dict[str, Any]]:
    """Ten steps more gain .1, so that a step is worth .01, and so is one percent of the steps."""
    made = []
    for seed in range(SEEDS):
        base = 2 + 0.3 * seed  # seeds differ far more than codecs
        wiggle = 0.001 if seed % 2 else -0.001
        made += [
            result("none", seed, base, ratio=1.0, rel_l2=0.0, noise_over_moment=0.0),
            result(settings.LONGER_RUN, seed, base - 0.1, steps=110),
            result(settings.CONTROL, seed, base + 30 * wiggle),
            result("free", seed, base + wiggle),
            result("dear", seed, base + 0.03 + wiggle, rel_l2=0.3),
            result("some", seed, base + 0.0098 + wiggle, rel_l2=0.4),
            result("broken", seed, None if seed == 3 else base + 5, rel_l2=None),
        ]
    return made


def rows() -> dict[str, dict[str, Any]]:
    (group,) = summarize(results())
    return {row["codec"]: row for row in group["rows"]}


def test_what_steps_are_worth() -> None:
    (group,) = summarize(results())
    assert group["gain"] == pytest.approx(0.1) and group["gain_steps"] == pytest.approx(10)
    assert group["margin"] == pytest.approx(0.01)
    assert group["loss"] == pytest.approx(2 + 0.3 * 3.5)
    assert settings.LONGER_RUN not in rows()


def test_changes_are_taken_in_pairs() -> None:
    row = rows()["dear"]
    assert row["loss_change"] == pytest.approx(0.03)
    # Deviation of +-.001 with n - 1 = 7, over sqrt(8).
    assert row["loss_change_error"] == pytest.approx(0.001 / 7**0.5)
    assert row["extra_steps"] == pytest.approx(0.03)
    assert row["extra_steps_error"] == pytest.approx(0.001 / 7**0.5)
    assert row["beyond_margin"] > 0.999 and row["within_margin"] < 0.001


def test_verdicts() -> None:
    verdicts = {codec: row["verdict"] for codec, row in rows().items()}
    assert verdicts == {
        "none": summary.REFERENCE,
        "control": summary.OPEN,
        "free": summary.WITHIN,
        "dear": summary.LOSES_MORE,
        "some": summary.LOSES,
        "broken": summary.DIVERGED,
    }
    assert rows()["broken"]["pairs"] == SEEDS - 1


def test_one_seed_decides_nothing() -> None:
    (group,) = summarize([r for r in results() if r["seed"] == 0])
    for row in group["rows"]:
        assert row["verdict"] in (summary.REFERENCE, summary.OPEN), row["codec"]
        assert row["within_margin"] is row["beyond_margin"] is row["loss_change_error"] is None
    assert "± ?" in tables.cells(group["rows"][2])[6]


def test_no_gain_of_the_longer_run() -> None:
    made = [r if r["codec"] != settings.LONGER_RUN else r | {"loss": r["loss"] + 0.2}
            for r in results()]  # fmt: skip
    (group,) = summarize(made)
    row = next(r for r in group["rows"] if r["codec"] == "dear")
    assert group["margin"] is None and row["extra_steps"] is None
    assert row["verdict"] == summary.LOSES
    assert "gained nothing" in tables.describe(group)


def test_missing_reference() -> None:
    (group,) = summarize([r for r in results() if r["codec"] != "none"])
    assert all(row["loss_change"] is None for row in group["rows"])
    assert group["loss"] is None and "not finite" not in tables.cells(group["rows"][0])


def test_correlations_leave_out_what_is_no_codec() -> None:
    (group,) = summarize(results())
    found = group["correlations"]["rel_l2"]
    assert found["codecs"] == 3 and found["spearman"] == pytest.approx(0.5)


def report() -> dict[str, Any]:
    return {"settings": "preset x, 8 seeds", "groups": summarize(results()),
            "missing": {"fine": "unknown codec"}, "failures": {"a | b": "oops"},
            "runs_done": 3, "runs_wanted": 5}  # fmt: skip


def test_text_table() -> None:
    shown = tables.text(report())
    lines = shown.splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("codec "))
    assert all(name in lines[header] for name in tables.COLUMNS)
    row = next(line for line in lines if line.startswith("dear"))
    for part in ("2.00", "+0.0300 ± 0.0004", "+3.0 ± 0.0 %", "0.00", "1.00", "0.25",
                 "loses more than the margin"):  # fmt: skip
        assert part in row, part
    assert "7, 1 diverged" in shown
    assert "not in this build: fine: unknown codec" in shown
    assert "3 of 5 runs are done" in shown


def test_document(tmp_path: Path) -> None:
    path = tmp_path / "comparison.md"
    path.write_text(f"# Words\n\n{tables.BEGIN}\nold\n{tables.END}\n\nmore words\n")
    tables.write_document(path, report())
    once = path.read_text()
    tables.write_document(path, report())
    assert path.read_text() == once
    assert once.startswith("# Words\n") and once.endswith("\nmore words\n") and "old" not in once
    table = [line for line in once.splitlines() if line.startswith("|")]
    assert len(table) == 2 + len(report()["groups"][0]["rows"])
    assert {line.count("|") for line in table} == {len(tables.COLUMNS) + 1}
    assert "preset x, 8 seeds" in once and "`dear`" in once
    (tmp_path / "other.md").write_text("nothing")
    with pytest.raises(ValueError, match="other.md"):
        tables.write_document(tmp_path / "other.md", report())
