"""Which runs there are, which have been done, and doing the rest in processes side by side."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import gradwire
from gradwire import _core
from gradwire.compare import settings
from gradwire.compare.settings import Size
from gradwire.compare.training import Run, execute, identity

Result = dict[str, Any]


class Plan(NamedTuple):
    """What one call of the comparison wants done."""

    tasks: tuple[str, ...]
    codecs: tuple[str, ...]
    seeds: int
    ranks: dict[str, tuple[int, ...]]
    sizes: dict[str, Size]

    def runs(self) -> list[Run]:
        """Seed after seed, so that a plan which is cut short has pairs of every codec."""
        extra = (settings.REFERENCE, settings.LONGER_RUN, settings.CONTROL)
        return [
            Run(task, codec, ranks, seed, self.sizes[task])
            for seed in range(self.seeds)
            for task in self.tasks
            for ranks in self.ranks[task]
            for codec in dict.fromkeys((*extra, *self.codecs))
        ]


def build_id() -> str:
    """Names the code that decides results: the library's and this package's bytes."""
    digest = hashlib.sha256()
    sources = [Path(_core.__file__), *Path(__file__).parent.glob("*.py")]
    sources += (Path(gradwire.__file__).parent / "schedule").glob("*.py")
    for path in sorted(sources):
        if path.name not in _PRESENTATION:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


# Files of this package that no outcome of a run depends on.
_PRESENTATION = ("report.py", "tables.py", "pictures.py", "summary.py", "statistics.py",
                 "__main__.py")  # fmt: skip


class Results:
    """The file of results: a JSON object a line, written when a run is done."""

    def __init__(self, path: Path, build: str) -> None:
        self.path = path
        self.build = build
        self.lines: list[Result] = []
        self.foreign = 0  # lines of another build, which are left alone
        self.damaged = 0
        if path.exists():
            self._read()

    def _read(self) -> None:
        content = self.path.read_text(encoding="utf-8")
        for line in content.splitlines():
            try:
                result = json.loads(line)
                known = result["build"] == self.build
            except (ValueError, TypeError, KeyError):
                self.damaged += 1  # a line that an interrupted call did not finish
                continue
            if known:
                self.lines.append(result)
            else:
                self.foreign += 1
        if content and not content.endswith("\n"):
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def add(self, result: Result) -> None:
        result = {**result, "build": self.build}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.lines.append(result)

    def of(self, runs: Iterable[Run]) -> list[Result]:
        """The results of these runs, as far as there are any; the newest of each."""
        found = {_key(result): result for result in self.lines}
        keys = (_key(identity(run)) for run in runs)
        return [found[key] for key in keys if key in found]

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        done = {_key(result) for result in self.lines}
        return [run for run in runs if _key(identity(run)) not in done]


_FIELDS = ("task", "codec", "ranks", "seed", "steps", "batch", "held_out", "model")


def _key(result: Result) -> str:
    return json.dumps([result.get(field) for field in _FIELDS], sort_keys=True)


class Failure(NamedTuple):
    run: Run
    message: str


class Outcome(NamedTuple):
    done: int
    failures: list[Failure]
    is_cut_short: bool  # time was up before all runs were started


def title(run: Run) -> str:
    return f"{run.task} on {run.ranks} ranks, seed {run.seed}, {run.codec}"


class Progress:
    """A line for each run; on a terminal a bar that is overwritten."""

    _WIDTH = 24

    def __init__(self, total: int, done_before: int) -> None:
        self._total, self._before, self._done = total, done_before, 0
        self._start = time.monotonic()
        self._on_terminal = sys.stdout.isatty()

    def show(self, run: Run, text: str) -> None:
        self._done += 1
        count = self._before + self._done
        elapsed = time.monotonic() - self._start
        left = elapsed / self._done * (self._total - count)
        bar = "#" * (self._WIDTH * count // self._total)
        line = (f"[{bar:<{self._WIDTH}}] {count}/{self._total}  {title(run)}: {text}  "
                f"({left / 60:.1f} min left)")  # fmt: skip
        if self._on_terminal:
            print(f"\r\033[K{line}", end="\n" if count == self._total else "", flush=True)
        else:
            print(line, flush=True)


def _describe(result: Result) -> str:
    loss = result["loss"]
    return f"loss {'not finite' if loss is None else format(loss, '.4f')}"


def run_all(
    runs: Sequence[Run], results: Results, jobs: int, minutes: float | None = None
) -> Outcome:
    """Does what is missing of ``runs``, ``jobs`` at a time, and adds each to ``results``.

    A run that fails is reported and left out; the next call tries it again. After ``minutes``
    no more are started.
    """
    todo = results.missing(runs)
    progress = Progress(len(runs), len(runs) - len(todo))
    end = None if minutes is None else time.monotonic() + 60 * minutes
    failures: list[Failure] = []
    waiting = iter(todo)
    is_cut_short = False
    done = 0
    # Not by fork: torch's threads do not survive it.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _ignore_interrupts) as pool:
        running: dict[Future[Result], Run] = {}
        try:
            for run in waiting:
                if len(running) == jobs:
                    done += _collect(running, results, progress, failures)
                if end is not None and time.monotonic() > end:
                    is_cut_short = True
                    break
                running[pool.submit(execute, run)] = run
            while running:
                done += _collect(running, results, progress, failures)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()  # or the pool would wait until its runs are done
            raise
    return Outcome(done, failures, is_cut_short)


def _ignore_interrupts() -> None:
    """In a worker: Ctrl-C is for the process that started it, which ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _collect(
    running: dict[Future[Result], Run],
    results: Results,
    progress: Progress,
    failures: list[Failure],
) -> int:
    """Waits until one of the runs ends at least; how many gave a result."""
    finished, _ = wait(running, return_when=FIRST_COMPLETED)
    count = 0
    for future in finished:
        run = running.pop(future)
        error = future.exception()
        if error is None:
            results.add(future.result())
            progress.show(run, _describe(future.result()))
            count += 1
        else:
            failures.append(Failure(run, f"{type(error).__name__}: {error}"))
            progress.show(run, f"FAILED: {failures[-1].message}")
    return count


def usable(codecs: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Each codec with None, or with the reason why it cannot be used here."""
    from gradwire.compare.exchange import why_missing

    for codec in dict.fromkeys(codecs):
        yield codec, why_missing(codec)
