#!/usr/bin/env python3
"""One rank of one run: trains, measures, and on rank 0 shows progress and writes the result.

Started by launcher.py through tools/two_hosts, or by torchrun.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from exchange import make_exchange, relative_error
from model import learning_rate, make_model, make_optimizer
from settings import BATCH, BUCKET_MB, CODECS, DEBIAN_FOLDER, PEAK_RATE, SEED

from gradwire.compare.images import Dataset, Split, load, permutation

SAMPLED = (0.05, 0.35, 0.65, 0.95)  # parts of the run after which rel_l2 is measured
SHORT_EVALUATION = 2000  # test images, on the way


class Run:
    def __init__(self, arguments: argparse.Namespace, dataset: Dataset) -> None:
        self.arguments = arguments
        self.dataset = dataset
        self.steps: int = arguments.steps
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        self.model = DistributedDataParallel(
            make_model(SEED), bucket_cap_mb=BUCKET_MB, gradient_as_bucket_view=True
        )
        self.optimizer = make_optimizer(self.model, PEAK_RATE)
        self.exchange = make_exchange(self.model, arguments.codec)
        self.order = permutation(
            len(dataset.train.labels), self.steps * BATCH * self.world, seed=SEED
        )
        # DDP rebuilds its buckets and connections are made in the first steps.
        self.warm_up = min(8, self.steps // 4)
        self.sampled = {max(self.warm_up, int(part * self.steps)) for part in SAMPLED}
        self.losses: list[float] = []
        self.step_ms: dict[int, float] = {}
        self.cpu_ms: dict[int, float] = {}  # of all threads of this rank
        self.link_bytes: dict[int, int] = {}
        self.compute_ms: list[float] = []
        self.optimizer_ms: list[float] = []
        self.errors: list[float] = []
        self.tests: list[dict[str, float]] = []
        self.replicas_identical = True
        self.last_shown = 0.0
        device = os.environ.get("GLOO_SOCKET_IFNAME", "lo")
        self.counter = Path("/sys/class/net", device, "statistics/tx_bytes")

    # ---- training ----

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        first = (step * self.world + self.rank) * BATCH
        chosen = self.order[first : first + BATCH]
        train = self.dataset.train
        return self.dataset.pixels(train.images[chosen]), train.labels[chosen]

    def backward(self, step: int) -> torch.Tensor:
        images, labels = self.batch(step)
        loss = cross_entropy(self.model(images), labels)
        loss.backward()
        return loss.detach()

    def update(self, step: int) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(step, self.steps, PEAK_RATE)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def train(self) -> None:
        for step in range(self.steps):
            sent = self.sent_bytes()
            start, cpu = time.perf_counter(), time.process_time()
            local = self.local_gradient(step) if step in self.sampled else None
            loss = self.backward(step)
            if local is not None:
                self.compare(local)
            updated = time.perf_counter()
            self.update(step)
            self.optimizer_ms.append(1e3 * (time.perf_counter() - updated))
            milliseconds = 1e3 * (time.perf_counter() - start)
            self.losses.append(float(loss))
            if step >= self.warm_up and local is None:
                self.step_ms[step] = milliseconds
                self.cpu_ms[step] = 1e3 * (time.process_time() - cpu)
                self.link_bytes[step] = self.sent_bytes() - sent
            every = max(4, self.steps // 8)
            if step % every == every - 1 and step + 1 < self.steps:
                self.test(step, SHORT_EVALUATION)
            self.show(step)
        self.test(self.steps - 1, 2000 if self.arguments.short else None)

    def sent_bytes(self) -> int:
        return int(self.counter.read_text())

    # ---- measuring ----

    def flat_gradient(self) -> torch.Tensor:
        return torch.cat([p.grad.flatten() for p in self.model.parameters() if p.grad is not None])

    def local_gradient(self, step: int) -> torch.Tensor:
        """The gradient of this rank alone; also shows what a step costs without any network."""
        start = time.perf_counter()
        with self.model.no_sync():
            self.backward(step)
        self.compute_ms.append(1e3 * (time.perf_counter() - start))
        local = self.flat_gradient()
        self.optimizer.zero_grad()
        return local

    def compare(self, local: torch.Tensor) -> None:
        result = self.flat_gradient()
        self.errors.append(relative_error(result, local))
        self.check_replicas([result])

    def check_replicas(self, tensors: list[torch.Tensor]) -> None:
        digest = hashlib.sha256()
        for tensor in tensors:
            digest.update(tensor.detach().contiguous().view(torch.uint8).numpy())
        digests = [""] * self.world
        dist.all_gather_object(digests, digest.hexdigest())
        self.replicas_identical &= len(set(digests)) == 1

    def test(self, step: int, count: int | None) -> None:
        """Accuracy and loss on the first `count` test images, shared by the ranks."""
        split = Split(*(part[:count] for part in self.dataset.test))
        totals = torch.zeros(3, dtype=torch.float64)
        with torch.inference_mode():
            for first in range(self.rank * 500, len(split.labels), self.world * 500):
                labels = split.labels[first : first + 500]
                outputs = self.model.module(self.dataset.pixels(split.images[first : first + 500]))
                totals[0] += (outputs.argmax(dim=1) == labels).sum()
                totals[1] += cross_entropy(outputs, labels, reduction="sum")
                totals[2] += len(labels)
        dist.all_reduce(totals)
        accuracy, loss = (totals[:2] / totals[2]).tolist()
        self.tests.append({"step": step + 1, "accuracy": accuracy, "loss": loss})

    # ---- telling ----

    def show(self, step: int) -> None:
        """A line a second; on a terminal it overwrites the one before."""
        is_last = step + 1 == self.steps
        now = time.monotonic()
        if self.rank != 0 or (now - self.last_shown < 1 and not is_last):
            return
        self.last_shown = now
        recent = self.losses[-20:]
        parts = [
            f"{self.arguments.title:<24} step {step + 1:3}/{self.steps}",
            f"loss {statistics.fmean(recent):.3f}",
            f"accuracy {self.tests[-1]['accuracy']:.3f}" if self.tests else "accuracy   -  ",
        ]
        if self.step_ms:
            parts.append(f"{statistics.median(list(self.step_ms.values())[-20:]):4.0f} ms/step")
        on_terminal = sys.stdout.isatty()
        end = "\r" if on_terminal and not is_last else "\n"
        print("  ".join(parts) + ("\033[K" if on_terminal else ""), end=end, flush=True)

    def result(self) -> dict[str, Any]:
        """Collective: some of it is gathered from all ranks."""
        self.check_replicas(list(self.model.parameters()))
        losses = torch.tensor(self.losses, dtype=torch.float64)
        dist.all_reduce(losses)
        losses /= self.world
        traffic = self.exchange.traffic(self.steps)
        times = sorted(self.step_ms.values())
        median = statistics.median(times)
        curve = [self.step_ms.get(step, median) / 1e3 for step in range(self.steps)]
        breakdown = {
            "forward_backward_ms": statistics.median(self.compute_ms),
            "optimizer_ms": statistics.median(self.optimizer_ms),
            "cpu_ms": statistics.median(self.cpu_ms.values()),
        }
        for name in ("encode_ms", "decode_ms", "wire_ms", "wait_ms"):
            total = getattr(traffic, name)
            breakdown[name] = None if total is None else total / self.steps
        return {
            "codec": self.arguments.codec,
            "ratio": traffic.ratio,
            "rel_l2": statistics.fmean(self.errors),
            "bytes_per_step": traffic.bytes_out / self.steps,
            "ms_per_step": median,
            "accuracy": self.tests[-1]["accuracy"],
            "loss": self.tests[-1]["loss"],
            "replicas_identical": self.replicas_identical,
            "steps": self.steps,
            "train_loss": float(losses[-20:].mean()),
            "ms_per_step_p10": times[len(times) // 10],
            "ms_per_step_p90": times[(len(times) * 9) // 10],
            "ms_per_step_mean": statistics.fmean(times),
            "rel_l2_samples": self.errors,
            "link_bytes_per_step": statistics.fmean(self.link_bytes.values()),
            "breakdown": breakdown,
            "loss_curve": losses.tolist(),
            "seconds_curve": torch.tensor(curve, dtype=torch.float64).cumsum(0).tolist(),
            "tests": self.tests,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "dataset": self.dataset.name,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="One rank of one run of the demo.")
    parser.add_argument("--codec", choices=CODECS, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--short", action="store_true", help="test on fewer images")
    parser.add_argument("--title", default="", help="what progress lines begin with")
    parser.add_argument("--data", type=Path, default=DEBIAN_FOLDER)
    parser.add_argument("--result", type=Path, required=True, help="where rank 0 writes its JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    run = Run(arguments, load(arguments.data))
    run.train()
    result = run.result()
    if run.rank == 0:
        arguments.result.write_text(json.dumps(result))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
