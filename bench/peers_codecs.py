"""The codecs that bench/peers.py compares, each behind the same two functions.

Each peer is imported when its codecs are made, so that one that is missing takes away only its own.
All run on one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np


class Codec(NamedTuple):
    """`encode` makes of a float32 array something with a length in bytes, `decode` an array."""

    name: str
    package: str
    lossless: bool
    encode: Callable[[np.ndarray], Any]
    decode: Callable[[Any, int], np.ndarray]
    size: Callable[[Any], int] = len


def _floats(data: Any, count: int) -> np.ndarray:
    return np.frombuffer(data, np.float32, count)


def gradwire_codecs() -> Iterator[Codec]:
    import gradwire

    def make(spec: str) -> Codec:
        return Codec(spec, "gradwire", spec == "lossless",
                     lambda values: gradwire.encode(values, codec=spec),
                     lambda data, count: gradwire.decode(data))  # fmt: skip

    for spec in ("lossless", "near_lossless", "near_lossless:mantissa=6", "int8", "int4",
                 "cast:dtype=bf16"):  # fmt: skip
        yield make(spec)


def zipnn_codecs() -> Iterator[Codec]:
    import zipnn

    def make() -> zipnn.ZipNN:
        return zipnn.ZipNN(input_format="byte", bytearray_dtype="float32", threads=1)

    # compress() may reorder the bytes that it is given: they are copied, as in its own examples.
    yield Codec("zipnn", "zipnn", True, lambda values: make().compress(bytearray(values.tobytes())),
                lambda data, count: _floats(make().decompress(data), count))  # fmt: skip


def blosc2_codecs() -> Iterator[Codec]:
    import blosc2

    blosc2.set_nthreads(1)

    def make(name: str, codec: Any, level: int) -> Codec:
        settings = {"codec": codec, "clevel": level, "filters": [blosc2.Filter.SHUFFLE],
                    "filters_meta": [0], "typesize": 4, "nthreads": 1}  # fmt: skip
        return Codec(name, "blosc2", True, lambda values: blosc2.compress2(values, **settings),
                     lambda data, count: _floats(blosc2.decompress2(data, nthreads=1), count))

    yield make("zstd-1 + byte shuffle (blosc2)", blosc2.Codec.ZSTD, 1)
    yield make("zstd-5 + byte shuffle (blosc2)", blosc2.Codec.ZSTD, 5)
    yield make("lz4 + byte shuffle (blosc2)", blosc2.Codec.LZ4, 1)


def zstandard_codecs() -> Iterator[Codec]:
    import zstandard

    yield Codec("zstd-1", "zstandard", True,
                lambda values: zstandard.ZstdCompressor(level=1).compress(values),
                lambda data, count: _floats(zstandard.ZstdDecompressor().decompress(data), count))


def lz4_codecs() -> Iterator[Codec]:
    import lz4.block

    yield Codec("lz4", "lz4", True, lambda values: lz4.block.compress(values),
                lambda data, count: _floats(lz4.block.decompress(data), count))  # fmt: skip


def fpzip_codecs() -> Iterator[Codec]:
    import fpzip

    def make(name: str, precision: int) -> Codec:
        return Codec(name, "fpzip", precision == 0,
                     lambda values: fpzip.compress(values, precision=precision, order="C"),
                     lambda data, count: fpzip.decompress(data, order="C").reshape(-1))

    yield make("fpzip", 0)
    yield make("fpzip precision=16", 16)


def zfpy_codecs() -> Iterator[Codec]:
    import zfpy

    yield Codec("zfp tolerance", "zfpy", False,
                lambda values: zfpy.compress_numpy(values, tolerance=error_bound(values)),
                lambda data, count: zfpy.decompress_numpy(data))  # fmt: skip


def pysz_codecs() -> Iterator[Codec]:
    from pysz import sz, szConfig, szErrorBoundMode

    def encode(values: np.ndarray) -> Any:
        settings = szConfig(values.shape)
        settings.errorBoundMode = szErrorBoundMode.ABS
        settings.absErrorBound = error_bound(values)
        return sz.compress(values, settings)[0]

    yield Codec("SZ3 absolute bound", "pysz", False, encode,
                lambda data, count: sz.decompress(data, np.float32, (count,))[0],
                lambda data: data.nbytes)  # fmt: skip


def torch_codecs() -> Iterator[Codec]:
    import torch

    torch.set_num_threads(1)
    yield Codec("torch cast to bf16", "torch", False,
                lambda values: torch.from_numpy(values).to(torch.bfloat16),
                lambda data, count: data.to(torch.float32).numpy(),
                lambda data: data.nbytes)  # fmt: skip


def error_bound(values: np.ndarray) -> float:
    """For codecs with one absolute bound: half of near_lossless's step, for the whole array."""
    return 0.5 * 0.00575 * float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


MAKERS = {
    "gradwire": gradwire_codecs, "zipnn": zipnn_codecs, "blosc2": blosc2_codecs,
    "zstandard": zstandard_codecs, "lz4": lz4_codecs, "fpzip": fpzip_codecs, "zfpy": zfpy_codecs,
    "pysz": pysz_codecs, "torch": torch_codecs,
}  # fmt: skip


def all_codecs() -> tuple[list[Codec], dict[str, str]]:
    """What can be measured, and why the rest cannot, by package."""
    codecs: list[Codec] = []
    missing: dict[str, str] = {}
    for package, make in MAKERS.items():
        try:
            codecs += make()
        except Exception as error:  # whatever keeps a peer from being imported
            missing[package] = f"{type(error).__name__}: {error}"
    return codecs, missing
