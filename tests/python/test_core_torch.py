"""gradwire.encode and decode on torch CPU tensors."""

from __future__ import annotations

import gradwire
import numpy as np
import pytest

torch = pytest.importorskip("torch")

TYPES = ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "uint8",
         "int8", "int16", "int32", "int64", "bool"]  # fmt: skip


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    bits = [x.contiguous().reshape(-1).view(torch.uint8) for x in (a, b)]
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*bits)


@pytest.mark.parametrize("name", TYPES)
def test_every_type_comes_back(name: str) -> None:
    for shape in [(), (0, 3), (1,), (60, 90)]:
        tensor = (torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 4).to(
            getattr(torch, name)
        )
        back = gradwire.decode(gradwire.encode(tensor, "lossless"))
        assert isinstance(back, torch.Tensor) and same_bits(back, tensor)
        array = gradwire.decode(gradwire.encode(tensor, "lossless"), torch=False)
        assert isinstance(array, np.ndarray) and array.shape == shape
        assert array.tobytes() == tensor.reshape(-1).view(torch.uint8).numpy().tobytes()


def test_strides_gradients_and_containers() -> None:
    x = torch.randn(40, 30, 5, requires_grad=True)
    for tensor in (x.permute(2, 0, 1), x[::2, 3:], x.to(torch.bfloat16).mT[0],
                   x.expand(2, 40, 30, 5)):  # fmt: skip
        assert same_bits(gradwire.decode(gradwire.encode(tensor, "lossless")), tensor.detach())
    named = {"a": x, "b": torch.arange(3)}
    back = gradwire.decode(gradwire.encode(named, "lossless"))
    assert list(back) == ["a", "b"] and all(same_bits(back[n], named[n].detach()) for n in named)
    back = gradwire.decode(gradwire.encode(torch.nn.Linear(7, 3).state_dict(), "lossless"))
    assert back["weight"].shape == (3, 7)


def test_array_and_tensor_give_equal_values() -> None:
    x = torch.randn(64, 64)
    array = gradwire.decode(gradwire.encode(x.numpy(), "near_lossless"))
    assert isinstance(array, np.ndarray)
    tensor = gradwire.decode(gradwire.encode(x.numpy(), "near_lossless"), torch=True)
    assert torch.equal(tensor, torch.from_numpy(array))
    assert torch.equal(tensor, gradwire.decode(gradwire.encode(x, "near_lossless")))


def test_what_cannot_be_encoded() -> None:
    with pytest.raises(ValueError, match="on meta.*cpu"):
        gradwire.encode(torch.zeros(3, device="meta"))
    with pytest.raises(ValueError, match="not dense"):
        gradwire.encode(torch.eye(3).to_sparse())
    with pytest.raises(TypeError, match="complex.*float32"):
        gradwire.encode(torch.zeros(3, dtype=torch.complex64))


def test_flushing_subnormals_changes_no_byte() -> None:
    x = torch.randn(5000) * 1e-39
    x[:100] = torch.randn(100)
    codecs = ["lossless", "near_lossless", "near_lossless:mantissa=6", "int8", "cast:dtype=bf16"]
    expected = [gradwire.encode(x, codec) for codec in codecs]
    decoded = [gradwire.decode(blob) for blob in expected]
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush subnormals")
    try:
        assert [gradwire.encode(x, codec) for codec in codecs] == expected
        again = [gradwire.decode(blob) for blob in expected]
    finally:
        torch.set_flush_denormal(False)
    assert all(same_bits(a, b) for a, b in zip(again, decoded, strict=True))
