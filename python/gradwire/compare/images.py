"""Images to train on: Fashion-MNIST from Debian's package, else scikit-learn's digits.

Nothing is downloaded. The demo trains on them too.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from gradwire.compare.settings import DEBIAN_FOLDER

SIDE = 28  # pixels


class Split(NamedTuple):
    """`images`: uint8 [n, 28, 28]; `labels`: int64 [n], 0 to 9."""

    images: torch.Tensor
    labels: torch.Tensor


class Dataset(NamedTuple):
    name: str
    train: Split
    test: Split
    mean: float  # of a sixteenth of the training pixels, 0 to 1
    deviation: float

    def pixels(self, images: torch.Tensor) -> torch.Tensor:
        """uint8 [n, 28, 28] to normalised float32 [n, 1, 28, 28]."""
        scaled = images.to(torch.float32).mul_(1 / 255)
        return scaled.sub_(self.mean).div_(self.deviation).unsqueeze_(1)


def read_idx(path: Path) -> np.ndarray:
    """Reads a gzipped IDX file of bytes: 0, 0, type 8, rank, then big-endian sizes, then data."""
    with gzip.open(path, "rb") as file:
        content = file.read()
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise ValueError(f"{path}: not an IDX file of bytes")
    rank = content[3]
    shape = np.frombuffer(content, ">u4", count=rank, offset=4)
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * rank)
    if values.size != np.prod(shape, dtype=np.int64):
        raise ValueError(f"{path}: {values.size} bytes of data for shape {shape.tolist()}")
    return values.reshape(shape)


def read_split(folder: Path, prefix: str) -> Split:
    images = read_idx(folder / f"{prefix}-images-idx3-ubyte.gz")
    labels = read_idx(folder / f"{prefix}-labels-idx1-ubyte.gz")
    if images.shape != (len(labels), SIDE, SIDE):
        raise ValueError(f"{folder}: {prefix} has {images.shape} images and {len(labels)} labels")
    return Split(torch.from_numpy(images.copy()), torch.from_numpy(labels.astype(np.int64)))


def read_digits() -> tuple[Split, Split]:
    """The 1,797 digits of 8 x 8 pixels that come with scikit-learn, drawn three times as large."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    small = (digits.images * (255 / 16)).astype(np.uint8)
    large = np.pad(small.repeat(3, axis=1).repeat(3, axis=2), ((0, 0), (2, 2), (2, 2)))
    images, labels = torch.from_numpy(large), torch.from_numpy(digits.target.astype(np.int64))
    return Split(images[:1497], labels[:1497]), Split(images[1497:], labels[1497:])


def load(folder: Path = DEBIAN_FOLDER) -> Dataset:
    """Fashion-MNIST from `folder`; where that does not exist, the digits."""
    if folder.is_dir():
        name, train, test = "Fashion-MNIST", read_split(folder, "train"), read_split(folder, "t10k")
    else:
        name, (train, test) = "scikit-learn digits", read_digits()
    some = train.images[::16].flatten()
    histogram = torch.bincount(some, minlength=256).to(torch.float64)
    levels = torch.arange(256, dtype=torch.float64) / 255
    mean = float((histogram * levels).sum() / histogram.sum())
    square = float((histogram * levels.square()).sum() / histogram.sum())
    return Dataset(name, train, test, mean, (square - mean**2) ** 0.5)


def permutation(count: int, wanted: int, seed: int) -> torch.Tensor:
    """`wanted` indices below `count`: one shuffled epoch after the other."""
    generator = torch.Generator().manual_seed(seed)
    epochs = -(-wanted // count)
    shuffled = [torch.randperm(count, generator=generator) for _ in range(epochs)]
    return torch.cat(shuffled)[:wanted]
