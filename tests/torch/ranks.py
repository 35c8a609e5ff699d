"""Pairs of processes that run test cases together, and are used again by the next case.

Importing torch costs seconds in each process, so a pair stays alive: it reads the name of a case,
runs it inside a fresh process group, and answers with the outcome. A case is a function
``case_NAME(rank, world)`` of a ``cases_*.py`` file beside this one; it fails by raising.
Everything has a hard time limit; a pair that dies or hangs is killed, and what its ranks printed,
with the stack of every thread, is in the failure's message.

Run as a program this file is one rank.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

FOLDER = Path(__file__).parent


def case_names(file: str) -> list[str]:
    """Names of the cases of a file, found without importing torch."""
    return re.findall(r"^def case_(\w+)\(", (FOLDER / file).read_text(), re.MULTILINE)


class RankFailure(AssertionError):
    """A case failed on some rank; the message has what all ranks said."""


class Rank:
    """One process of a group, with its log."""

    def __init__(self, rank: int, world: int, folder: Path) -> None:
        self.rank = rank
        self.log = folder / f"rank{rank}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(rank), str(world)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def dump_stacks(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Ranks:
    """A group of rank processes that runs one case after the other."""

    def __init__(self, world: int) -> None:
        self.world = world
        self._folder = tempfile.TemporaryDirectory(prefix="gradwire-ranks-")
        self._ranks: list[Rank] = []
        self._calls = 0

    def close(self) -> None:
        for rank in self._ranks:
            rank.kill()
        self._ranks = []
        self._folder.cleanup()

    def run(self, file: str, case: str, timeout: float = 60.0, dies: tuple[int, ...] = ()) -> None:
        """Runs a case on all ranks; those in ``dies`` must end without an answer."""
        is_new = not self._ranks
        if is_new:
            folder = Path(self._folder.name)
            self._ranks = [Rank(rank, self.world, folder) for rank in range(self.world)]
        self._calls += 1
        store = str(Path(self._folder.name) / f"store{self._calls}")
        log_starts = [rank.log.stat().st_size for rank in self._ranks]
        for rank in self._ranks:
            rank.send({"file": file, "case": case, "store": store})
        # The first case of new processes waits for the import of torch.
        limit = timeout + (60.0 if is_new else 0.0)
        answers = self._collect(time.monotonic() + limit)
        wrong = [
            f"rank {rank}: {answers.get(rank, f'no answer within {limit:.0f} s')}"
            for rank in range(self.world)
            if answers.get(rank) != ("died" if rank in dies else "ok")
        ]
        if not wrong and not dies:
            return
        logs = self._logs(log_starts) if wrong else ""
        for rank in self._ranks:  # whatever they hold now, the next case starts afresh
            rank.kill()
        self._ranks = []
        if wrong:
            raise RankFailure(f"case {case} of {file}\n" + "\n".join(wrong) + logs)

    def _collect(self, deadline: float) -> dict[int, str]:
        """What each rank answered: "ok", a traceback, or "died"; silent ranks are missing."""
        answers: dict[int, str] = {}
        while len(answers) < self.world:
            waiting = {r.process.stdout: r for r in self._ranks if r.rank not in answers}
            left = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select(list(waiting), [], [], left)
            if not ready:
                break
            for stream in ready:
                line = stream.readline()
                answer = json.loads(line) if line else "died"
                answers[waiting[stream].rank] = answer
                if answer not in ("ok", "died"):  # the others may wait for this one in vain
                    deadline = min(deadline, time.monotonic() + 10.0)
        return answers

    def _logs(self, starts: list[int]) -> str:
        for rank in self._ranks:
            rank.dump_stacks()
        time.sleep(0.5)
        texts = []
        for rank, start in zip(self._ranks, starts, strict=True):
            text = rank.log.read_bytes()[start:].decode(errors="replace")
            texts.append(f"\n---- log of rank {rank.rank} ----\n{text[-8000:]}")
        return "".join(texts)


def run_scripts(script: str, world: int = 2, timeout: float = 60.0) -> list[tuple[int, str]]:
    """Runs a Python script as separate processes that end by themselves.

    The script finds RANK, WORLD_SIZE and STORE (a file) in its environment. Returns each
    process's exit status and output; one that still runs at the time limit is killed (-9).
    """
    with tempfile.TemporaryDirectory(prefix="gradwire-script-") as folder:
        env = {**os.environ, "WORLD_SIZE": str(world), "STORE": f"{folder}/store"}
        env["OMP_NUM_THREADS"] = "1"
        start = time.monotonic()
        processes = [
            subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-c", script],
                env={**env, "RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(world)
        ]
        results = []
        for process in processes:
            try:
                left = max(0.1, start + timeout - time.monotonic())
                output, _ = process.communicate(timeout=left)
            except subprocess.TimeoutExpired:
                process.kill()
                output, _ = process.communicate()
            results.append((process.returncode, output))
        return results


# ---- one rank ----


def _load(file: str):
    spec = importlib.util.spec_from_file_location(file.removesuffix(".py"), FOLDER / file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _serve(rank: int, world: int) -> None:
    import faulthandler
    from datetime import timedelta

    # Answers go to the real standard output; whatever a case prints goes to the log.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    sys.path.insert(0, str(FOLDER))

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    modules: dict[str, object] = {}
    for line in sys.stdin:
        message = json.loads(line)
        try:
            file = message["file"]
            if file not in modules:
                modules[file] = _load(file)
            dist.init_process_group(
                "gloo",
                init_method=f"file://{message['store']}",
                rank=rank,
                world_size=world,
                timeout=timedelta(seconds=30),
            )
            try:
                getattr(modules[file], f"case_{message['case']}")(rank, world)
            finally:
                torch.set_flush_denormal(False)
                if dist.is_initialized():
                    dist.destroy_process_group()
            answer = "ok"
        except BaseException:
            answer = traceback.format_exc()
        with contextlib.suppress(BrokenPipeError):
            answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]))
