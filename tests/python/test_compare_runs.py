"""Runs of the comparison: three steps of each task, results that are kept, the command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from gradwire import _core  # noqa: E402
from gradwire.compare import __main__ as command  # noqa: E402
from gradwire.compare import exchange, peers, settings, tables, tasks  # noqa: E402
from gradwire.compare.runner import Plan, Results  # noqa: E402
from gradwire.compare.training import Noise, Run, execute, identity  # noqa: E402
from gradwire.errors import GradwireError  # noqa: E402

SIZES = {
    "gpt": settings.Size(3, 4, 8, {"width": 16, "layers": 1, "heads": 2, "length": 16}),
    "cnn": settings.Size(3, 8, 100, {"hidden": 16}),
    "autoencoder": settings.Size(3, 8, 100),
}


def run(task: str, codec: str, seed: int = 0, ranks: int = 2) -> Run:
    return Run(task, codec, ranks, seed, SIZES[task])


@pytest.mark.parametrize("task", settings.TASKS)
def test_three_steps_of_each_task(task: str) -> None:
    none = execute(run(task, "none"))
    times = {name: none[name] for name in ("seconds", "cpu_seconds")}
    assert execute(run(task, "none")) | times == none  # deterministic
    coarse = execute(run(task, "int4"))
    other_seed = execute(run(task, "none", seed=1))
    longer = execute(run(task, settings.LONGER_RUN))
    assert none["rel_l2"] < 1e-6 < 0.03 < coarse["rel_l2"] < 0.4
    assert none["ratio"] < 1 < 3 < coarse["ratio"] < 8
    assert 0 < coarse["noise_share"] < 1 and coarse["noise_over_moment"] > coarse["noise_share"]
    assert len({r["loss"] for r in (none, coarse, other_seed, longer)}) == 4
    assert (longer["steps"], none["steps"]) == (4, 3)
    assert (none["clip_rate"] is None) == (task != "gpt")
    json.dumps(none, allow_nan=False)


def test_ranks_share_the_same_batches() -> None:
    two, four = (execute(run("autoencoder", "none", ranks=ranks)) for ranks in (2, 4))
    assert two["loss"] == pytest.approx(four["loss"], rel=1e-5)


def test_control_is_disturbed_at_first_only() -> None:
    shapes = [torch.Size([300])]
    coarse, exact = (exchange.make_exchange(c, 2, shapes, 0) for c in ("int4", "none"))
    control = exchange.ControlExchange(coarse, exact, 100)
    for step, is_exact in ((0, False), (19, False), (20, True), (99, True)):
        gradients = [torch.randn(300, generator=torch.Generator().manual_seed(i)) for i in (1, 2)]
        mean = (gradients[0] + gradients[1]) / 2
        result, _ = control.reduce(gradients, step)
        assert torch.allclose(result, mean, atol=1e-6) is is_exact, step


def test_seeds_draw_their_own_noise() -> None:
    assert exchange.with_seed("int8", 7) == exchange.with_seed("block:bits=8,group=64,seed=7", 3)
    assert "seed" not in exchange.with_seed("near_lossless", 7)
    assert exchange.with_seed("int4", 1) != exchange.with_seed("int4", 2)


def test_noise_against_known_numbers() -> None:
    noise = Noise(4, beta=0.9, steps=8)
    mean = torch.tensor([1.0, 2.0, 0.0, 4.0])
    for _ in range(8):
        noise.add(mean, mean + torch.tensor([1.0, 0.0, 0.0, 2.0]))
    # n / v is 1, 0, none and 1/4 at every sample.
    assert noise.over_moment == pytest.approx([1.25 / 3] * 8)
    assert noise.share == pytest.approx([(0.5 + 0.2) / 3] * 8)
    assert noise.relative == pytest.approx([(5 / 21) ** 0.5] * 8)


def test_power_sgd() -> None:
    """Exact for two steps, then of rank one."""
    shapes = [torch.Size([16, 20]), torch.Size([30])]
    made = exchange.make_exchange("power_sgd:rank=1", 2, shapes, 0)
    try:
        for step in range(4):
            gradients = [torch.randn(350, generator=torch.Generator().manual_seed(10 * step + rank))
                         for rank in (0, 1)]  # fmt: skip
            mean = (gradients[0] + gradients[1]) / 2
            result, traffic = made.reduce(gradients, step)
            assert traffic.raw_bytes == 2 * 350 * 4
            if step < 2:
                assert torch.allclose(result, mean) and traffic.bytes_out == traffic.raw_bytes
            else:
                assert traffic.bytes_out == 2 * (16 + 20 + 30) * 4
                assert torch.linalg.matrix_rank(result[:320].view(16, 20)) == 1
                assert torch.allclose(result[320:], mean[320:])
    finally:
        made.close()


def test_sz3_keeps_its_bound() -> None:
    pytest.importorskip("pysz")
    shapes = [torch.Size([3000]), torch.Size([1]), torch.Size([500])]
    gradients = [torch.randn(3501, generator=torch.Generator().manual_seed(i)) for i in (1, 2)]
    mean = (gradients[0] + gradients[1]) / 2
    result, traffic = exchange.make_exchange("sz3:bound=0.01", 2, shapes, 0).reduce(gradients, 0)
    assert 0 < (result - mean).abs().max() < 2 * 0.01 * 10
    assert 2 * traffic.bytes_out < traffic.raw_bytes == 2 * 3501 * 4


@pytest.mark.parametrize(
    ("codec", "field"),
    [("power_sgd:rank=0", "rank"), ("power_sgd:rank=1.5", "rank"), ("power_sgd", "rank"),
     ("power_sgd:step=1", "step"), ("sz3:bound=nan", "bound"), ("sz3:bound=x", "bound"),
     ("sz3:bound=-1", "bound")],
)  # fmt: skip
def test_wrong_parameters_of_peers(codec: str, field: str) -> None:
    with pytest.raises(GradwireError, match=field) as caught:
        peers.parse(codec)
    assert caught.value.field == field


def test_codecs_that_are_missing_say_why() -> None:
    assert exchange.why_missing("int8") is None
    assert "zip" in exchange.why_missing("zip")
    assert "group" in exchange.why_missing("block:bits=8,group=0")


def test_too_few_sources(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(ValueError, match="too few Python sources"):
        tasks.read_text(tmp_path)


# ---- results ----


def test_plan_is_seed_after_seed() -> None:
    plan = Plan(("gpt", "cnn"), ("int8", "none"), 2, {"gpt": (2, 4), "cnn": (2,)}, SIZES)
    runs = plan.runs()
    assert len(runs) == len(set(map(str, runs))) == 2 * 3 * 4  # none, longer, control, int8
    assert [r.seed for r in runs] == [0] * 12 + [1] * 12


def test_results_are_kept_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    runs = [run("cnn", codec, seed) for codec in ("none", "int8") for seed in (0, 1)]
    results = Results(path, "build 1")
    assert results.missing(runs) == runs and results.of(runs) == []
    for one in runs[:3]:
        results.add({**identity(one), "loss": 1.0})
    again = Results(path, "build 1")
    assert again.missing(runs) == runs[3:] and len(again.of(runs)) == 3
    # Another size is another run; another build's results do not count.
    longer = runs[0]._replace(size=SIZES["cnn"]._replace(steps=4))
    assert again.missing([longer]) == [longer]
    other = Results(path, "build 2")
    assert other.missing(runs) == runs and other.foreign == 3


def test_line_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    runs = [run("cnn", "none", seed) for seed in (0, 1, 2)]
    results = Results(path, "build")
    for one in runs[:2]:
        results.add({**identity(one), "loss": 1.0})
    path.write_text(path.read_text()[:-20])
    again = Results(path, "build")
    assert again.damaged == 1 and again.missing(runs) == runs[1:]
    again.add({**identity(runs[2]), "loss": 3.0})
    assert Results(path, "build").missing(runs) == [runs[1]]


# ---- the command ----


BASE = ["--task", "autoencoder", "--steps", "3", "--jobs", "2"]


def compare(out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gradwire.compare", *BASE, "--out", str(out), *options],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_command_goes_on_where_it_was_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "doc.md"
    document.write_text(f"{tables.BEGIN}\n{tables.END}\n")
    options = ["--codec", "int8", "--seeds", "2"]
    again = [*BASE, "--out", str(tmp_path), *options]
    assert command.main([*again, "--minutes", "1e-9"]) == 0
    assert "0 of 8 runs are done" in capsys.readouterr().out
    whole = compare(tmp_path, *options, "--document", str(document))
    assert whole.returncode == 0, whole.stderr
    assert re.search(r"8/8 .* min left", whole.stdout) and "int8" in whole.stdout
    report: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())
    assert report["runs_done"] == report["runs_wanted"] == 8
    assert [row["codec"] for row in report["groups"][0]["rows"]] == ["none", "control", "int8"]
    assert "int8" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    assert "`int8`" in document.read_text()
    assert command.main(again) == 0
    shown = capsys.readouterr().out
    assert "/8 " not in shown and "int8" in shown
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 8


def test_registry_fills_the_plan() -> None:
    """Every lossy codec has a row, once."""
    for preset in settings.PRESETS.values():
        specs = command._with_registry(preset)
        names = {_core.codec_text(spec).partition(":")[0] for spec in specs
                 if exchange.why_missing(spec) is None and not peers.is_peer(spec)}  # fmt: skip
        assert names == {codec["name"] for codec in _core.codecs()} - set(settings.EXACT)
        assert specs.count("int8") == 1 and "block:bits=8" not in specs


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--seeds", "0"], "--seeds 0"),
        (["--steps", "1"], "--steps 1"),
        (["--jobs", "0"], "--jobs 0"),
        (["--minutes", "-1"], "--minutes -1"),
        (["--minutes", "nan"], "--minutes nan"),
        (["--ranks", "1"], "--ranks 1"),
        (["--ranks", "3"], "--ranks 3"),
        (["--codec", "zip"], "--codec zip"),
        (["--codec", "block:bits=9"], "bits"),
        (["--codec", "power_sgd:rank=x"], "rank"),
        (["--task", "mnist"], "--task"),
        (["--preset", "huge"], "--preset"),
    ],
)
def test_wrong_options_are_named(
    options: list[str], field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main([*options, "--out", str(tmp_path)])
    assert caught.value.code == 2
    assert field in capsys.readouterr().err
