"""Values of the golden frames: fixed generators, and small slices of real gradients.

Everything is integer arithmetic or exact scaling by powers of two, so that the inputs are the same
with every numpy. Arrays hold values where numpy has the type, else bit patterns.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

# File, tensor, number of values. From the project's collection of measured gradients.
SLICES = {
    "gpt_f32": ("gpt_step400.safetensors", "blocks.0.fc.weight", 8192),
    "resnet_f32": ("resnet18_step500.safetensors", "conv1.weight", 2352),
    "kfac_f32": ("gpt_step400_kfac.safetensors", "blocks.0.out.weight", 4608),
    "gpt_bf16": ("gpt_step400_bf16.safetensors", "blocks.0.fc.weight", 4608),
}


def random_words(seed: int, count: int) -> np.ndarray:
    """splitmix64: `count` numbers of 64 random bits."""
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


def bell(seed: int, count: int) -> np.ndarray:
    """Roughly normal with deviation 1: sums of twelve uniform numbers of 32 bits, exact."""
    halves = random_words(seed, 6 * count).view(np.uint32).astype(np.int64)
    return np.ldexp((halves.reshape(count, 12).sum(axis=1) - 6 * 2**32).astype(np.float64), -32)


def normal(seed: int, count: int, run: int = 200) -> np.ndarray:
    """Bell-shaped values whose scale changes every `run` values."""
    scales = (random_words(seed + 1, count // run + 1) % np.uint64(14)).astype(np.int64) - 18
    return np.ldexp(bell(seed, count), np.repeat(scales, run)[:count])


def sparse(seed: int, count: int) -> np.ndarray:
    """Nine zeros in ten, some of them -0."""
    chance = random_words(seed + 1, count) % np.uint64(100)
    values = np.where(chance < 90, 0.0, np.ldexp(bell(seed, count), -9))
    return np.where(chance < 5, -0.0, values)


def mostly_zero(seed: int, count: int) -> np.ndarray:
    """One value in fifty is not zero, of few magnitudes."""
    words = random_words(seed, count)
    magnitudes = np.ldexp(1.0, (words >> np.uint64(8) & np.uint64(3)).astype(np.int64) - 9)
    signed = magnitudes * np.where(words >> np.uint64(63), -1.0, 1.0)
    return np.where(words % np.uint64(50) == 0, signed, 0.0)


def unforeseen(seed: int, count: int) -> np.ndarray:
    """All that the sample of 16 lanes sees is 1 and -1; the rest is spread over twelve octaves."""
    words = random_words(seed, count)
    spread = np.ldexp(1.0, (words >> np.uint64(8)).astype(np.int64) % 12 - 8)
    at = np.arange(count)
    seen = at % 256 // 64 == at // 512 % 4
    return np.where(seen, 1.0, spread) * np.where(words >> np.uint64(63), -1.0, 1.0)


def float32_specials() -> np.ndarray:
    """NaN of several payloads, Inf, zeros, subnormals, borders of the exponent range."""
    bits = [
        0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001,
        0xFF812345, 0x7FFFFFFF, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000,
        0x80800000, 0x00800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F7FFFFE, 0x7F000000, 0x3F800000,
        0xBF800000, 0x3F7FFFFF, 0x3F800001, 0x33800000, 0x4B800000, 0x477FE000, 0x477FF000,
        0x38800000, 0x33000000, 0x33000001, 0x3F808000, 0x3F818000, 0x3F80FFFF, 0x00400000,
    ]  # fmt: skip
    return np.array(bits, np.uint32)


def float64_specials() -> np.ndarray:
    high = [0x00000000, 0x80000000, 0x7FF00000, 0xFFF00000, 0x7FF80000, 0xFFF80000, 0x7FEFFFFF,
            0x00100000, 0x000FFFFF, 0x3FF00000, 0xBFF00000, 0x36A00000, 0x36900000, 0x47EFFFFF,
            0x40EFFE00, 0x3E600000]  # fmt: skip
    low = [0, 1, 0xFFFFFFFF, 0x10000000, 0x10000001]
    return np.array([upper << 32 | lower for upper in high for lower in low], np.uint64)


def bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """Cut, not rounded: these are inputs, any will do."""
    return (values.astype("<f4").view("<u4") >> 16).astype("<u2")


def special_group(special: np.ndarray, pattern: str, fill: np.ndarray) -> np.ndarray:
    """Groups of only zeros, only NaN, only subnormals; then specials among ordinary values."""
    nan = special[4]
    parts = [np.zeros(256, pattern), np.full(256, nan, pattern),
             np.arange(1, 257, dtype=pattern), special.astype(pattern)]  # fmt: skip
    ordinary = fill.view(pattern).copy()
    ordinary[:: len(ordinary) // len(special)][: len(special)] = special
    return np.concatenate([*parts, ordinary])


def ladder(exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    """All exponents of a type (of float64 those at the ends and some between), both signs, three
    mantissas; in order, so that groups are steep."""
    fields = np.arange((1 << exponent_bits) - 1, dtype=np.uint64)
    fields = fields[(np.minimum(fields, fields[::-1]) < 128) | (fields % 32 == 0)]
    ones, high = (1 << mantissa_bits) - 1, 1 << mantissa_bits - 1
    sign, odd = 1 << exponent_bits + mantissa_bits, 0x155555 >> max(23 - mantissa_bits, 0)
    shapes = np.array([0, sign, ones, sign | ones, high, sign | odd], np.uint64)
    exponents = np.repeat(fields, len(shapes)) << np.uint64(mantissa_bits)
    pattern = f"<u{(1 + exponent_bits + mantissa_bits) // 8}"
    return (exponents | np.tile(shapes, len(fields))).astype(pattern)


def generated_inputs() -> dict[str, np.ndarray]:
    f32, f64, f16 = np.dtype("<f4"), np.dtype("<f8"), np.dtype("<f2")
    words = random_words(90, 4096)
    exact_bf16 = (bfloat16_bits(normal(60, 5000)).astype("<u4") << np.uint32(16)).view(f32)
    return {
        "normal_f32": normal(10, 33000).astype(f32),
        "sparse_f32": sparse(20, 5000).astype(f32),
        "ladder_f32": ladder(8, 23).view(f32),
        "ladder_f64": ladder(11, 52).view(f64),
        "ladder_f16": ladder(5, 10).view(f16),
        "ladder_bf16": ladder(8, 7),
        "bits_f32": words[:512].view(np.uint32).view(f32),
        "exact_bf16_f32": exact_bf16,
        "specials_f32": special_group(
            float32_specials(), "<u4", normal(30, 700).astype(f32)).view(f32),
        "normal_f64": normal(40, 4400).astype(f64),
        "specials_f64": special_group(float64_specials(), "<u8", normal(31, 700)).view(f64),
        "normal_f16": np.ldexp(bell(50, 4400), -6).astype(f16),
        "bits_f16": words[512:1024].view("<u2").view(f16),
        "normal_bf16": bfloat16_bits(normal(70, 4400)),
        "bits_bf16": words[1024:1536].view("<u2"),
        "constant_f32": np.where(words[2048:2648] % 2 == 0, 1.5, -1.5).astype(f32),
        "mostly_zero_f32": mostly_zero(80, 32800).astype(f32),
        "mostly_zero_f16": mostly_zero(82, 4130).astype(np.float16),
        "mostly_zero_bf16": bfloat16_bits(mostly_zero(83, 4130)),
        "mostly_zero_f64": mostly_zero(84, 4130),
        "unforeseen_f32": unforeseen(81, 4608).astype(f32),
        # Each a little more than a number of bfloat16, which a rounding to float32 takes away.
        "above_bf16_f64": (exact_bf16[:700].astype(f64).view("<u8") | np.uint64(1)).view(f64),
        "bytes": words[1536:1792].view(np.uint8),
    }  # fmt: skip


def real_inputs(folder: Path) -> dict[str, np.ndarray]:
    """Slices of measured gradients; `folder` holds the files named in SLICES."""
    import ml_dtypes  # noqa: F401  (bfloat16 for safetensors)
    from safetensors import safe_open

    inputs = {}
    for name, (file, tensor, count) in SLICES.items():
        with safe_open(folder / file, "np") as tensors:
            values = tensors.get_tensor(tensor).reshape(-1)[:count]
        inputs[name] = values.view("<u2") if name.endswith("_bf16") else values.astype("<f4")
    return inputs
