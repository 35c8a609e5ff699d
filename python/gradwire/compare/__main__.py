"""``python -m gradwire.compare``: see ``--help`` and docs/comparison.md."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

from gradwire import _core
from gradwire.compare import settings
from gradwire.errors import GradwireError

_MOST_SEEDS = 1000


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gradwire.compare",
        description="Trains small models with each codec and says what it costs in learning. "
        "Results are kept in OUT/results.jsonl: the same command goes on where it was stopped.",
    )
    parser.add_argument("--preset", choices=settings.PRESETS, default="short",
                        help="sizes, seeds and codecs that the other options change")  # fmt: skip
    parser.add_argument("--task", action="append", choices=settings.TASKS, help="only this one "
                        "(may be repeated)")  # fmt: skip
    parser.add_argument("--codec", action="append", metavar="SPEC", help="only this one, beside "
                        "none and control (may be repeated); also power_sgd:rank=R and "
                        "sz3:bound=B")  # fmt: skip
    parser.add_argument("--ranks", action="append", type=int, metavar="N",
                        help="ranks, 2 or more (may be repeated)")  # fmt: skip
    parser.add_argument("--seeds", type=int, metavar="N", help="pairs of runs of each codec")
    parser.add_argument("--steps", type=int, metavar="N", help="steps of every run")
    parser.add_argument("--minutes", type=float, metavar="M", help="start no run after that time")
    parser.add_argument("--jobs", type=int, metavar="N", default=len(os.sched_getaffinity(0)),
                        help="runs side by side (default: one for each CPU)")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("out/compare"))
    parser.add_argument("--document", type=Path, metavar="FILE.md",
                        help="also write the tables into this file, between its marks")  # fmt: skip
    return parser


def _check_numbers(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    limits = {"seeds": (1, _MOST_SEEDS), "steps": (2, 1_000_000), "jobs": (1, 1024)}
    for name, (least, most) in limits.items():
        value = getattr(arguments, name)
        if value is not None and not least <= value <= most:
            parser.error(f"--{name} {value}: must be {least} to {most}")
    if arguments.minutes is not None and not arguments.minutes > 0:
        parser.error(f"--minutes {arguments.minutes:g}: must be above 0")


def _with_registry(preset: settings.Preset) -> list[str]:
    """The preset's codecs, and examples of every lossy one in the registry that they leave out."""
    found: dict[str, str] = {}
    examples = [spec for codec in _core.codecs() if codec["name"] not in settings.EXACT
                for spec in codec["examples"][: preset.examples]]  # fmt: skip
    for spec in (*preset.codecs, *examples):
        try:
            found.setdefault(_core.codec_text(spec), spec)
        except GradwireError:
            found.setdefault(spec, spec)  # not in this build, or a peer
    return list(found.values())


def _make_plan(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> Any:
    from gradwire.compare.runner import Plan

    preset = settings.PRESETS[arguments.preset]
    tasks = tuple(dict.fromkeys(arguments.task or settings.TASKS))
    sizes = dict(preset.sizes)
    ranks = dict(preset.ranks)
    for task in tasks:
        if arguments.steps is not None:
            sizes[task] = sizes[task]._replace(steps=arguments.steps)
        if arguments.ranks:
            ranks[task] = tuple(dict.fromkeys(arguments.ranks))
        for count in ranks[task]:
            if count < 2 or sizes[task].batch % count:
                parser.error(f"--ranks {count}: must be 2 or more and divide the batch of {task}, "
                             f"{sizes[task].batch}")  # fmt: skip
    codecs = tuple(dict.fromkeys(arguments.codec or _with_registry(preset)))
    return Plan(tasks, codecs, arguments.seeds or preset.seeds, ranks, sizes)


def _leave_out_missing(
    parser: argparse.ArgumentParser, plan: Any, are_named: bool
) -> tuple[Any, dict[str, str]]:
    """The plan with what can be used here. A codec that the user names must be there."""
    from gradwire.compare.runner import usable

    missing: dict[str, str] = {}
    kept = []
    for codec in plan.codecs:
        try:
            ((_, reason),) = usable([codec])
        except GradwireError as error:
            reason = error.message
        if reason is None:
            kept.append(codec)
        elif are_named:
            parser.error(f"--codec {codec}: {reason}")
        else:
            missing[codec] = reason
    return plan._replace(codecs=tuple(kept)), missing


def _commit() -> str | None:
    """Of the repository that the command is called in, if it is one."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() if found.returncode == 0 else None


def _describe_task(plan: Any, task: str) -> str:
    ranks = " and ".join(map(str, plan.ranks[task]))
    return f"{task} {plan.sizes[task].steps} steps on {ranks} ranks"


def _describe(plan: Any, arguments: argparse.Namespace) -> str:
    seeds = f"{plan.seeds} seeds" if plan.seeds > 1 else "1 seed"
    commit = _commit()
    parts = [
        f"preset {arguments.preset}",
        seeds,
        "; ".join(_describe_task(plan, task) for task in plan.tasks),
        f"torch {metadata.version('torch')}, Python {platform.python_version()}",
        f"kernels {_core.codecs()[-1]['target']}",
    ]
    return ", ".join(parts + ([f"commit {commit}"] if commit else []))


def _stop(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _unwinding_on_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind as Ctrl-C does, so that no worker is left running."""
    before = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 fine, 1 a run failed, 2 wrong usage, above 128 stopped by a signal."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    _check_numbers(parser, arguments)
    try:
        from gradwire.compare import report, runner, summary, tables
    except ImportError as error:
        parser.error(f"the comparison needs torch and scikit-learn: {error}")
    plan, missing = _leave_out_missing(
        parser, _make_plan(parser, arguments), bool(arguments.codec)
    )
    minutes = arguments.minutes or settings.PRESETS[arguments.preset].minutes
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = runner.Results(arguments.out / "results.jsonl", runner.build_id())
    runs = plan.runs()
    start = time.monotonic()
    described = _describe(plan, arguments)
    print(f"compare: {described}; {len(runs)} runs, {arguments.jobs} at a time", flush=True)
    if results.foreign:
        print(f"compare: {results.foreign} results in {results.path} are of another build")
    try:
        with _unwinding_on_signals():
            outcome = runner.run_all(runs, results, arguments.jobs, minutes)
    except KeyboardInterrupt:
        print(f"\ncompare: stopped; the same command goes on ({results.path})", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenProcessPool:
        print("compare: a worker was killed, out of memory perhaps; the same command goes on",
              file=sys.stderr)  # fmt: skip
        return 1
    found = results.of(runs)
    content = {
        "settings": described,
        "seconds": time.monotonic() - start,
        "runs_wanted": len(runs),
        "runs_done": len(found),
        "missing": missing,
        "failures": {runner.title(f.run): f.message for f in outcome.failures},
        "groups": summary.summarize(found),
        "runs": found,
    }
    paths = report.write(content, arguments.out)
    print(f"\n{tables.text(content)}\n")
    if arguments.document is not None:
        tables.write_document(arguments.document, content)
        paths.append(arguments.document)
    print(f"compare: {content['seconds']:.0f} s; {', '.join(map(str, paths))}")
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
