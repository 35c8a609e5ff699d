"""The library against its document: other frames and values than the golden ones.

The library's bytes must equal those of the model encoder (tools/spec_encoder.py), and on damaged
frames the library and the second decoder must agree: the same values, or the same error.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from gradwire import GradwireError, _core

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
sys.path.insert(0, str(ROOT / "tools"))

from spec_decoder import decode_frame  # noqa: E402
from spec_encoder import Part, Spec, encode, entry_with, pack_entry, seal  # noqa: E402
from spec_frame import DTYPES, FormatError, IndexEntry, read_frame  # noqa: E402
from xxhash import xxh3_64_intdigest  # noqa: E402

SECONDS = float(os.environ.get("GRADWIRE_TEST_SECONDS", 4))


def first_seed() -> int:
    """Of GRADWIRE_TEST_SEED, else new every time; in the message of every failure."""
    return int(os.environ.get("GRADWIRE_TEST_SEED", random.SystemRandom().randrange(2**32)))


# ---- encoders ----


def seed_text(chance: random.Random) -> str:
    return f"seed={chance.randrange(2**64)}"


# Codecs 16 and up: the text of one with parameters of its own.
BASELINES = {
    "natural": lambda chance: f"natural:{seed_text(chance)}",
    "mxfp8": lambda chance: f"mxfp8:format={chance.choice(['e4m3', 'e5m2'])}",
    "mxfp4": lambda chance: "mxfp4:",
    "terngrad": lambda chance: (f"terngrad:bucket={8 * chance.randint(1, 80)},"
                                f"clip={chance.choice([0, 1.25, 2.5])},{seed_text(chance)}"),
    "qsgd": lambda chance: (f"qsgd:bits={chance.randint(2, 8)},bucket={8 * chance.randint(1, 80)},"
                            f"norm={chance.choice(['l2', 'max'])},"
                            f"coding={chance.choice(['fixed', 'elias'])},{seed_text(chance)}"),
    "top_k": lambda chance: (f"top_k:fraction={2 ** chance.uniform(-12, 0)!r},"
                             f"dtype={chance.choice(['fp32', 'bf16'])}"),
    "cocktail": lambda chance: (f"cocktail:sample={chance.choice([1, 2, 3, 10])},"
                                f"fraction={2 ** chance.uniform(-8, 0)!r},"
                                f"bits={chance.choice([4, 6, 8])},"
                                f"group={8 * chance.randint(1, 40)},"
                                f"rounding={chance.choice(['nearest', 'stochastic'])},"
                                f"{seed_text(chance)}"),
    "sign": lambda chance: f"sign:bucket={8 * chance.randint(1, 80)}",
    "hadamard": lambda chance: (f"hadamard:bits={chance.choice([4, 6, 8])},"
                                f"group={1 << chance.randint(4, 9)},{seed_text(chance)}"),
}  # fmt: skip


def bounded_text(chance: random.Random, group: str) -> str:
    """Of error_bounded, without the block."""
    rounding = chance.choice(["nearest", "stochastic"])
    scale = chance.choice(["rms", "range", "absmax", "absolute"])
    if scale == "rms":
        bound = min(max(2 ** chance.uniform(-8, 3), 2**-8), 8.0)
        bound /= 2 if rounding == "nearest" else 1
    elif scale == "absolute":
        bound = 2 ** chance.choice([chance.uniform(-20, 3), chance.uniform(-126, 127)])
    else:
        bound = min(max(2 ** chance.uniform(-10.5, 0.5), 2**-10), 1.0)
    seed = f",{seed_text(chance)}" if chance.random() < 0.5 else ""
    return (f"error_bounded:bound={bound!r},scale={scale},{chance.choice([group, 'group=tensor'])},"
            f"rounding={rounding},filter={chance.choice(['on', 'off'])}{seed}")  # fmt: skip


def random_spec(chance: random.Random) -> tuple[str, int]:
    """A codec's text and a dtype's number."""
    text, dtype = random_codec(chance)
    is_coded = text.startswith(("lossless", "near_lossless", "error_bounded"))
    coder = chance.choice(["", ",coder=huffman", ",coder=tans"]) if is_coded else ""
    return text + coder, dtype


def random_codec(chance: random.Random) -> tuple[str, int]:
    block = f"block={4096 * chance.randint(1, 3)}"
    group = f"group={64 * chance.choice([1, 1, 2, 4, 5, 64])}"
    name = chance.choice(
        ["bounded", "bounded", "cast", "block", "lossless", "step", "mantissa", *BASELINES]
    )
    if name == "bounded":
        return f"{bounded_text(chance, group)},{block}", chance.choice([1, 1, 2, 3, 4])
    if name == "cast":
        return f"cast:dtype={chance.choice(['fp16', 'bf16'])},{block}", chance.choice([1, 2])
    if name == "block":
        rounding = chance.choice(["nearest", "stochastic"])
        seed = f",seed={chance.randrange(2**64)}" if rounding == "stochastic" else ""
        return (f"block:bits={chance.choice([4, 6, 8])},group={8 * chance.randint(1, 40)},"
                f"rounding={rounding}{seed},{block}"), chance.choice([1, 2, 3, 4])  # fmt: skip
    if name in BASELINES:
        text = BASELINES[name](chance)
        return text + ("" if text.endswith(":") else ",") + block, 1
    if name == "lossless":
        return f"lossless:{group},{block}", chance.choice([1, 2, 3, 4])
    if name == "step":
        step = min(max(2 ** chance.uniform(-8, 3), 2**-8), 8.0)
        return f"near_lossless:step={step!r},{group},{block}", chance.choice([1, 2, 3, 4])
    noise = f",rounding=stochastic,{seed_text(chance)}" if chance.random() < 0.5 else ""
    mantissa = f"mantissa={chance.randint(1, 16)}"
    return f"near_lossless:{mantissa},{group}{noise},{block}", chance.choice([1, 2, 3, 4])


def random_values(chance: random.Random, dtype: int, count: int) -> np.ndarray:
    """Bit patterns: bell-shaped of changing scale, with zeros and special values, or any bits."""
    form = DTYPES[dtype]
    numbers = np.random.Generator(np.random.PCG64(chance.randrange(2**63)))
    any_bits = np.frombuffer(numbers.bytes(count * form.size), form.pattern)
    if chance.random() < 0.15:
        return any_bits
    values = numbers.standard_normal(count)
    span = chance.choice([2, 6, 6, 30, 2 ** (form.exponent_bits - 1) + 30])
    run = chance.choice([1, 64, 256])
    exponents = numbers.integers(-span, min(span, 1000), count // run + 1).repeat(run)[:count]
    with np.errstate(over="ignore", under="ignore"):
        values = np.ldexp(values, exponents)
        if form.name == "bfloat16":
            patterns = (values.astype("<f4").view("<u4") >> 16).astype("<u2")
        else:
            patterns = values.astype(f"<f{form.size}").view(form.pattern)
    patterns = np.where(numbers.random(count) < chance.choice([0, 0, 0.3, 0.99]), 0, patterns)
    patterns = np.where(numbers.random(count) < chance.choice([0, 0, 0.02]), any_bits, patterns)
    if chance.random() < 0.3:  # the trailing zeros of a narrower type
        drop = chance.randint(1, form.mantissa_bits)
        patterns = patterns.astype(np.uint64) >> np.uint64(drop) << np.uint64(drop)
    return patterns.astype(form.pattern)


def random_counts(chance: random.Random) -> list[int]:
    most = chance.choice([5, 300, 300, 2000, 9000])
    return [chance.choice([0, 1, 64, chance.randint(0, most)]) for _ in range(chance.randint(1, 5))]


def test_library_makes_what_section_8_says() -> None:
    seed, end, rounds = first_seed(), time.monotonic() + SECONDS, 0
    while rounds < 10 or time.monotonic() < end:
        chance = random.Random(seed + rounds)
        text, dtype = random_spec(chance)
        parts = [random_values(chance, dtype, count) for count in random_counts(chance)]
        step, first_tensor = chance.randrange(2**20), chance.randrange(100)
        made = _core.encode_frame([part.view(np.uint8) for part in parts], DTYPES[dtype].name, text,
                                  "meta", first_tensor, step)  # fmt: skip
        spec = Spec.parse(text, dtype, context={"step": step}, metadata=b"meta")
        tensors = [Part(part, first_tensor + i) for i, part in enumerate(parts)]
        what = f"GRADWIRE_TEST_SEED={seed + rounds}: {text}, {DTYPES[dtype].name}"
        assert bytes(made) == encode(spec, tensors), what
        rounds += 1
    print(f"GRADWIRE_TEST_SEED={seed}, {rounds} rounds")


# ---- decoders ----


def library_result(frame: bytes) -> bytes | str:
    """The values, or the name of the error."""
    try:
        info = _core.inspect_frame(frame)
        size = next(d.size for d in DTYPES.values() if d.name == info["dtype"])
        parts = [np.zeros(count * size, np.uint8) for count in info["part_counts"]]
        _core.decode_frame(frame, info["dtype"], parts)
    except GradwireError as error:
        return error.code
    return b"".join(part.tobytes() for part in parts)


def spec_result(frame: bytes) -> bytes | str:
    try:
        return decode_frame(frame)[1].tobytes()
    except FormatError as error:
        return error.name


def damaged(chance: random.Random, frame: bytes) -> bytes:
    """A frame of one block with bytes changed in block, index or header, and right checksums."""
    checked = read_frame(frame)
    block = bytearray(checked.blocks[0])
    head = bytearray(frame[: len(frame) - len(block)])
    index_at = 128 + 8 * len(checked.parts)
    entry = checked.index[0]
    if chance.random() < 0.6:
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(min(len(block), chance.choice([16, 200, len(block)])))
            block[at] = chance.choice([block[at] ^ 1 << chance.randrange(8), chance.randrange(256)])
    if chance.random() < 0.4:
        name = chance.choice(["lanes", "plane_bytes", "scale_bits", "scale_base", "mantissa",
                              "flags", "word_count", "outlier_count", "kind"])  # fmt: skip
        value = getattr(entry, name) + chance.choice([-64, -8, -2, -1, 1, 2, 8, 15, 64])
        entry = entry_with(entry, **{name: value if name == "scale_base" else value % 256})
    entry = entry_with(entry, hash=xxh3_64_intdigest(bytes(block)))
    head[index_at : index_at + IndexEntry.LAYOUT.size] = pack_entry(entry)
    if chance.random() < 0.2:
        at = chance.choice([*range(6, 36), *range(44, 52)])
        head[at] = chance.choice([0, 1, 2, 3, 4, 8, 16, 64, 128, 255, head[at] ^ 1])
    return seal(bytes(head) + bytes(block))


def small_frames() -> list[bytes]:
    frames = [path.read_bytes() for path in sorted((GOLDEN / "frames").glob("*.gw"))]
    return [f for f in frames if len(f) < 8000 and len(read_frame(f).blocks) == 1]


def test_decoders_agree_on_damaged_frames() -> None:
    frames = small_frames()
    assert len(frames) > 50
    seed, end, rounds, good = first_seed(), time.monotonic() + SECONDS, 0, 0
    while rounds < 100 or time.monotonic() < end:
        chance = random.Random(seed + rounds)
        frame = damaged(chance, chance.choice(frames))
        expected = spec_result(frame)
        assert library_result(frame) == expected, f"GRADWIRE_TEST_SEED={seed + rounds}"
        good += isinstance(expected, bytes)
        rounds += 1
    print(f"GRADWIRE_TEST_SEED={seed}, {rounds} frames, {good} of them still good")


@pytest.mark.parametrize("path", sorted((GOLDEN / "errors").rglob("*.gw")), ids=lambda p: p.stem)
def test_library_names_the_same_error(path: Path) -> None:
    assert library_result(path.read_bytes()) == path.parent.name
