"""Encode arrays into frames (docs/format.md) and back.

numpy arrays, and torch CPU tensors where torch is loaded. What :func:`encode` returns is what the
command line writes: ``gradwire inspect``, ``verify`` and ``decode`` read it, and :func:`decode`
reads the files of ``gradwire encode``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import ml_dtypes
import numpy as np

from gradwire import _core
from gradwire.errors import BadHeader, InvalidArgument, OutOfRange, Truncated, UnsupportedDType

__all__ = ["codecs", "decode", "decode_part", "encode", "inspect", "verify"]

# Names of docs/format.md 1.2 by numpy type, and back.
_NUMPY_TYPES: dict[str, np.dtype] = {
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "uint8": np.dtype(np.uint8),
    "int8": np.dtype(np.int8),
    "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32),
    "uint64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_),
    "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
_NAMES = {dtype: name for name, dtype in _NUMPY_TYPES.items()}

# Types that numpy alone does not have: torch hands them over as integers of their size.
_TORCH_TYPES = {
    "bfloat16": ("bfloat16", "int16"),
    "float8_e4m3": ("float8_e4m3fn", "uint8"),
    "float8_e5m2": ("float8_e5m2", "uint8"),
}


@dataclass(frozen=True)
class _Item:
    """One array on its way into a frame."""

    name: str
    array: np.ndarray  # any strides
    dtype: str


def codecs() -> list[dict[str, Any]]:
    """The codecs: name, id, summary, parameters, bound, dtypes, examples, target of the kernels."""
    return _core.codecs()


def encode(
    values: Any,
    codec: str = "lossless",
    *,
    dtype: str | None = None,
    fallback: str | None = None,
    step: int = 0,
    threads: int = 1,
    frame_bytes: int | None = None,
) -> bytes:
    """Encodes an array, or a list or dict of arrays, into frames.

    Arrays of one type that follow one another share a frame, each with scales of its own;
    :func:`decode_part` decodes one of them alone.

    Args:
        values: numpy array or torch CPU tensor, or a list, tuple or dict (names to arrays) of
            them. Any strides, sizes and orders, empty and 0-d too.
        codec: name or ``name:key=value,...``; see :func:`codecs`.
        dtype: what the bits are, where the array cannot say: ``"bfloat16"`` for uint16 arrays,
            ``"float8_e4m3"`` or ``"float8_e5m2"`` for uint8 arrays.
        fallback: codec for floating types that ``codec`` does not take. Integers, bool and
            float8 are kept as they are whatever the codec.
        step: chooses the noise of codecs that round stochastically.
        threads: how many share the blocks of 262,144 values; 0: one for each CPU. They are made
            for this call. The bytes are the same for every number.
        frame_bytes: a frame ends behind the first array with which it holds that many bytes of
            values; default: it goes on as long as the type does.

    Raises:
        OutOfRange: ``threads`` is not 0 to 256, or ``frame_bytes`` below 1.
        TypeError: an array's type is not known, big-endian for instance.
        UnsupportedDType: the codec does not take the type, and there is no fallback.
        UnknownCodec, UnknownParameter, OutOfRange: the codec's text is wrong.
        InvalidArgument: a tensor is not in host memory, or not dense.
    """
    _core.codec_text(codec)
    container, named, from_torch = _unpack(values)
    items = [_make_item(name, value, dtype) for name, value in named]
    if frame_bytes is not None and frame_bytes < 1:
        raise OutOfRange(f"frame_bytes is {frame_bytes}, must be at least 1", field="frame_bytes",
                         mine=str(frame_bytes))  # fmt: skip
    runs = list(_runs(items, codec, fallback, frame_bytes))
    frames = []
    first_tensor = 0
    for number, (run_codec, run) in enumerate(runs):
        metadata: dict[str, Any] = {"frame": number, "frames": len(runs)}
        metadata["tensors"] = [{"name": i.name, "shape": list(i.array.shape)} for i in run]
        if container == "array":
            fortran_order = _is_fortran(run[0].array)
            metadata |= {"format": "npy", "fortran_order": fortran_order}
        else:
            fortran_order = False
            metadata |= {"format": "arrays", "container": container}
        if from_torch:
            metadata["torch"] = True
        frames.append(
            _core.encode_frame(
                [_flat_bytes(item.array, fortran_order) for item in run],
                run[0].dtype if run else "float32",
                run_codec,
                json.dumps(metadata, ensure_ascii=False),
                first_tensor,
                step,
                threads,
            )
        )
        first_tensor += len(run)
    return b"".join(frames)


def decode(blob: Any, *, torch: bool | None = None, threads: int = 1) -> Any:
    """Decodes what :func:`encode` or ``gradwire encode`` made.

    Args:
        blob: bytes-like object.
        torch: True: torch tensors; False: numpy arrays; default: what was encoded.
        threads: as for :func:`encode`.

    Returns:
        An array, or a list or dict of arrays, as it was encoded; safetensors files give a dict.
        bfloat16 and float8 have the types of ml_dtypes; types of safetensors files that numpy
        does not have come as integers of their size.

    Raises:
        Truncated, TrailingBytes, BadMagic, BadHeader, HeaderChecksum, BlockChecksum,
        CorruptBlock, UnsupportedVersion: the bytes are damaged or foreign.
    """
    named: list[tuple[str, np.ndarray]] = []
    first: dict[str, Any] | None = None
    for frame, info, metadata in _described_frames(blob):
        first = metadata if first is None else first
        dtype = _NUMPY_TYPES[info["dtype"]]
        fortran_order = metadata.get("fortran_order") is True
        names, shapes = _names_and_shapes(info, metadata)
        flat = [np.empty(count, dtype) for count in info["part_counts"]]
        _core.decode_frame(
            frame, info["dtype"], [array.view(np.uint8) for array in flat], threads
        )
        named += zip(names, _shaped(flat, shapes, fortran_order), strict=True)
    assert first is not None  # there is at least one frame
    if torch is None:
        torch = first.get("torch") is True
    values = [(name, _to_torch(array) if torch else array) for name, array in named]
    return _pack(values, first)


def decode_part(
    blob: Any, part: int | str, *, torch: bool | None = None, threads: int = 1
) -> Any:
    """Decodes one array of many, and of the blocks only those that hold it.

    Args:
        blob: bytes-like object, as for :func:`decode`.
        part: number of the array, counted over all frames from 0, or its name, as
            :func:`inspect` lists them under ``parts``.
        torch, threads: as for :func:`decode`.

    Raises:
        OutOfRange: there is no such array, or its name stands twice.
        Others as :func:`decode`; blocks that hold nothing of the array are not looked at.
    """
    names: list[str] = []
    found: list[tuple[memoryview, dict[str, Any], dict[str, Any], int]] = []
    for frame, info, metadata in _described_frames(blob):
        for at, name in enumerate(_names_and_shapes(info, metadata)[0]):
            if part == (name if isinstance(part, str) else len(names)):
                found.append((frame, info, metadata, at))
            names.append(name)
    if len(found) != 1:
        what = "stands more than once" if found else "is not there"
        raise OutOfRange(f"part {part!r} {what}; there are {len(names)} parts", field="part",
                         mine=str(part))  # fmt: skip
    frame, info, metadata, at = found[0]
    flat = np.empty(info["part_counts"][at], _NUMPY_TYPES[info["dtype"]])
    _core.decode_part(frame, at, info["dtype"], flat.view(np.uint8), threads)
    shape = _names_and_shapes(info, metadata)[1][at]
    array = _shaped([flat], [shape], metadata.get("fortran_order") is True)[0]
    if torch is None:
        torch = metadata.get("torch") is True
    return _to_torch(array) if torch else array


def inspect(blob: Any) -> dict[str, Any]:
    """What the frames say about themselves, nothing decoded.

    Totals (``values``, ``header_length``, ``encoded_length``, ``ratio``), ``format``, ``dtype``
    and ``codec`` (``"mixed"`` where the frames differ), ``parts`` (name, shape, values) and
    ``frames`` (all header fields and blocks of each).
    """
    frames = []
    for _, info, metadata in _described_frames(blob):
        names, shapes = _names_and_shapes(info, metadata)
        frame = {k: v for k, v in info.items() if k not in ("metadata", "part_counts")}
        frame["format"] = metadata.get("format", "")
        frame["parts"] = [
            {"name": name, "shape": list(shape), "values": count}
            for name, shape, count in zip(names, shapes, info["part_counts"], strict=True)
        ]
        frames.append(frame)
    summed = ("values", "header_length", "encoded_length")
    totals = {key: sum(frame[key] for frame in frames) for key in summed}
    raw = sum(frame["values"] * _NUMPY_TYPES[frame["dtype"]].itemsize for frame in frames)
    return {
        "version": frames[0]["version"],
        "format": frames[0]["format"],
        "dtype": _common([frame["dtype"] for frame in frames]),
        "codec": _common([frame["codec"] for frame in frames]),
        **totals,
        "ratio": raw / totals["encoded_length"],
        "parts": [part for frame in frames for part in frame["parts"]],
        "frames": frames,
    }


def verify(blob: Any) -> None:
    """Checks all checksums; returns nothing, raises as :func:`decode` does."""
    for frame, _, _ in _described_frames(blob):
        _core.verify_frame(frame)


# ---- arrays ----


def _is_torch_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) or _is_torch_tensor(value)


def _unpack(values: Any) -> tuple[str, list[tuple[str, Any]], bool]:
    """Container, names with arrays, and whether they are torch tensors."""
    if _is_array(values):
        container, named = "array", [("data", values)]
    elif isinstance(values, Mapping):
        container, named = "dict", list(values.items())
    elif isinstance(values, list | tuple):
        container, named = "list", [(str(i), value) for i, value in enumerate(values)]
    else:
        raise TypeError(
            f"expected a numpy array, a torch tensor, or a list or dict of them, "
            f"not {type(values).__name__}"
        )
    for name, value in named:
        if not isinstance(name, str):
            raise TypeError(f"names of arrays are strings, not {type(name).__name__}: {name!r}")
        if not _is_array(value):
            raise TypeError(f"array {name}: expected a numpy array or a torch tensor, "
                            f"not {type(value).__name__}")  # fmt: skip
    return container, named, bool(named) and all(_is_torch_tensor(value) for _, value in named)


def _make_item(name: str, value: Any, dtype: str | None) -> _Item:
    array = _from_torch(name, value) if _is_torch_tensor(value) else np.asarray(value)
    own = _NAMES.get(array.dtype)
    if dtype is None or dtype == own:
        if own is None:
            raise TypeError(
                f"array {name} has type {array.dtype} ({array.dtype.str}); "
                f"one of (little-endian): {', '.join(_NUMPY_TYPES)}"
            )
        return _Item(name, array, own)
    if dtype not in _NUMPY_TYPES:
        raise TypeError(f"unknown dtype {dtype}; one of: {', '.join(_NUMPY_TYPES)}")
    holders = {"bfloat16": "uint16", "float8_e4m3": "uint8", "float8_e5m2": "uint8"}
    if own is None or own != holders.get(dtype):
        raise TypeError(f"array {name} of {array.dtype} does not hold the bits of {dtype}")
    return _Item(name, array, dtype)


def _from_torch(name: str, tensor: Any) -> np.ndarray:
    if tensor.device.type != "cpu":
        raise InvalidArgument(
            f"tensor {name} is on {tensor.device}; encode takes CPU tensors: use tensor.cpu()",
            field="device",
            mine="cpu",
            theirs=str(tensor.device),
        )
    torch = sys.modules["torch"]
    if tensor.layout != torch.strided:
        raise InvalidArgument(f"tensor {name} is not dense ({tensor.layout})", field="layout")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    for own, (torch_name, bits) in _TORCH_TYPES.items():
        if tensor.dtype == getattr(torch, torch_name):
            return tensor.view(getattr(torch, bits)).numpy().view(_NUMPY_TYPES[own])
    try:
        return tensor.numpy()
    except TypeError as error:
        raise TypeError(
            f"tensor {name} has type {tensor.dtype}; one of: {', '.join(_NUMPY_TYPES)}"
        ) from error


def _to_torch(array: np.ndarray) -> Any:
    import torch

    name = _NAMES[array.dtype]
    if name not in _TORCH_TYPES:
        return torch.from_numpy(array)
    torch_name, bits = _TORCH_TYPES[name]
    return torch.from_numpy(array.view(bits)).view(getattr(torch, torch_name))


def _is_fortran(array: np.ndarray) -> bool:
    return array.flags.f_contiguous and not array.flags.c_contiguous


def _flat_bytes(array: np.ndarray, fortran_order: bool) -> np.ndarray:
    """The array's bytes in its order; a copy only where they do not lie so."""
    return np.ascontiguousarray(array.T if fortran_order else array).reshape(-1).view(np.uint8)


