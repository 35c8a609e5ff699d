#!/usr/bin/env python3
"""Makes the built-in tables of coded blocks from gradients.

    tools/make_tables.py FILE.safetensors...     measures the files, chooses frequencies and writes
                                                 src/entropy/tables.h and the table listing of
                                                 docs/format.md
    tools/make_tables.py --listing               writes the listing of docs/format.md and the prefix
                                                 code's tables anew from src/entropy/tables.h

The quantizers here are written with numpy from docs/format.md alone. Every file counts the same,
whatever its size. Frequencies minimise the bits per value of the coder itself: the mean over the
stationary distribution of its 128 states, and for escapes the value that follows. A token that is
cheaper as an escape gets frequency 0, as long as the tokens that are left stay one run.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import numpy as np

import spec_own_table

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "src" / "entropy" / "tables.h"
FORMAT = ROOT / "docs" / "format.md"
BEGIN = "<!-- tables:begin (tools/make_tables.py writes this part and src/entropy/tables.h) -->"
END = "<!-- tables:end -->"

GROUP = 256
STATES = 128
TOKENS = 32
ESCAPE = 31
ESCAPE_BITS = 32  # float32 value
LEVELS = 23
EXPONENT_TABLE = 1
STEP_TABLE = 16
STEP_TOKENS = [0, 2, *range(4, 24)]
STEPS_PER_LEVEL = 8
# Shares are mixed with a little of every exponent token, for gradients with longer tails than
# those measured: a token too much costs all values 0.011 bits, one too few 25 bits each time.
EXPONENT_PRIOR = 0.005

# ---- quantizers (docs/format.md section 8), group by group ----


def groups_of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bit patterns as rows of GROUP values, padded with 0, and the number of values in each row."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).ravel()
    rows = -(-bits.size // GROUP)
    padded = np.zeros(rows * GROUP, np.uint32)
    padded[: bits.size] = bits
    counts = np.full(rows, GROUP, np.int64)
    if bits.size % GROUP:
        counts[-1] = bits.size % GROUP
    return padded.reshape(rows, GROUP), counts


def scale_exponents(bits: np.ndarray, counts: np.ndarray, x: float) -> np.ndarray:
    """k of each group, before clamping: floor(log2(x RMS)), rounded down once."""
    field = (bits >> 23) & 0xFF
    finite = field != 255
    exponent = np.where(finite, np.maximum(field, 1), 0).astype(np.int64)
    top = np.maximum(exponent.max(axis=1), 1)
    significand = (bits & 0x7FFFFF) + np.where(field > 0, 0x800000, 0)
    shift = np.minimum(top[:, None] - exponent, 40) + 13
    s = np.where(finite, significand.astype(np.int64) >> shift, 0)
    # Padding is finite and adds nothing to the sum, but is not counted.
    count = np.maximum(counts - (~finite).sum(axis=1), 1)
    mean = ((s * s).sum(axis=1) * 256) // count
    factor = int(x * x * 2.0**28)
    k = np.full(len(top), -149, np.int64)
    for i, m in enumerate(mean):
        y = int(m) * factor
        if y:
            k[i] = (y.bit_length() - 1 - 36) // 2 + int(top[i]) - 137
    return k


def live(bits: np.ndarray, counts: np.ndarray, zero_mask: int) -> np.ndarray:
    """True for the values that are coded: not padding, not in a zero group."""
    real = np.arange(GROUP)[None, :] < counts[:, None]
    return real & ((bits & zero_mask) != 0).any(axis=1)[:, None]


def step_tokens(bits: np.ndarray, counts: np.ndarray, x: float) -> np.ndarray:
    k = np.clip(scale_exponents(bits, counts, x), -149, 127)
    with np.errstate(invalid="ignore", over="ignore"):
        q = np.abs(np.rint(bits.view(np.float32).astype(np.float64) * np.exp2(-k)[:, None]))
        usable = q <= 2047
    q = np.where(usable, q, 0).astype(np.int64)
    length = np.frexp(q.astype(np.float64))[1]
    below = (q >> np.maximum(length - 2, 0)) & (length >= 2)
    token = np.where(q == 0, 0, 2 * length + below)
    return np.where(usable, token, ESCAPE)[live(bits, counts, 0x7FFFFFFF)]


def exponent_tokens(bits: np.ndarray, counts: np.ndarray) -> np.ndarray:
    top = np.clip(scale_exponents(bits, counts, 1.0) + 131, 0, 255)
    token = top[:, None] - ((bits >> 23) & 0xFF).astype(np.int64)
    escape = (token < 0) | (token > 29) | (((bits >> 23) & 0xFF) == 255)
    token = np.where(escape, ESCAPE, token)
    token = np.where((bits & 0x7FFFFFFF) == 0, 30, token)
    return token[live(bits, counts, 0xFFFFFFFF)]


# ---- the coder's cost ----


def coder(frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each token and state (0..127) after it: the state before it and the bits it takes."""
    symbol = np.zeros(STATES, np.int64)
    position = 0
    for token in range(TOKENS):
        for _ in range(int(frequencies[token])):
            symbol[position] = token
            position = (position + 83) % STATES
    before = np.zeros((TOKENS, STATES), np.int64)
    taken = np.zeros((TOKENS, STATES), np.int64)
    value = [int(f) for f in frequencies]
    for state in range(STATES):
        token = int(symbol[state])
        y = value[token]
        value[token] += 1
        bits = 7 - (y.bit_length() - 1)
        first = (y << bits) - STATES
        before[token, first : first + (1 << bits)] = state
        taken[token, first : first + (1 << bits)] = bits
    return before, taken


