"""What the tests of the command line share: calling it, and values for it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Run:
    """What one call of the command line did."""

    status: int
    out: str
    err: str


class Cli:
    def __init__(self, binary: str) -> None:
        self.binary = binary

    def __call__(self, *arguments: object, status: int | None = 0) -> Run:
        """Runs it; `status` is the expected exit status, None: any."""
        done = subprocess.run(
            [self.binary, *map(str, arguments)], capture_output=True, text=True, timeout=120
        )
        run = Run(done.returncode, done.stdout, done.stderr)
        assert run.status in (0, 1, 2), run  # never by a signal
        if status is not None:
            assert run.status == status, run
        if run.status != 0:
            assert run.err.startswith("gradwire: "), run
            assert run.err.count("\n") == 1, run
        return run


def gradient(shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    """Values whose size differs from row to row, as that of gradients does."""
    rng = np.random.default_rng(seed)
    scale = np.exp2(rng.integers(-20, -5, shape[:1] + (1,) * (len(shape) - 1)))
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def mixed_tensors() -> dict[str, np.ndarray]:
    """Every type that safetensors' numpy writer knows, and odd shapes."""
    x = gradient((40, 30))
    return {
        "weight": x,
        "bias": gradient((5001,), 2),
        "empty": np.zeros((0, 3), np.float32),
        "scalar": np.array(2.5, np.float32),
        "half": x.astype(np.float16),
        "bf16": x.astype(ml_dtypes.bfloat16),
        "double": x.astype(np.float64),
        "steps": np.arange(7, dtype=np.int64),
        "i32": np.arange(-3, 4, dtype=np.int32),
        "i16": np.arange(5, dtype=np.int16),
        "i8": np.arange(-2, 2, dtype=np.int8),
        "u8": np.arange(9, dtype=np.uint8),
        "u16": np.arange(3, dtype=np.uint16),
        "u32": np.arange(3, dtype=np.uint32),
        "u64": np.arange(3, dtype=np.uint64),
        "mask": np.array([True, False, True]),
    }