# ---- frames ----


def _runs(
    items: list[_Item], codec: str, fallback: str | None, frame_bytes: int | None
) -> Iterator[tuple[str, list[_Item]]]:
    """Runs of arrays of one type, one frame each, with the codec of each."""
    run: list[_Item] = []
    size = 0
    for item in items:
        full = frame_bytes is not None and size >= frame_bytes
        if run and (full or run[0].dtype != item.dtype):
            yield _codec_for(run[0], codec, fallback), run
            run, size = [], 0
        run.append(item)
        size += item.array.nbytes
    if run:
        yield _codec_for(run[0], codec, fallback), run
    elif not items:
        yield codec, []


def _codec_for(item: _Item, codec: str, fallback: str | None) -> str:
    try:
        _core.check_dtype(codec, item.dtype)
    except UnsupportedDType as error:
        if not _core.is_compressible(item.dtype):
            return "none"
        if fallback is None:
            error.message = (
                f"array {item.name} is {item.dtype}: {error.message}; "
                "fallback='lossless' keeps such arrays exactly"
            )
            raise
        _core.check_dtype(fallback, item.dtype)
        return fallback
    return codec


def _cut(blob: Any) -> list[memoryview]:
    try:
        rest = memoryview(blob).cast("B")
    except TypeError as error:
        raise TypeError(f"expected contiguous bytes, not {type(blob).__name__}") from error
    if not rest:
        raise Truncated("no bytes, a frame has 128 at least")
    frames = []
    while rest:
        length = _core.frame_length(rest)
        if not 0 < length <= len(rest):
            raise Truncated(f"frame {len(frames)} has {length} bytes, {len(rest)} are there")
        frames.append(rest[:length])
        rest = rest[length:]
    return frames


