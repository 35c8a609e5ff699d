"""The choice of a block's own table: section 8 of docs/format.md, "Own table"."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spec_frame import HUFFMAN

ESCAPE = 31
LOG2 = [0] + [(f**4096).bit_length() - 1 for f in range(1, 129)]  # floor(4096 log2 f)


def sample(groups: Sequence[Sequence[int]]) -> list[int]:
    """The tokens looked at; -1 for values of zero groups."""
    n = sum(map(len, groups))
    steps = ((4096, 1), (8192, 2), (32768, 4), (131072, 16))
    s = next((stride for below, stride in steps if n < below), 32)
    taken = []
    for i in range(-(-len(groups) // s)):
        g, p = s * i + 11 * i % s, i % 4
        if g >= len(groups):
            continue
        size = len(groups[g])
        taken += groups[g] if s == 1 else groups[g][size * p // 4 : size * (p + 1) // 4]
    return taken


def prefix_frequencies(c: Sequence[int], least: dict[int, int]) -> list[int]:
    """Coder 2: the coins and packages of section 8; `least` of each token of the table."""
    left = 128 - sum(least.values())
    f = [least.get(t, 0) for t in range(32)]
    coins = [(c[t], (t,)) for t in sorted(least, key=lambda t: (-c[t], t))]
    packages: list[tuple[int, tuple[int, ...]]] = []
    for w in (1, 2, 4, 8, 16, 32, 64):
        of_width = [coin for coin in coins if least[coin[1][0]] <= w]
        members = sorted(packages + of_width, key=lambda member: -member[0])  # is stable
        if left & w:
            for t in members.pop(0)[1]:
                f[t] *= 2
        packages = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(members[::2], members[1::2])]
    return f


class Rules:
    """What tables of a form look like; w bits of a value's type."""

    def __init__(
        self, raw_bits: Sequence[int | None], is_step_form: bool, w: int, coder: int
    ) -> None:
        self.coder = coder
        self.r = [r or 0 for r in raw_bits]
        self.w = w
        self.run = [0, 2, *range(4, 24)] if is_step_form else list(range(30))
        self.fixed = [0, 2, ESCAPE] if is_step_form else [30, ESCAPE]

    def least(self, token: int) -> int:
        return 2 if self.r[token] == 10 else 1

    def cost(self, c: Sequence[int], f: Sequence[int]) -> int:
        total = 0
        for token in range(32):
            if token == ESCAPE or f[token] == 0:
                total += c[token] * (7 * 4096 - LOG2[f[ESCAPE]] + 4096 * self.w)
            else:
                total += c[token] * (7 * 4096 - LOG2[f[token]] + 4096 * self.r[token])
        return total

    def tokens(self, c: list[int]) -> list[int]:
        """The tokens of the table; those that leave the run are counted as escapes in c."""
        total = sum(c)
        seen = [t for t in self.run if c[t] > 0 or t in self.fixed] or [0]
        run = [t for t in self.run if seen[0] <= t <= seen[-1]]
        for end in (-1, 0):
            while len(run) > 1 and run[end] not in self.fixed:
                e = run[end]
                if 4096 * c[e] * (self.w - self.r[e]) > 47 * total * self.least(e):
                    break
                c[ESCAPE] += c[e]
                c[e] = 0
                run.pop(end)
        return sorted({*run, *self.fixed})

    def frequencies(self, counts: Sequence[int]) -> list[int]:
        c = list(counts)
        tokens = self.tokens(c)
        if self.coder == HUFFMAN:
            return prefix_frequencies(c, {t: self.least(t) for t in tokens})
        f = [0] * 32
        for t in tokens:
            f[t] = max(self.least(t), 128 * c[t] // sum(c))
        while sum(f) < 128:
            f[max(tokens, key=lambda t: (c[t] * (LOG2[f[t] + 1] - LOG2[f[t]]), -t))] += 1
        while sum(f) > 128:
            more = [t for t in tokens if f[t] > self.least(t)]
            f[min(more, key=lambda t: (c[t] * (LOG2[f[t]] - LOG2[f[t] - 1]), t))] -= 1
        return f


def choose(
    groups: Sequence[Sequence[int]], raw_bits: Sequence[int | None],
    built_in: Sequence[int], is_step_form: bool, w: int, coder: int,
) -> tuple[tuple[int, ...], Callable[[int], bool]]:  # fmt: skip
    """The own table, or () for the built-in one; and whether it failed, given the bits it took."""
    taken = sample(groups)
    c = [taken.count(token) for token in range(32)]
    if sum(c) == 0:
        return (), lambda bits: False
    rules = Rules(raw_bits, is_step_form, w, coder)
    v, n = len(taken), sum(map(len, groups))
    f = rules.frequencies(c)
    expected = rules.cost(c, built_in)
    k = 0 if v == n else sum(frequency > 0 for frequency in f)
    price = 11819 * k + 2**20 * v // n + 16 * sum(c)
    own = tuple(f) if expected - rules.cost(c, f) > price else ()
    return own, lambda bits: 16 * 4096 * v * bits > 17 * n * expected
