"""One run: a task, a codec, a seed, and what came of it."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import torch

from gradwire.compare import exchange, settings, tasks

_SAMPLES = 8  # times that the noise is compared with the second moment
_LEAST_MOMENT = 1e-30  # below it a value is taken as one that never had a gradient


class Run(NamedTuple):
    """What decides the outcome of a run, bit for bit."""

    task: str
    codec: str
    ranks: int
    seed: int
    size: settings.Size

    def codec_text(self) -> str:
        """The codec that carries the gradients for most of the run."""
        named = {settings.CONTROL: settings.REFERENCE, settings.LONGER_RUN: settings.REFERENCE}
        return named.get(self.codec, self.codec)

    def steps(self) -> int:
        if self.codec == settings.LONGER_RUN:
            return max(self.size.steps + 1, round(self.size.steps * settings.LONGER))
        return self.size.steps


class Noise:
    """The error of the exchange against the second moment of the gradients.

    Both are averaged per value as Adam averages its squares: n of the error's squares, v of the
    exact mean gradient's. ``over_moment`` is the mean of n / v over the values, ``share`` the mean
    of n / (n + v), which no single value can dominate.
    """

    def __init__(self, values: int, beta: float, steps: int) -> None:
        self._beta = beta
        self._moment = torch.zeros(values)
        self._error = torch.zeros(values)
        self._sampled = {round(steps * (i + 1) / _SAMPLES) for i in range(_SAMPLES)}
        self._steps = 0
        self.over_moment: list[float] = []
        self.share: list[float] = []
        self.relative: list[float] = []

    def add(self, mean: torch.Tensor, result: torch.Tensor) -> None:
        error = result - mean
        norm = float(mean.norm())
        if norm > 0:
            self.relative.append(float(error.norm()) / norm)
        for average, values in ((self._moment, mean), (self._error, error)):
            average.mul_(self._beta).addcmul_(values, values, value=1 - self._beta)
        self._steps += 1
        if self._steps in self._sampled:
            self._sample()

    def _sample(self) -> None:
        alive = self._moment > _LEAST_MOMENT
        if not bool(alive.any()):
            return
        n, v = self._error[alive].double(), self._moment[alive].double()
        self.over_moment.append(float((n / v).mean()))
        self.share.append(float((n / (n + v)).mean()))


class Trainer:
    def __init__(self, run: Run) -> None:
        torch.set_num_threads(1)
        self.run = run
        self.steps = run.steps()
        self.task = tasks.make_task(run.task, run.size, run.seed)
        self.parameters = list(self.task.model.parameters())
        shapes = [parameter.shape for parameter in self.parameters]
        self.values = sum(shape.numel() for shape in shapes)
        self.exchange = self._make_exchange(shapes)
        self.noise = Noise(self.values, self.task.beta, self.steps)
        self.norms: list[float] = []
        self.clipped = 0
        self.raw_bytes = self.bytes_out = 0
        self.train_losses: list[float] = []

    def _make_exchange(self, shapes: list[torch.Size]) -> exchange.Exchange:
        run = self.run
        made = exchange.make_exchange(run.codec_text(), run.ranks, shapes, run.seed)
        if run.codec != settings.CONTROL:
            return made
        coarse = exchange.make_exchange(settings.CONTROL_CODEC, run.ranks, shapes, run.seed)
        return exchange.ControlExchange(coarse, made, self.steps)

    def train(self) -> None:
        try:
            for step in range(self.steps):
                self._step(step)
        finally:
            self.exchange.close()

    def _step(self, step: int) -> None:
        gradients = self._gradients(step)
        mean = torch.stack(gradients).mean(dim=0, dtype=torch.float64).float()
        result, traffic = self.exchange.reduce(gradients, step)
        self.raw_bytes += traffic.raw_bytes
        self.bytes_out += traffic.bytes_out
        self.noise.add(mean, result)
        norm = float(result.norm())
        self.norms.append(norm)
        if self.task.clip is not None and norm > self.task.clip:
            self.clipped += 1
            result = result * (self.task.clip / norm)
        self._update(result, step)

    def _gradients(self, step: int) -> list[torch.Tensor]:
        """Each rank's gradient, computed in turn: the mean over its own samples."""
        inputs, targets = self.task.batch(step)
        flat = []
        losses = []
        own = len(inputs) // self.run.ranks
        for rank in range(self.run.ranks):
            part = slice(rank * own, (rank + 1) * own)
            self.task.optimizer.zero_grad()
            loss = self.task.loss(self.task.model(inputs[part]), targets[part])
            loss.backward()
            losses.append(float(loss.detach()))
            flat.append(torch.cat([p.grad.flatten() for p in self.parameters]))
        self.train_losses.append(sum(losses) / len(losses))
        return flat

    def _update(self, gradient: torch.Tensor, step: int) -> None:
        first = 0
        for parameter in self.parameters:
            last = first + parameter.numel()
            parameter.grad.copy_(gradient[first:last].view_as(parameter))
            first = last
        for group in self.task.optimizer.param_groups:
            group["lr"] = self.task.learning_rate(step, self.steps)
        self.task.optimizer.step()


def _mean(values: list[float]) -> float | None:
    """None for no values, and where they are not finite: JSON has neither NaN nor Inf."""
    mean = sum(values) / len(values) if values else math.nan
    return mean if math.isfinite(mean) else None


def execute(run: Run) -> dict[str, Any]:
    """Trains and returns the run's line in the file of results."""
    start, cpu = time.perf_counter(), time.process_time()
    trainer = Trainer(run)
    trainer.train()
    task = trainer.task
    loss, accuracy = tasks.evaluate(task)
    return {
        **identity(run),
        "loss": loss if math.isfinite(loss) else None,
        "accuracy": accuracy,
        "train_loss": _mean(trainer.train_losses[-20:]),
        "ratio": trainer.raw_bytes / trainer.bytes_out,
        "rel_l2": _mean(trainer.noise.relative),
        "noise_over_moment": _mean(trainer.noise.over_moment),
        "noise_share": _mean(trainer.noise.share),
        "gradient_norm": _mean(trainer.norms),
        "clip_rate": None if task.clip is None else trainer.clipped / trainer.steps,
        "parameters": trainer.values,
        "data": task.data,
        "optimizer": task.optimizer_name,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,  # without that of peers in other processes
    }


def identity(run: Run) -> dict[str, Any]:
    """The fields by which a later call knows that this run has been done."""
    return {
        "task": run.task,
        "codec": run.codec,
        "ranks": run.ranks,
        "seed": run.seed,
        "steps": run.steps(),
        "batch": run.size.batch,
        "held_out": run.size.held_out,
        "model": run.size.model,
    }
