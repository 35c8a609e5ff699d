"""The tasks: data, model, optimizer and loss. The same seed gives the same weights and batches."""

from __future__ import annotations

import math
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from gradwire.compare import images
from gradwire.compare.models import Gpt, make_autoencoder, make_cnn
from gradwire.compare.settings import LONGER, Size

_TEXT_BYTES = 4_000_000
_HELD_OUT_EVERY = 10  # every tenth file of the text is held out
_EVALUATED = 500  # samples at a time

Batch = tuple[torch.Tensor, torch.Tensor]


class Task(NamedTuple):
    """``batch(step)`` gives the samples of a step, shared out to the ranks by their order;
    ``held_out`` the samples that the loss is measured on."""

    name: str
    data: str
    optimizer_name: str
    model: nn.Module
    optimizer: torch.optim.Optimizer
    rate: float  # highest learning rate
    beta: float  # of the second moment
    clip: float | None  # norm that gradients are cut to
    batch: Callable[[int], Batch]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # mean over the samples
    held_out: Batch

    def learning_rate(self, step: int, steps: int) -> float:
        """Rises over a tenth of the run, at most 20 steps, then falls to zero in a line."""
        warm_up = max(1, min(20, steps // 10))
        return self.rate * min(1.0, (step + 1) / warm_up) * (1 - step / steps)


def evaluate(task: Task) -> tuple[float, float | None]:
    """Held-out loss, and the part of right answers where targets are classes of whole samples."""
    inputs, targets = task.held_out
    is_classifier = targets.dim() == 1
    total = 0.0
    right = 0
    with torch.inference_mode():
        for first in range(0, len(inputs), _EVALUATED):
            part = slice(first, first + _EVALUATED)
            output = task.model(inputs[part])
            total += float(task.loss(output, targets[part])) * len(inputs[part])
            if is_classifier:
                right += int((output.argmax(dim=1) == targets[part]).sum())
    return total / len(inputs), right / len(inputs) if is_classifier else None


def source_files(folder: Path) -> list[Path]:
    """Python's own sources, without tests and installed packages, in an order that is fixed."""
    skipped = {"site-packages", "dist-packages", "test", "tests", "__pycache__", "idlelib"}
    found = folder.rglob("*.py")
    return sorted(path for path in found if not skipped & set(path.relative_to(folder).parts))


@cache
def read_text(folder: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Bytes to train on and bytes that are held out, uint8. ValueError where there are too few."""
    parts: tuple[list[bytes], list[bytes]] = ([], [])
    size = 0
    for number, path in enumerate(source_files(folder)):
        if size >= _TEXT_BYTES:
            break
        content = path.read_bytes()
        parts[number % _HELD_OUT_EVERY == 0].append(content)
        size += len(content)
    train, test = (torch.frombuffer(bytearray(b"".join(p) or b" "), dtype=torch.uint8)
                   for p in parts)  # fmt: skip
    if min(len(train), len(test)) < 10_000:
        raise ValueError(f"{folder} has too few Python sources to train on ({size} bytes)")
    return train, test


@cache
def read_images() -> images.Dataset:
    return images.load()


def _windows(text: torch.Tensor, starts: torch.Tensor, length: int) -> Batch:
    rows = text[starts[:, None] + torch.arange(length + 1)]
    return rows[:, :-1], rows[:, 1:].long()


def _loss_of_bytes(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_gpt_task(size: Size, seed: int) -> Task:
    train, test = read_text(Path(sysconfig.get_paths()["stdlib"]))
    length = size.model["length"]
    model = Gpt(**size.model)

    def batch(step: int) -> Batch:
        generator = torch.Generator().manual_seed((seed << 32) + step)
        starts = torch.randint(len(train) - length - 1, (size.batch,), generator=generator)
        return _windows(train, starts, length)

    starts = torch.linspace(0, len(test) - length - 2, size.held_out).long()
    rate, beta = 2e-3, 0.999
    optimizer = torch.optim.AdamW(model.parameters(), rate, (0.9, beta), weight_decay=0.01)
    data = f"Python's standard library ({len(train):,} + {len(test):,} bytes)"
    return Task("gpt", data, "AdamW", model, optimizer, rate, beta, 1.0, batch,
                _loss_of_bytes, _windows(test, starts, length))  # fmt: skip


def make_cnn_task(size: Size, seed: int) -> Task:
    dataset = read_images()
    model = make_cnn(**size.model)
    order = _shuffled(len(dataset.train.labels), size, seed)

    def batch(step: int) -> Batch:
        chosen = order(step)
        return dataset.pixels(dataset.train.images[chosen]), dataset.train.labels[chosen]

    held_out = (dataset.pixels(dataset.test.images[: size.held_out]),
                dataset.test.labels[: size.held_out])  # fmt: skip
    rate = 0.05
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    return Task("cnn", dataset.name, "SGD with momentum .9", model, optimizer, rate, 0.999, None,
                batch, cross_entropy, held_out)  # fmt: skip


def make_autoencoder_task(size: Size, seed: int) -> Task:
    from sklearn.datasets import load_digits

    pixels = torch.from_numpy(load_digits().data).to(torch.float32).div_(16)
    train, test = pixels[: -size.held_out], pixels[-size.held_out :]
    model = make_autoencoder()
    order = _shuffled(len(train), size, seed)

    def batch(step: int) -> Batch:
        chosen = train[order(step)]
        return chosen, chosen

    rate, beta = 3e-3, 0.999
    optimizer = torch.optim.AdamW(model.parameters(), rate, (0.9, beta), weight_decay=0.0)
    return Task("autoencoder", "scikit-learn digits", "AdamW", model, optimizer, rate, beta, None,
                batch, _loss_of_pixels, (test, test))  # fmt: skip


def _loss_of_pixels(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Squared error of an image, in squares of full brightness."""
    return mse_loss(output, target) * target.shape[1]


def _shuffled(count: int, size: Size, seed: int) -> Callable[[int], torch.Tensor]:
    """The samples of a step, also of a run that is longer."""
    steps = math.ceil(size.steps * LONGER) + 1
    order = images.permutation(count, steps * size.batch, seed)
    return lambda step: order[step * size.batch : (step + 1) * size.batch]


_MAKERS = {"gpt": make_gpt_task, "cnn": make_cnn_task, "autoencoder": make_autoencoder_task}


def make_task(name: str, size: Size, seed: int) -> Task:
    torch.manual_seed(seed)
    return _MAKERS[name](size, seed)
