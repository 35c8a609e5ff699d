"""gradwire.encode, decode, inspect and verify on numpy arrays."""

from __future__ import annotations

import json
import threading

import gradwire
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

TYPES = ["f4", "f8", "f2", "u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8", "?"]
ML_TYPES = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
FLOATS = ["f4", "f8", "f2", ml_dtypes.bfloat16]


def gradient(shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 1e-3).astype(np.float32)


def assert_same(back: np.ndarray, array: np.ndarray) -> None:
    """Type, shape and every bit, NaN payloads and -0 included."""
    assert back.dtype == array.dtype and back.shape == array.shape
    assert back.tobytes() == np.asarray(array).tobytes()


@pytest.mark.parametrize("dtype", TYPES + ML_TYPES)
@pytest.mark.parametrize("codec", ["none", "lossless"])
def test_every_type_comes_back(dtype: object, codec: str) -> None:
    for shape in [(), (0,), (1,), (3, 0, 2), (70, 90)]:
        array = (gradient(shape) * 1e4).astype(dtype)
        assert_same(gradwire.decode(gradwire.encode(array, codec)), array)


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(st.sampled_from(["<u4", "<u8", "<u2"]), hnp.array_shapes(min_dims=0, min_side=0)),
    st.sampled_from(["none", "lossless"]),
)
def test_every_bit_pattern_comes_back(bits: np.ndarray, codec: str) -> None:
    array = np.asarray(bits).view({4: "<f4", 8: "<f8", 2: "<f2"}[bits.dtype.itemsize])
    assert_same(gradwire.decode(gradwire.encode(array, codec)), array)


def test_strides_and_orders() -> None:
    x = gradient((60, 40, 5))
    for array in (x[::3, ::-2], x.T, x[:, 7], np.asfortranarray(x), x[::-1], x[1:2, :, 0],
                  np.broadcast_to(x[0], (4, 40, 5))):  # fmt: skip
        back = gradwire.decode(gradwire.encode(array, "lossless"))
        assert_same(back, array)
    back = gradwire.decode(gradwire.encode(np.asfortranarray(x), "lossless"))
    assert back.flags.f_contiguous and not back.flags.c_contiguous


def test_read_only_input_and_writable_output() -> None:
    array = gradient((100,))
    array.flags.writeable = False
    back = gradwire.decode(gradwire.encode(array, "none"))
    back[0] = 1  # own memory
    assert array[0] != 1


def test_containers() -> None:
    arrays = {"w": gradient((30, 50)), "steps": np.arange(4), "b": gradient((7,)),
              "h": gradient((9,)).astype(np.float16), "é": gradient((2,))}  # fmt: skip
    back = gradwire.decode(gradwire.encode(arrays, "lossless"))
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert_same(back[name], array)
    for container in (list(arrays.values()), tuple(arrays.values()), [arrays["w"]]):
        back = gradwire.decode(gradwire.encode(container, "lossless"))
        assert isinstance(back, list) and len(back) == len(container)
        for a, b in zip(back, container, strict=True):
            assert_same(a, b)
    assert gradwire.decode(gradwire.encode([])) == []
    assert gradwire.decode(gradwire.encode({})) == {}


@pytest.mark.parametrize(
    ("codec", "bound"),
    [("cast:dtype=bf16", 3e-3), ("int8", 2e-2), ("near_lossless", 3e-3),
     ("near_lossless:mantissa=6", 8e-3)],
)  # fmt: skip
def test_lossy_codecs(codec: str, bound: float) -> None:
    x = gradient((200, 256))
    blob = gradwire.encode(x, codec)
    assert len(blob) < x.nbytes / 1.9
    back = gradwire.decode(blob)
    assert 0 < np.linalg.norm(back - x) / np.linalg.norm(x) < bound
    assert blob == gradwire.encode(x.copy(), codec)


@pytest.mark.parametrize("codec", ["cast:dtype=bf16", "natural"])
def test_codecs_refuse_types_by_name(codec: str) -> None:
    x = gradient((200, 256))
    with pytest.raises(gradwire.UnsupportedDType, match="array data is float16.*fallback"):
        gradwire.encode(x.astype(np.float16), codec)
    mixed = {"a": x, "b": x.astype(np.float16)}
    back = gradwire.decode(gradwire.encode(mixed, codec, fallback="lossless"))
    assert_same(back["b"], mixed["b"])


