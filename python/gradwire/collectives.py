"""Compressed collectives on single tensors."""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.distributed as dist

from gradwire import _groups, _torch_module
from gradwire.errors import InvalidArgument, UnsupportedDType

_torch = _torch_module.load()

# Connections are made at a group's first call and used by all later ones.
_channels: weakref.WeakKeyDictionary[dist.ProcessGroup, tuple[Any, _groups.Connector]]
_channels = weakref.WeakKeyDictionary()


def all_reduce(
    tensor: torch.Tensor,
    op: str = "avg",
    codec: str = "near_lossless",
    group: dist.ProcessGroup | None = None,
    step: int = 0,
    deadline: float = 300.0,
) -> dict[str, Any]:
    """Replaces ``tensor`` on every rank by the mean or sum over the ranks, in place.

    All ranks end with the same bits. Collective; the first call of a group makes connections.

    Args:
        tensor: contiguous, in CPU memory, float32, float64, float16 or bfloat16.
        op: ``"avg"`` or ``"sum"``.
        codec: ``"name"`` or ``"name:key=value,..."``. Stochastic rounding draws other noise on each
            rank and in each half. ``group=tensor`` means the piece of a parameter that one message
            holds: with several ranks each shard of a tensor has its own scale.
        group: the ranks; None: all.
        step: chooses the noise of codecs that round stochastically.
        deadline: seconds that a rank waits for another one at most.

    Returns:
        ``raw_bytes``, ``bytes_out``, ``bytes_in`` and ``ratio`` of this call.

    Raises:
        PeerMismatch: the ranks differ in size, type, op, codec or step; ``tensor`` is unchanged.
        PeerLost, DeadlineExceeded, PeerError: a rank failed; ``tensor`` is unspecified.
        ValueError, TypeError: the arguments of this rank are wrong.
    """
    if op not in ("avg", "sum"):
        raise InvalidArgument(f"op is {op!r}, must be 'avg' or 'sum'", field="op", mine=str(op))
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < 2**64:
        raise InvalidArgument(f"step is {step!r}, must be an integer of 0 or more", field="step")
    _check_tensor(tensor)
    _torch.check_deadline(deadline)
    codec = _torch.canonical(codec)
    _groups.check_available()
    channel, connector = _channel(_groups.resolve(group), deadline)
    connector.deadline = deadline
    raw = channel.all_reduce(tensor, op == "avg", codec, step, deadline)
    out = raw["encoded_bytes_out"]
    return {
        "raw_bytes": raw["raw_bytes_out"],
        "bytes_out": out,
        "bytes_in": raw["encoded_bytes_in"],
        "ratio": raw["raw_bytes_out"] / out if out else None,
    }


def _channel(group: dist.ProcessGroup, deadline: float) -> tuple[Any, _groups.Connector]:
    found = _channels.get(group)
    if found is None:
        connector = _groups.Connector(group, deadline)
        connector.reserve()
        channel = _torch.Channel(connector)
        _groups.close_at_exit(channel)
        found = _channels[group] = (channel, connector)
    return found


def _check_tensor(tensor: torch.Tensor) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"all_reduce needs a torch.Tensor, got {type(tensor).__name__}")
    if tensor.device.type != "cpu":
        raise InvalidArgument(
            f"the tensor is on {tensor.device}; Gradwire reduces tensors in CPU memory only, "
            "call .cpu() first",
            field="device",
            mine=str(tensor.device),
        )
    if tensor.layout != torch.strided:
        raise InvalidArgument(
            f"the tensor's layout is {tensor.layout}; only dense tensors can be reduced",
            field="layout",
        )
    if not tensor.dtype.is_floating_point:
        raise UnsupportedDType(
            f"tensors of type {tensor.dtype} cannot be reduced; "
            "float32, float64, float16 and bfloat16 can",
            field="dtype",
            mine=str(tensor.dtype),
        )
    if not tensor.is_contiguous():
        raise InvalidArgument(
            "the tensor is not contiguous, so it cannot be reduced in place; "
            "call .contiguous() and reduce that",
            field="tensor",
        )