def coder_bits(probability: np.ndarray, frequencies: np.ndarray) -> float:
    """Mean bits per token over the stationary distribution of the states."""
    before, taken = coder(frequencies)
    used = frequencies > 0
    weight = np.broadcast_to(probability[used, None], (int(used.sum()), STATES))
    move = np.zeros((STATES, STATES))
    np.add.at(move, (np.broadcast_to(np.arange(STATES), weight.shape), before[used]), weight)
    state = np.full(STATES, 1.0 / STATES)
    for _ in range(5):
        move = move @ move
    state = state @ move
    return float(state @ (probability[used] @ taken[used]))


def with_escapes(
    probability: np.ndarray, raw: np.ndarray, used: list[int]
) -> tuple[np.ndarray, float]:
    """Probabilities when only `used` tokens exist, and the raw bits that this costs more."""
    p = np.zeros(TOKENS)
    p[used] = probability[used]
    lost = 1.0 - p.sum()
    p[ESCAPE] += lost
    gone = [t for t in range(TOKENS) if t not in used]
    return p, ESCAPE_BITS * lost - float((probability[gone] * raw[gone]).sum())


def start(p: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Frequencies of least ideal code length: one more each time to where it helps most."""
    f = least.copy()
    while f.sum() < STATES:
        gain = np.where(least > 0, p * (np.log2(f + 1.0) - np.log2(np.maximum(f, 1))), -1)
        f[int(np.argmax(gain))] += 1
    return f


def improve(p: np.ndarray, least: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, float]:
    """Moves single slots from token to token as long as the coder's own cost falls."""
    best = coder_bits(p, f)
    while True:
        moves = []
        for give in np.flatnonzero(f > least):
            for take in np.flatnonzero(least > 0):
                if give != take:
                    g = f.copy()
                    g[give] -= 1
                    g[take] += 1
                    ideal = float((p[least > 0] * -np.log2(g[least > 0] / STATES)).sum())
                    moves.append((ideal, tuple(g)))
        better = None
        for _, g in sorted(moves)[:40]:
            cost = coder_bits(p, np.array(g))
            if cost < best - 1e-6:
                best, better = cost, np.array(g)
        if better is None:
            return f, best
        f = better


def ideal_bits(
    probability: np.ndarray, raw: np.ndarray, used: list[int], least: np.ndarray
) -> float:
    p, extra = with_escapes(probability, raw, used)
    least = np.where(np.isin(np.arange(TOKENS), used), least, 0)
    f = start(p, least)
    return extra - float((p[least > 0] * np.log2(f[least > 0] / STATES)).sum())


def choose(
    probability: np.ndarray, raw: np.ndarray, run: list[int], least: np.ndarray, always: list[int]
) -> tuple[np.ndarray, float]:
    """The best table whose tokens are `always` and one run out of `run`."""
    best = None
    for first in range(len(run)):
        for last in range(first, len(run)):
            used = sorted({*run[first : last + 1], *always})
            cost = ideal_bits(probability, raw, used, least)
            if best is None or cost < best[0]:
                best = (cost, used)
    assert best is not None
    used = best[1]
    p, extra = with_escapes(probability, raw, used)
    least = np.where(np.isin(np.arange(TOKENS), used), least, 0)
    f, cost = improve(p, least, start(p, least))
    return f, cost + extra


# ---- histograms ----


def load(path: str) -> list[tuple[np.ndarray, np.ndarray]]:
    import torch
    from safetensors.torch import load_file

    tensors = load_file(path).values()
    return [groups_of(t.to(torch.float32).numpy()) for t in tensors if t.is_floating_point()]


def share(tokens: list[np.ndarray]) -> np.ndarray:
    counts = np.bincount(np.concatenate(tokens), minlength=TOKENS).astype(np.float64)
    return counts / counts.sum()


def measure(files: list[str]) -> dict[int, np.ndarray]:
    """Table number -> probability of each token, every file counting the same."""
    loaded = [load(path) for path in files]
    shares = {
        EXPONENT_TABLE: np.mean([share([exponent_tokens(*t) for t in f]) for f in loaded], axis=0)
    }
    for level in range(LEVELS):
        # X of a level: 2^(level / 2 - 8.25) up to half an octave more, and 2^-8 <= X <= 8.
        low, high = max(level / 2 - 8.25, -8.0), min(level / 2 - 7.75, 3.0)
        points = (np.arange(STEPS_PER_LEVEL) + 0.5) / STEPS_PER_LEVEL * (high - low) + low
        shares[STEP_TABLE + level] = np.mean(
            [share([step_tokens(*t, 2.0**e) for t in f]) for f in loaded for e in points], axis=0
        )
        print(f"measured level {level}", file=sys.stderr, flush=True)
    return shares


def raw_bits(table: int) -> np.ndarray:
    """Raw bits that a token of its own would bring."""
    raw = np.zeros(TOKENS)
    if table == EXPONENT_TABLE:
        raw[:30], raw[30] = 7, 1  # mantissa=6; lossless between 8 (bfloat16) and 24 (float32)
    else:
        for token in STEP_TOKENS[1:]:
            raw[token] = max(token // 2 - 1, 1)
    return raw


def make(files: list[str]) -> dict[int, list[int]]:
    tables = {}
    for number, probability in measure(files).items():
        probability = probability * (1 - 1e-6)
        probability[ESCAPE] += 1e-6
        least = np.ones(TOKENS, np.int64)
        if number == EXPONENT_TABLE:
            run, always = list(range(30)), [30, ESCAPE]
            probability = (1 - EXPONENT_PRIOR) * probability
            probability[run] += EXPONENT_PRIOR / len(run)
        else:
            run, always = STEP_TOKENS, [0, 2, ESCAPE]
            least[22:24] = 2  # 7 bits and 10 raw bits would be 17
        f, cost = choose(probability, raw_bits(number), run, least, always)
        used = probability > 0
        entropy = -float((probability[used] * np.log2(probability[used])).sum())
        print(f"table {number}: {cost:.4f} bits, entropy {entropy:.4f}", file=sys.stderr)
        tables[number] = [int(v) for v in f]
    return tables


# ---- writing ----


def huffman(number: int, frequencies: list[int]) -> list[int]:
    """The prefix code's table: section 8's rule with the frequencies as counts."""
    least = {t: 2 if number >= STEP_TABLE and t in (22, 23) else 1
             for t, f in enumerate(frequencies) if f}  # fmt: skip
    return spec_own_table.prefix_frequencies(frequencies, least)


def listing(tables: dict[int, list[int]]) -> str:
    lines = ["Frequencies of tokens 0 to 31:", "", "| table | coder 1 | coder 2 |", "|---|---|---|"]
    lines += [f"| {n} | {' '.join(map(str, f))} | {' '.join(map(str, huffman(n, f)))} |"
              for n, f in sorted(tables.items())]  # fmt: skip
    return "\n".join(lines)


def header_text(tables: dict[int, list[int]]) -> str:
    rows = []
    for number, f in sorted(tables.items()):
        indent = " " * (6 + len(str(number)))
        lists = []
        for numbers in (f, huffman(number, f)):
            halves = [", ".join(map(str, part)) for part in (numbers[:16], numbers[16:])]
            lists.append(f"{{{halves[0]},\n{indent} {halves[1]}}}")
        separator = f",\n{indent}"
        rows.append(f"    {{{number}, {separator.join(lists)}}},")
    body = "\n".join(rows)
    return f"""// Built-in tables of coded blocks, by tools/make_tables.py.
#ifndef GRADWIRE_ENTROPY_TABLES_H_
#define GRADWIRE_ENTROPY_TABLES_H_

#include <array>
#include <cstdint>

namespace gradwire::internal {{

struct BuiltinTable {{
  std::uint8_t number;
  std::array<std::uint8_t, 32> frequencies;
  std::array<std::uint8_t, 32> huffman;  // of the prefix code
}};

// clang-format off
inline constexpr BuiltinTable kBuiltinTables[] = {{
{body}
}};
// clang-format on

}}  // namespace gradwire::internal

#endif  // GRADWIRE_ENTROPY_TABLES_H_
"""


def read_header(text: str) -> dict[int, list[int]]:
    body = text[text.index("kBuiltinTables[]") :]
    found = re.findall(r"\{(\d+), \{([\d,\s]+)\},", body)
    return {int(n): [int(v) for v in values.split(",")] for n, values in found}


def read_listing(text: str) -> dict[int, list[int]]:
    """Coder 1's."""
    part = text[text.index(BEGIN) : text.index(END)]
    found = re.findall(r"^\| (\d+) \| ([\d ]+) \|", part, re.MULTILINE)
    return {int(n): [int(v) for v in values.split()] for n, values in found}


def write_listing(tables: dict[int, list[int]]) -> None:
    text = FORMAT.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    FORMAT.write_text(f"{head}{BEGIN}\n\n{listing(tables)}\n\n{END}{tail}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes the built-in tables of coded blocks.")
    parser.add_argument("files", nargs="*", help="safetensors files with gradients")
    parser.add_argument("--listing", action="store_true", help="only write docs/format.md anew")
    arguments = parser.parse_args()
    if arguments.listing == bool(arguments.files):
        parser.error("give files, or --listing")
    if arguments.listing:
        tables = read_header(HEADER.read_text(encoding="utf-8"))
    else:
        tables = make(arguments.files)
    HEADER.write_text(header_text(tables), encoding="utf-8")
    write_listing(tables)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
