"""How gradients get from rank to rank in each run: DDP alone, torch's bf16 hook, Gradwire."""

# No "from __future__ import annotations": DDP compares the annotations of a hook with types.

from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel


class Traffic(NamedTuple):
    """What one rank did, added up over all steps; milliseconds None where nobody measures them."""

    bytes_out: int
    ratio: float
    encode_ms: float | None = None
    decode_ms: float | None = None
    wire_ms: float | None = None
    wait_ms: float | None = None


class TorchExchange:
    """DDP's own all-reduce of float32, or of bfloat16 through torch's hook."""

    def __init__(self, model: DistributedDataParallel, codec: str) -> None:
        self._bytes_per_value = 4
        if codec == "bf16":
            self._bytes_per_value = 2
            model.register_comm_hook(None, as_bfloat16)
        self._values = sum(parameter.numel() for parameter in model.parameters())

    def traffic(self, steps: int) -> Traffic:
        """A ring sends each value 2 (W - 1) / W times."""
        world = dist.get_world_size()
        sent = steps * self._values * self._bytes_per_value * 2 * (world - 1) // world
        return Traffic(sent, ratio=4 / self._bytes_per_value)


# DDP checks a hook called bf16_compress_hook for NCCL; under another name it runs on Gloo too.
def as_bfloat16(state: None, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    return default_hooks.bf16_compress_hook(state, bucket)


class GradwireExchange:
    """gradwire.attach(): the one line that a user adds."""

    def __init__(self, model: DistributedDataParallel, codec: str) -> None:
        import gradwire

        self._handle = gradwire.attach(model, codec=codec, deadline=30.0)

    def traffic(self, steps: int) -> Traffic:
        stats: dict[str, Any] = self._handle.stats()
        if stats["steps"] != steps or stats["fallbacks"]:
            raise RuntimeError(f"{steps} steps done, but Gradwire says {stats}")
        milliseconds = (stats[name] for name in ("encode_ms", "decode_ms", "wire_ms", "wait_ms"))
        return Traffic(stats["bytes_out"], stats["ratio"], *milliseconds)


Exchange = TorchExchange | GradwireExchange


def make_exchange(model: DistributedDataParallel, codec: str) -> Exchange:
    if codec in ("none", "bf16"):
        return TorchExchange(model, codec)
    return GradwireExchange(model, codec)


def relative_error(result: torch.Tensor, local: torch.Tensor) -> float:
    """L2 distance of an all-reduced gradient from the mean in float64, relative to the mean.

    `local` is what this rank contributed. Collective; the same number on all ranks.
    """
    gathered = [torch.empty_like(local) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, local)
    mean = torch.stack([values.to(torch.float64) for values in gathered]).mean(dim=0)
    return float((result.to(torch.float64) - mean).norm() / mean.norm())
