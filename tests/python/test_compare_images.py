"""The reader of IDX files and the order of images, of demo and comparison."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from gradwire.compare import images


def idx(values: np.ndarray) -> bytes:
    sizes = struct.pack(f">{values.ndim}I", *values.shape)
    return b"\0\0\x08" + bytes([values.ndim]) + sizes + values.tobytes()


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content))
    return path


def test_idx_round_trip(tmp_path: Path) -> None:
    values = np.arange(2 * 3 * 5, dtype=np.uint8).reshape(2, 3, 5)
    assert np.array_equal(images.read_idx(write(tmp_path / "a.gz", idx(values))), values)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\0\x0b\x01", idx(np.zeros(4, np.uint8))[:-1], idx(np.zeros(4, np.uint8)) + b"x"],
)
def test_damaged_idx(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ValueError, match="a.gz"):
        images.read_idx(write(tmp_path / "a.gz", content))


def test_images_and_labels_must_agree(tmp_path: Path) -> None:
    write(tmp_path / "train-images-idx3-ubyte.gz", idx(np.zeros((3, 28, 28), np.uint8)))
    write(tmp_path / "train-labels-idx1-ubyte.gz", idx(np.zeros(2, np.uint8)))
    with pytest.raises(ValueError, match="2 labels"):
        images.read_split(tmp_path, "train")


def test_digits_where_there_is_no_folder(tmp_path: Path) -> None:
    dataset = images.load(tmp_path / "none")
    assert dataset.name == "scikit-learn digits"
    assert dataset.train.images.shape == (1497, 28, 28)
    assert set(dataset.test.labels.tolist()) == set(range(10))
    pixels = dataset.pixels(dataset.train.images)
    assert pixels.shape == (1497, 1, 28, 28)
    assert abs(pixels.mean()) < 0.1 and abs(pixels.std() - 1) < 0.1


def test_permutation_is_epoch_after_epoch() -> None:
    order = images.permutation(10, 25, seed=3)
    assert order.shape == (25,)
    assert sorted(order[:10].tolist()) == sorted(order[10:20].tolist()) == list(range(10))
    assert torch.equal(order, images.permutation(10, 25, seed=3))
    assert not torch.equal(order, images.permutation(10, 25, seed=4))