@pytest.mark.parametrize("dtype", ["f8", "f2", ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("codec", "bound"),
    [("near_lossless", 3e-3), ("near_lossless:mantissa=6", 8e-3), ("int8", 2e-2)],
)
def test_near_lossless_of_other_types(dtype: object, codec: str, bound: float) -> None:
    x = (64 * gradient((200, 256))).astype(dtype)
    x[0, :4] = np.nan, np.inf, -np.inf, -0.0
    blob = gradwire.encode(x, codec)
    assert len(blob) < x.nbytes / 1.3
    back = gradwire.decode(blob)
    assert back.dtype == x.dtype
    zero = "-0.0" if codec == "int8" else "0.0"  # int8 keeps a whole group that has a NaN
    assert back[0, :4].astype(np.float64).astype(str).tolist() == ["nan", "inf", "-inf", zero]
    given, error = x.astype(np.float64)[1:], (back.astype(np.float64) - x.astype(np.float64))[1:]
    assert np.linalg.norm(error) / np.linalg.norm(given) < bound


def test_step_chooses_the_noise() -> None:
    x = gradient((64, 64))
    codec = "block:bits=4,rounding=stochastic"
    first, second = gradwire.encode(x, codec, step=1), gradwire.encode(x, codec, step=2)
    assert first == gradwire.encode(x, codec, step=1)
    assert not np.array_equal(gradwire.decode(first), gradwire.decode(second))


@pytest.mark.parametrize("codec", ["none", "lossless", "near_lossless", "int8"])
def test_threads_change_nothing(codec: str) -> None:
    x = np.random.default_rng(4).standard_normal(1_000_003).astype(np.float32)
    blob = gradwire.encode(x, codec)
    back = gradwire.decode(blob)
    for threads in (0, 2, 3):
        assert gradwire.encode(x, codec, threads=threads) == blob
        np.testing.assert_array_equal(gradwire.decode(blob, threads=threads), back)
    with pytest.raises(gradwire.errors.OutOfRange, match="threads"):
        gradwire.encode(x, codec, threads=257)
    with pytest.raises(gradwire.errors.OutOfRange, match="threads"):
        gradwire.decode(blob, threads=257)


def test_bits_with_a_name() -> None:
    x = gradient((40, 40)).astype(ml_dtypes.bfloat16)
    blob = gradwire.encode(x.view(np.uint16), "lossless", dtype="bfloat16")
    assert_same(gradwire.decode(blob), x)
    assert blob == gradwire.encode(x, "lossless")
    with pytest.raises(TypeError, match="does not hold the bits of bfloat16"):
        gradwire.encode(gradient((3,)), dtype="bfloat16")
    with pytest.raises(TypeError, match="unknown dtype bf16; one of: float32,.*bfloat16"):
        gradwire.encode(x, dtype="bf16")


@pytest.mark.parametrize("dtype", [">f4", ">i2", "c8", "O", "U3", "V2", "M8[s]", [("a", "f4")]])
def test_other_types_are_refused(dtype: object) -> None:
    with pytest.raises(TypeError, match=r"array data has type.*float32.*bfloat16.*float8_e5m2"):
        gradwire.encode(np.zeros(3, dtype))


def test_what_is_no_array_is_refused() -> None:
    for values in (3, "text", None, b"bytes", {1, 2}):
        with pytest.raises(TypeError, match="expected a numpy array, a torch tensor, or a list"):
            gradwire.encode(values)
    with pytest.raises(TypeError, match="array 1: expected"):
        gradwire.encode([gradient((3,)), [1.0]])
    with pytest.raises(TypeError, match="strings, not int"):
        gradwire.encode({1: gradient((3,))})


def test_wrong_codecs_are_named() -> None:
    x = gradient((3,))
    with pytest.raises(gradwire.UnknownCodec, match="near_lossless") as caught:
        gradwire.encode(x, "nonsense")
    assert caught.value.code == "UnknownCodec" and isinstance(caught.value, ValueError)
    with pytest.raises(gradwire.GradwireError, match="dtype") as caught:
        gradwire.encode(x, "cast:nonsense=1")
    assert caught.value.code == "UnknownParameter"
    with pytest.raises(gradwire.GradwireError, match="bits") as caught:
        gradwire.encode(x, "block:bits=5")
    assert caught.value.code == "OutOfRange"
    for fallback in ("nonsense", "natural"):
        with pytest.raises(gradwire.GradwireError):
            gradwire.encode(x.astype(np.float16), "natural", fallback=fallback)


def test_codecs_examples_work() -> None:
    x = gradient((20, 300))
    listed = gradwire.codecs()
    assert {"none", "cast", "block", "lossless", "near_lossless"} <= {c["name"] for c in listed}
    for codec in listed:
        for example in codec["examples"]:
            assert gradwire.decode(gradwire.encode(x, example)).shape == x.shape


def test_inspect() -> None:
    arrays = {"w": gradient((30, 50)), "n": np.arange(4)}
    blob = gradwire.encode(arrays, "lossless")
    info = gradwire.inspect(blob)
    assert info["values"] == 1504 and info["encoded_length"] == len(blob)
    assert info["dtype"] == info["codec"] == "mixed" and info["format"] == "arrays"
    assert info["parts"] == [{"name": "w", "shape": [30, 50], "values": 1500},
                             {"name": "n", "shape": [4], "values": 4}]  # fmt: skip
    assert [frame["dtype"] for frame in info["frames"]] == ["float32", "int64"]
    assert info["ratio"] == (6000 + 32) / len(blob)
    single = gradwire.inspect(gradwire.encode(gradient((5000,)), "cast:dtype=bf16"))
    assert single["codec"] == "cast:dtype=bf16" and single["dtype"] == "float32"
    assert [block["kind"] for block in single["frames"][0]["blocks"]] == ["fixed"]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, "u1")])
