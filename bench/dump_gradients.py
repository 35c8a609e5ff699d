"""Writes real gradients to measure codecs on: a small network, some steps into training.

Usage: dump_gradients.py OUT.safetensors [--steps N]

The data are scikit-learn's digits, the dtype is float32, and the same arguments give the same
values on the same machine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch import nn

BATCH = 128


def make_model() -> nn.Module:
    """About 2.3 million parameters: convolutions, a norm, wide linear layers."""
    return nn.Sequential(
        nn.Conv2d(1, 64, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(64, 128, 3, padding=1),
        nn.BatchNorm2d(128),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2048, 1024),
        nn.ReLU(),
        nn.Linear(1024, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()

    torch.manual_seed(1)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(arguments.steps):
        batch = torch.randint(len(images), (BATCH,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()

    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    save_file(gradients, arguments.out)
    count = sum(gradient.numel() for gradient in gradients.values())
    print(f"{arguments.out}: {count} values after {arguments.steps} steps, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
