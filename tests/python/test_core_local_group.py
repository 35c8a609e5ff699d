"""_core.LocalGroup: the collective among threads, which gradwire.compare trains with."""

from __future__ import annotations

import numpy as np
import pytest
from gradwire import _core
from gradwire.errors import InvalidArgument, OutOfRange, UnknownCodec


def arrays(ranks: int, values: int) -> list[np.ndarray]:
    generator = np.random.default_rng(3)
    return [generator.standard_normal(values).astype(np.float32) for _ in range(ranks)]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_mean_of_all_ranks(ranks: int) -> None:
    given = arrays(ranks, 5001)
    mean = np.mean(np.stack(given, dtype=np.float64), axis=0)
    exact = [values.copy() for values in given]
    stats = _core.LocalGroup(ranks).all_reduce(exact, "float32", [5001], "none")
    assert np.allclose(exact[0], mean, rtol=0, atol=1e-6)
    assert stats["raw_bytes"] == 2 * (ranks - 1) * 5001 * 4 < stats["bytes_out"]
    coarse = [values.copy() for values in given]
    stats = _core.LocalGroup(ranks).all_reduce(coarse, "float32", [5001], "int8")
    assert 1e-3 < np.linalg.norm(coarse[0] - mean) / np.linalg.norm(mean) < 2e-2
    assert stats["raw_bytes"] > 3.3 * stats["bytes_out"]
    for result in (exact, coarse):
        assert all(values.tobytes() == result[0].tobytes() for values in result)


def test_step_and_parts_choose_the_noise() -> None:
    group = _core.LocalGroup(2)

    def reduced(parts: list[int], step: int) -> bytes:
        given = arrays(2, 1024)
        group.all_reduce(given, "float32", parts, "int4", step)
        return given[0].tobytes()

    assert reduced([1024], 5) == reduced([1024], 5)
    assert len({reduced([1024], 5), reduced([1024], 6), reduced([512, 512], 5)}) == 3


@pytest.mark.parametrize("world", [-1, 0, 1, 65])
def test_world_out_of_range(world: int) -> None:
    with pytest.raises(OutOfRange, match=f"world is {world}"):
        _core.LocalGroup(world)


def test_wrong_arguments_leave_the_values() -> None:
    given = arrays(2, 100)
    before = [values.copy() for values in given]
    for wrong, error, field in (
        ({"codec": "zip"}, UnknownCodec, "zip"),
        ({"part_counts": [99]}, InvalidArgument, "parts"),
        ({"arrays": given[:1]}, InvalidArgument, "arrays"),
        ({"dtype": "float31"}, TypeError, "float31"),
        ({"arrays": [given[0], given[1][:99].copy()], "part_counts": []}, Exception, "99|100"),
    ):
        call = {"arrays": given, "dtype": "float32", "part_counts": [100], "codec": "int8"} | wrong
        with pytest.raises(error, match=field):
            _core.LocalGroup(2).all_reduce(**call)
        assert all(np.array_equal(a, b) for a, b in zip(given, before, strict=True))


def test_read_only_array() -> None:
    given = arrays(2, 100)
    given[1].flags.writeable = False
    with pytest.raises((BufferError, ValueError), match="read-only|writable"):
        _core.LocalGroup(2).all_reduce(given, "float32", [100], "int8")