def _described_frames(blob: Any) -> Iterator[tuple[memoryview, dict[str, Any], dict[str, Any]]]:
    """Each frame with its header and metadata; a lost frame is noticed."""
    frames = _cut(blob)
    for number, frame in enumerate(frames):
        info = _core.inspect_frame(frame)
        metadata: Any = {}
        if info["metadata"]:
            try:
                metadata = json.loads(info["metadata"])
            except (ValueError, RecursionError) as error:
                raise BadHeader(f"frame {number}: metadata is no JSON", field="metadata") from error
        if not isinstance(metadata, dict):
            raise BadHeader(f"frame {number}: metadata is no JSON object", field="metadata")
        expected = {"frame": number, "frames": len(frames)}
        for key, value in expected.items():
            if metadata.get(key, value) != value:
                raise Truncated(
                    f"frame {number} of {len(frames)} says that it is frame "
                    f"{metadata.get('frame')} of {metadata.get('frames')}",
                    field=key,
                    mine=str(value),
                    theirs=str(metadata[key]),
                )
        yield frame, info, metadata


def _names_and_shapes(
    info: dict[str, Any], metadata: dict[str, Any]
) -> tuple[list[str], list[tuple[int, ...]]]:
    counts = info["part_counts"]
    entries = metadata.get("tensors")
    if entries is None:
        return [f"part{i}" for i in range(len(counts))], [(count,) for count in counts]
    try:
        names = [str(entry["name"]) for entry in entries]
        shapes = [tuple(index(extent) for extent in entry["shape"]) for entry in entries]
        fits = len(entries) == len(counts) and all(
            min(shape, default=0) >= 0 and _product(shape) == count
            for shape, count in zip(shapes, counts, strict=True)
        )
    except (TypeError, KeyError, ValueError) as error:
        raise BadHeader("metadata does not describe the parts", field="metadata") from error
    if not fits:
        raise BadHeader("metadata: shapes do not fit the parts", field="metadata")
    return names, shapes


def _shaped(
    flat: list[np.ndarray], shapes: list[tuple[int, ...]], fortran_order: bool
) -> list[np.ndarray]:
    order = "F" if fortran_order else "C"
    try:
        return [array.reshape(s, order=order) for array, s in zip(flat, shapes, strict=True)]
    except (ValueError, OverflowError) as error:  # too many dimensions, or too long ones
        raise BadHeader(f"metadata: {error}", field="metadata") from error


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for extent in shape:
        product *= extent
    return product


def _pack(named: list[tuple[str, Any]], metadata: dict[str, Any]) -> Any:
    form = metadata.get("format")
    container = metadata.get("container")
    if form == "safetensors" or container == "dict":
        values = dict(named)
        if len(values) != len(named):
            raise BadHeader("metadata: a name stands twice", field="metadata")
        return values
    if container != "list" and len(named) == 1:
        return named[0][1]
    return [value for _, value in named]


def _common(values: list[str]) -> str:
    return values[0] if len(set(values)) == 1 else "mixed"
