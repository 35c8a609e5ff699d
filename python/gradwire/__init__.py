"""Gradwire: compressed gradients for distributed training.

    handle = gradwire.attach(model, codec="near_lossless")     # DistributedDataParallel
    gradwire.all_reduce(tensor, op="avg", codec="near_lossless")
    blob = gradwire.encode(array, codec="lossless"); array = gradwire.decode(blob)

What needs torch is loaded when it is first used, so that arrays and files can be encoded without.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gradwire import schedule
from gradwire.codecs import codecs, decode, decode_part, encode, inspect, verify
from gradwire.errors import (
    DeadlineExceeded,
    GradwireError,
    PeerError,
    PeerLost,
    PeerMismatch,
    UnknownCodec,
    UnsupportedDType,
)

if TYPE_CHECKING:
    from gradwire.collectives import all_reduce
    from gradwire.ddp import Handle, HookState, attach, hook

_TORCH_NAMES = {
    "Handle": "gradwire.ddp",
    "HookState": "gradwire.ddp",
    "all_reduce": "gradwire.collectives",
    "attach": "gradwire.ddp",
    "hook": "gradwire.ddp",
}

__all__ = [
    "DeadlineExceeded",
    "GradwireError",
    "Handle",
    "HookState",
    "PeerError",
    "PeerLost",
    "PeerMismatch",
    "UnknownCodec",
    "UnsupportedDType",
    "all_reduce",
    "attach",
    "codecs",
    "decode",
    "decode_part",
    "encode",
    "hook",
    "inspect",
    "schedule",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _TORCH_NAMES:
        raise AttributeError(f"module 'gradwire' has no attribute {name!r}")
    value = getattr(importlib.import_module(_TORCH_NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
