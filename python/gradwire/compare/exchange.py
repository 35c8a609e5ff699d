"""How the gradients of all ranks become one: through the collective, or as a peer does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch

from gradwire import _core
from gradwire.compare.settings import CONTROL_STEPS
from gradwire.errors import GradwireError, InvalidArgument


class Traffic(NamedTuple):
    """Bytes that all ranks together sent for one step, and what float32 would have been."""

    raw_bytes: int
    bytes_out: int


class Exchange(Protocol):
    """``reduce`` gets one flat float32 gradient per rank, parameter after parameter, may overwrite
    them, and gives the mean as every rank has it afterwards."""

    def reduce(self, gradients: list[torch.Tensor], step: int) -> tuple[torch.Tensor, Traffic]: ...

    def close(self) -> None: ...


class ReplicasDiffer(RuntimeError):
    """Two ranks got different bits: a defect of the collective."""


class GradwireExchange:
    """Gradwire's all-reduce among threads."""

    def __init__(self, codec: str, ranks: int, shapes: Sequence[torch.Size]) -> None:
        self._codec = codec
        self._group = _core.LocalGroup(ranks)
        self._part_counts = [shape.numel() for shape in shapes]

    def reduce(self, gradients: list[torch.Tensor], step: int) -> tuple[torch.Tensor, Traffic]:
        arrays = [gradient.numpy() for gradient in gradients]
        stats = self._group.all_reduce(arrays, "float32", self._part_counts, self._codec, step)
        first = gradients[0].view(torch.int32)
        for rank, gradient in enumerate(gradients[1:], 1):
            if not torch.equal(first, gradient.view(torch.int32)):
                raise ReplicasDiffer(f"step {step}: ranks 0 and {rank} differ after {self._codec}")
        return gradients[0], Traffic(stats["raw_bytes"], stats["bytes_out"])

    def close(self) -> None:
        pass


class ControlExchange:
    """Coarse in the first steps, exact after: how far chaos alone carries two runs apart."""

    def __init__(self, coarse: Exchange, exact: Exchange, steps: int) -> None:
        self._coarse, self._exact = coarse, exact
        self._disturbed = min(CONTROL_STEPS, steps // 2)

    def reduce(self, gradients: list[torch.Tensor], step: int) -> tuple[torch.Tensor, Traffic]:
        chosen = self._coarse if step < self._disturbed else self._exact
        return chosen.reduce(gradients, step)

    def close(self) -> None:
        self._coarse.close()
        self._exact.close()


def with_seed(codec: str, seed: int) -> str:
    """The codec with its noise drawn from ``seed``, where it draws any."""
    separator = "," if ":" in codec else ":"
    try:
        return _core.codec_text(f"{codec}{separator}seed={seed}")
    except GradwireError:
        return _core.codec_text(codec)


def why_missing(codec: str) -> str | None:
    """None if the codec can be used here, else the reason in words. InvalidArgument for a peer's
    parameter that is wrong."""
    from gradwire.compare import peers

    if peers.is_peer(codec):
        return peers.why_missing(codec)
    try:
        _core.check_dtype(codec, "float32")
    except GradwireError as error:
        return error.message
    return None


def make_exchange(
    codec: str, ranks: int, shapes: Sequence[torch.Size], seed: int
) -> Exchange:
    """The exchange of a codec's text. GradwireError where that is wrong."""
    from gradwire.compare import peers

    if ranks < 2:
        raise InvalidArgument(f"ranks is {ranks}, must be 2 or more", field="ranks")
    if peers.is_peer(codec):
        return peers.make(codec, ranks, shapes, seed)
    return GradwireExchange(with_seed(codec, seed), ranks, shapes)
