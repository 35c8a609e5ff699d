"""Models, steps and comparisons that the cases share. Imported in the rank processes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CODECS = [
    "none",
    "cast:dtype=bf16",
    "int8",
    "block:bits=4,rounding=stochastic",
    "lossless",
    "near_lossless",
    "near_lossless:mantissa=6",
]


class Net(nn.Module):
    """Three linear layers of odd sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(33, 129)
        self.second = nn.Linear(129, 65)
        self.third = nn.Linear(65, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(torch.relu(self.second(torch.relu(self.first(x)))))


def ddp(model: nn.Module | None = None, seed: int = 0, **options) -> DistributedDataParallel:
    """A model with the same values on all ranks; several buckets, from its second step on."""
    torch.manual_seed(seed)
    model = Net() if model is None else model
    for parameter in model.parameters():
        with torch.no_grad():
            parameter.copy_(torch.randn(parameter.shape, dtype=torch.float32) * 0.1)
    return DistributedDataParallel(model, **{"bucket_cap_mb": 0.016, **options})


def batch(rank: int, step: int, size: int = 8, features: int = 33) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(size, features, generator=generator)


def train(model: DistributedDataParallel, rank: int, steps: int = 5, first: int = 0) -> list[float]:
    """Plain SGD steps on this rank's data; the losses."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for step in range(first, first + steps):
        optimizer.zero_grad()
        loss = model(batch(rank, step)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype and torch.equal(
        a.detach().contiguous().view(torch.uint8), b.detach().contiguous().view(torch.uint8)
    )


def same_model(a: nn.Module, b: nn.Module) -> bool:
    pairs = zip(a.parameters(), b.parameters(), strict=True)
    return all(same_bits(x, y) for x, y in pairs)


def digest(tensors: Iterable[torch.Tensor]) -> str:
    sha = hashlib.sha256()
    for tensor in tensors:
        sha.update(tensor.detach().contiguous().view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def assert_same_on_all_ranks(tensors: Iterable[torch.Tensor]) -> None:
    mine = digest(tensors)
    digests: list[str] = [""] * dist.get_world_size()
    dist.all_gather_object(digests, mine)
    assert set(digests) == {mine}, f"ranks hold different bits: {digests}"


def on_all_ranks(value: object) -> list:
    values: list = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def raises(kind: type[BaseException], function, *args, **options) -> BaseException:
    """The exception of a call, which must be of this kind."""
    try:
        function(*args, **options)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


class SlowBackward(torch.autograd.Function):
    """Identity whose backward calls a function, between the buckets after and before it."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, function) -> torch.Tensor:
        ctx.function = function
        return x.clone()

    @staticmethod
    def backward(ctx, grad: torch.Tensor):
        ctx.function()
        return grad, None


def wait_until(condition, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.005)
