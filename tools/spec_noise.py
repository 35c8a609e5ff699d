"""The noise of section 8 of docs/format.md."""

from __future__ import annotations

from typing import Protocol

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1


class Seeded(Protocol):
    """What an encoder knows of a frame."""

    seed: int
    context: dict[str, int]


def mix32(x: int, addend: int) -> int:
    """triple32 with an addend after the first multiplication."""
    x = (x ^ x >> 17) * 0xED5AD4BB + addend & MASK32
    x = (x ^ x >> 11) * 0xAC4C1B51 & MASK32
    x = (x ^ x >> 15) * 0x31848BAB & MASK32
    return x ^ x >> 14


def mix64(x: int) -> int:
    """The finalizer of splitmix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK64
    return x ^ x >> 31


class Noise:
    """The noise of one parameter."""

    def __init__(self, seed: int, step: int, tensor: int, sender: int, phase: int) -> None:
        key = mix64(mix64(seed) + step & MASK64)
        key = mix64(key + (tensor | sender << 32) & MASK64)
        self.key = mix64(key + phase & MASK64)

    @staticmethod
    def of_key(key: int) -> Noise:
        noise = Noise(0, 0, 0, 0, 0)
        noise.key = key
        return noise

    @staticmethod
    def of_tensor(spec: Seeded, tensor: int) -> Noise:
        c = spec.context
        return Noise(spec.seed, c.get("step", 0), tensor, c.get("sender", 0), c.get("phase", 0))

    def of(self, index: int) -> int:
        """16 bits for the value with this index inside the parameter."""
        pair = index >> 1
        h = mix32(pair & MASK32 ^ self.key & MASK32, (self.key >> 32) + (index >> 33))
        return h >> 16 if index & 1 else h & 0xFFFF
