"""What is trained, for how long, and with which codecs. Knows no torch, which takes seconds to
import."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")  # package dataset-fashion-mnist

TASKS = ("gpt", "cnn", "autoencoder")
MARGIN = 0.01  # the margin that a difference is compared with, as a part of the steps
LONGER = 1.1  # how much longer the run is whose gain turns losses into steps
CONTROL_STEPS = 20  # at the start, in which the control run is disturbed

# Rows that are not codecs of the registry.
REFERENCE = "none"
CONTROL = "control"  # CONTROL_CODEC in the first steps, exact after
LONGER_RUN = "none, 10 % longer"
CONTROL_CODEC = "int4"
EXACT = ("none", "lossless")  # codecs of the registry that have no row of their own


class Size(NamedTuple):
    """One task at one size. ``batch`` is that of a step, shared by the ranks."""

    steps: int
    batch: int
    held_out: int  # sequences or images that the loss is measured on
    model: dict[str, int] = {}


class Preset(NamedTuple):
    name: str
    seeds: int
    ranks: dict[str, tuple[int, ...]]  # by task
    sizes: dict[str, Size]
    codecs: tuple[str, ...]
    examples: int | None  # of every lossy codec of the registry, besides; None: all
    minutes: float | None  # no run is started after that; None: all are


# Always there: what the others are compared with.
ALWAYS = ("cast:dtype=bf16", "int8", "int4", "near_lossless")

TIERS = ("fine", "unbiased", "coarse", "compso")

LOSSY = (
    "block:bits=6,group=64",
    "block:bits=8,rounding=nearest",
    "block:bits=4,group=128,rounding=nearest",
    "near_lossless:mantissa=1",
    "near_lossless:mantissa=1,rounding=stochastic",
    "near_lossless:step=0.25",
    "near_lossless:step=1",
)

_GROUPS = (32, 64, 128, 256, 512, 1024)
GROUPS = (
    *(f"block:bits=4,group={group}" for group in _GROUPS),
    *(f"error_bounded:bound=1,group={group}" for group in (*_GROUPS, "tensor")),
    *(f"error_bounded:bound=0.125,group={group}" for group in ("tensor",)),
)

# By way of other packages, in the comparison only.
PEERS = ("power_sgd:rank=1", "power_sgd:rank=4", "sz3:bound=0.004")
SHORT_PEERS = ("power_sgd:rank=1", "sz3:bound=0.004")

SHORT_LOSSY = ("near_lossless:mantissa=1", "near_lossless:mantissa=1,rounding=stochastic",
               "near_lossless:step=1", "block:bits=4,group=32", "block:bits=4,group=1024",
               "error_bounded:bound=1,group=tensor")  # fmt: skip

SHORT = Preset(
    name="short",
    seeds=3,
    ranks={"gpt": (4,), "cnn": (4,), "autoencoder": (2,)},
    sizes={
        "gpt": Size(120, 8, 64, {"width": 64, "layers": 2, "heads": 2, "length": 64}),
        "cnn": Size(150, 64, 2000, {"hidden": 64}),
        "autoencoder": Size(200, 64, 300),
    },
    codecs=(*ALWAYS, *TIERS, *SHORT_LOSSY, *SHORT_PEERS),
    examples=1,
    minutes=9,
)

FULL = Preset(
    name="full",
    seeds=8,
    ranks={"gpt": (2, 4), "cnn": (2, 4), "autoencoder": (2, 4)},
    sizes={
        "gpt": Size(400, 8, 256, {"width": 96, "layers": 3, "heads": 3, "length": 128}),
        "cnn": Size(700, 128, 10000, {"hidden": 128}),
        "autoencoder": Size(700, 64, 300),
    },
    codecs=(*ALWAYS, *TIERS, *LOSSY, *GROUPS, *PEERS),
    examples=None,
    minutes=None,
)

PRESETS = {preset.name: preset for preset in (SHORT, FULL)}