def test_kinds_of_bytes(kind: object) -> None:
    x = gradient((300,))
    blob = gradwire.encode(x, "lossless")
    assert_same(gradwire.decode(kind(blob)), x)
    gradwire.verify(kind(blob))
    assert gradwire.inspect(kind(blob)) == gradwire.inspect(blob)


def test_damage_is_named() -> None:
    blob = gradwire.encode({"a": gradient((40, 40)), "n": np.arange(3)}, "lossless")
    read = (gradwire.decode, gradwire.verify)
    for function in (*read, gradwire.inspect):
        for length in (0, 1, 127, 128, len(blob) - 1):
            with pytest.raises(gradwire.GradwireError) as caught:
                function(blob[:length])
            assert caught.value.code == "Truncated"
        with pytest.raises(gradwire.GradwireError) as caught:
            function(b"nonsense" * 30)
        assert caught.value.code == "BadMagic"
        with pytest.raises(TypeError):
            function(3)
    for place in range(0, 8 * len(blob), 97):
        damaged = bytearray(blob)
        damaged[place // 8] ^= 1 << place % 8
        for function in read:
            with pytest.raises(gradwire.GradwireError):
                function(damaged)
    length = gradwire.inspect(blob)["frames"][0]["encoded_length"]
    for frames in (blob[:length], blob[length:], blob + blob[:length], blob * 2):
        with pytest.raises(gradwire.GradwireError) as caught:
            gradwire.decode(frames)
        assert caught.value.code == "Truncated"


def test_one_array_of_many() -> None:
    arrays = {"w": gradient((300, 50)), "empty": gradient((0, 3)), "b": gradient((7,)),
              "steps": np.arange(4), "h": gradient((90, 2)).astype(np.float16)}  # fmt: skip
    for codec in ("lossless:block=4096", "near_lossless:block=4096"):
        blob = gradwire.encode(arrays, codec)
        decoded = gradwire.decode(blob)
        for number, name in enumerate(arrays):
            assert_same(gradwire.decode_part(blob, name), decoded[name])
            assert_same(gradwire.decode_part(blob, number, threads=2), decoded[name])
    fortran = np.asfortranarray(gradient((30, 40)))
    assert_same(gradwire.decode_part(gradwire.encode(fortran), 0), fortran)
    for wrong in (-1, len(arrays), 2**40, "nobody", ""):
        with pytest.raises(gradwire.errors.OutOfRange, match="5 parts"):
            gradwire.decode_part(blob, wrong)
    # The block of another array does not matter, its own does.
    info = gradwire.inspect(gradwire.encode(arrays, "none:block=4096"))
    damaged = bytearray(gradwire.encode(arrays, "none:block=4096"))
    damaged[info["frames"][0]["header_length"]] ^= 1
    assert_same(gradwire.decode_part(damaged, "b"), arrays["b"])
    with pytest.raises(gradwire.errors.BlockChecksum):
        gradwire.decode_part(damaged, "w")


def test_frames_end_where_they_are_full() -> None:
    arrays = [gradient((1000,), seed) for seed in range(7)]
    for frame_bytes, frames in ((1, 7), (4000, 7), (4001, 4), (12000, 3), (28000, 1), (None, 1)):
        blob = gradwire.encode(arrays, "lossless", frame_bytes=frame_bytes)
        assert len(gradwire.inspect(blob)["frames"]) == frames
        for number, array in enumerate(arrays):
            assert_same(gradwire.decode_part(blob, number), array)
    with pytest.raises(gradwire.errors.OutOfRange, match="frame_bytes"):
        gradwire.encode(arrays, frame_bytes=0)


def test_core_checks_its_buffers() -> None:
    from gradwire import _core

    x = np.arange(8, dtype=np.uint8)
    frame = _core.encode_frame([x], "float32", "none")
    for out in (np.empty(4, np.uint8), np.empty(12, np.uint8), np.empty(7, np.uint8)):
        with pytest.raises(ValueError):
            _core.decode_frame(frame, "float32", [out])
    for arrays in ([], [x.copy(), x.copy()]):
        with pytest.raises(ValueError):
            _core.decode_frame(frame, "float32", arrays)
    with pytest.raises(ValueError):
        _core.decode_frame(frame, "int32", [x.copy()])
    with pytest.raises((ValueError, BufferError)):
        _core.decode_frame(frame, "float32", [bytes(8)])  # read-only
    with pytest.raises((ValueError, BufferError)):
        _core.decode_part(frame, 0, "float32", bytes(8))
    with pytest.raises(ValueError):
        _core.decode_part(frame, 0, "float32", np.empty(4, np.uint8))
    with pytest.raises(gradwire.errors.OutOfRange):
        _core.decode_part(frame, 1, "float32", x.copy())
    with pytest.raises((ValueError, BufferError)):
        _core.encode_frame([np.arange(16, dtype=np.uint8)[::2]], "float32", "none")
    with pytest.raises(TypeError, match="float32"):
        _core.encode_frame([x], "nonsense", "none")


def test_metadata_that_lies() -> None:
    from gradwire import _core

    x = np.zeros(16, np.uint8)
    for metadata in ("[]", "nonsense", "[" * 100_000, '{"tensors": 3}', '{"tensors": [3]}',
                     '{"tensors": []}', '{"tensors": [{"name": "a", "shape": [3]}]}',
                     '{"tensors": [{"name": "a", "shape": [-2, -2]}]}',
                     '{"tensors": [{"name": "a", "shape": [1e999]}]}',
                     '{"tensors": [{"name": "a", "shape": ["4"]}]}',
                     '{"format": "safetensors", "tensors": [{"shape": [4]}]}',
                     '{"frame": 1}', '{"frames": "1"}'):  # fmt: skip
        frame = _core.encode_frame([x], "float32", "none", metadata)
        with pytest.raises(gradwire.GradwireError) as caught:
            gradwire.decode(frame)
        assert caught.value.code in ("BadHeader", "Truncated"), metadata
    assert gradwire.decode(_core.encode_frame([x], "float32", "none")).shape == (4,)
    for entries in ([{"name": "a", "shape": [0, 2**70]}], [{"name": "a", "shape": [0] * 99}],
                    [{"name": "a", "shape": [0]}] * 2):  # fmt: skip
        metadata = json.dumps({"format": "safetensors", "tensors": entries})
        frame = _core.encode_frame([x[:0]] * len(entries), "float32", "none", metadata)
        with pytest.raises(gradwire.GradwireError) as caught:
            gradwire.decode(frame)
        assert caught.value.code == "BadHeader"


def test_threads_work_side_by_side() -> None:
    arrays = [gradient((200, 500), seed) for seed in range(4)]
    results: list[np.ndarray | None] = [None] * 4

    def work(i: int) -> None:
        for _ in range(5):
            results[i] = gradwire.decode(gradwire.encode(arrays[i], "lossless"))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for back, array in zip(results, arrays, strict=True):
        assert_same(back, array)
