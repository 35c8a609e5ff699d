"""What the golden frames are: one Case each."""

from __future__ import annotations

from dataclasses import dataclass, field

DTYPE_NUMBERS = {
    "float32": 1, "float64": 2, "float16": 3, "bfloat16": 4, "uint8": 16, "int8": 17, "int16": 18,
    "int32": 19, "int64": 20, "uint16": 21, "uint32": 22, "uint64": 23, "bool": 24,
    "float8_e4m3": 25, "float8_e5m2": 26,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Frame of the first values of an input, cut into parts."""

    name: str
    codec: str
    input: str
    parts: tuple[int, ...]
    dtype: str = "float32"
    tensor: int = 0  # of the first part, then counting up
    first_index: int = 0  # of the first part
    context: dict[str, int] = field(default_factory=dict)
    metadata: str = ""
    # Frames that our encoder does not make, but that are frames.
    decode_only: bool = False
    own_table: tuple[int, ...] = ()


STEP = "near_lossless:step=0.00575,group=256"
LOSSLESS = "lossless:group=256"
LADDER_VALUES = {"f64": 1872, "f16": 186, "bf16": 1530}  # all of these inputs
INT8 = "block:bits=8,group=64,rounding=stochastic,seed=7"
# With types other than float32.
BLOCKS = (INT8, "block:bits=4,group=128,rounding=nearest",
          "block:bits=6,group=8,rounding=stochastic,seed=1")
BOUNDED = (
    "error_bounded:bound=0.125,scale=rms,group=256,rounding=stochastic,seed=3",
    "error_bounded:bound=1,scale=rms,group=64,rounding=nearest",
    "error_bounded:bound=0.004,scale=range,group=tensor,rounding=stochastic,filter=on",
    "error_bounded:bound=0.01,scale=absmax,group=256,rounding=stochastic,filter=on",
    "error_bounded:bound=0.001,scale=absolute,group=256,rounding=nearest",
)  # fmt: skip
ALL = (
    "none", "cast:dtype=bf16", "cast:dtype=fp16", "block:bits=8,group=64,rounding=nearest",
    "block:bits=4,group=128,rounding=stochastic,seed=9",
    "block:bits=6,group=8,rounding=stochastic,seed=1", LOSSLESS, STEP,
    "near_lossless:step=1,group=256", "near_lossless:mantissa=6,group=256",
    "near_lossless:mantissa=1,group=256,rounding=stochastic,seed=5",
    *BOUNDED,
)  # fmt: skip
BASELINES = (
    "natural:seed=5", "mxfp8:format=e4m3", "mxfp8:format=e5m2", "mxfp4",
    "terngrad:bucket=4096,seed=2", "terngrad:bucket=64,clip=2.5,seed=2", "sign:bucket=512",
    "hadamard:bits=4,group=128,seed=3", "qsgd:bits=4,bucket=512,norm=l2,seed=4",
    "qsgd:bits=8,bucket=128,norm=max,seed=4",
    "qsgd:bits=5,bucket=512,norm=l2,coding=elias,seed=4", "top_k:fraction=0.01,dtype=bf16",
    "top_k:fraction=0.25,dtype=fp32",
    "cocktail:sample=2,fraction=0.5,bits=4,group=128,rounding=stochastic,seed=6",
)  # fmt: skip


def short(codec: str) -> str:
    """A codec's text as part of a file name."""
    text = codec.removesuffix(",group=256").removesuffix(":group=256")
    for old, new in ((":", "_"), (",", "_"), ("=", ""), ("rounding", ""), (".", "p")):
        text = text.replace(old, new)
    return text


def every_codec() -> list[Case]:
    """Every codec on the inputs that are hard for it, and on real ones."""
    cases = []
    for codec in ALL:
        cases += [
            Case(f"{short(codec)}_empty", codec, "normal_f32", ()),
            Case(f"{short(codec)}_one", codec, "normal_f32", (1,)),
            Case(f"{short(codec)}_parts", codec, "normal_f32", (0, 257, 1, 0, 63, 1000, 0)),
            Case(f"{short(codec)}_specials", codec, "specials_f32", (1000, 503)),
        ]
        if codec != "none":
            cases += [
                Case(f"{short(codec)}_resnet", codec, "resnet_f32", (2352,)),
                Case(f"{short(codec)}_ladder", codec, "ladder_f32", (1530,)),
                Case(f"{short(codec)}_bits", codec, "bits_f32", (1024,)),
            ]
    return cases


def sizes() -> list[Case]:
    """Lane counts change at 4096, 8192 and 32768 values of a block."""
    cases = [Case(f"step_lanes_{count}", STEP, "normal_f32", (count,))
             for count in (15, 16, 17, 4095, 4096, 4097, 8191, 8192, 32767, 32768)]  # fmt: skip
    cases += [
        Case("mantissa_lanes_8192", "near_lossless:mantissa=6,group=256", "gpt_f32", (8192,)),
        Case("lossless_lanes_33000", LOSSLESS, "normal_f32", (32800, 200)),
        Case("step_lanes_32_short_rows", STEP, "normal_f32", (8000, 33, 7, 31, 1, 129)),
        Case("step_lanes_64_short_rows", STEP, "normal_f32",
             (17, 32000, 63, 65, 33, 95, 31, 1, 500)),
        Case("step_blocks", STEP + ",block=4096", "gpt_f32", (4000, 192, 4000)),
        Case("lossless_blocks", LOSSLESS + ",block=4096", "kfac_f32", (4608,)),
        Case("int8_blocks", INT8 + ",block=4096", "kfac_f32", (100, 4508), tensor=3,
             first_index=77),
        Case("cast_blocks", "cast:dtype=fp16,block=4096", "exact_bf16_f32", (4097,)),
        Case("none_blocks", "none:block=4096", "normal_f32", (1000, 3100)),
    ]  # fmt: skip
    return cases


def values() -> list[Case]:
    """Other types, sparse values, the common trailing zeros of bfloat16, groups and steps."""
    cases = [
        Case("step_gpt", STEP, "gpt_f32", (4000,)),
        Case("step_kfac", STEP, "kfac_f32", (4608,)),
        Case("step_sparse", STEP, "sparse_f32", (5000,)),
        Case("lossless_sparse", LOSSLESS, "sparse_f32", (2000,)),
        Case("lossless_exact_bf16", LOSSLESS, "exact_bf16_f32", (5000,)),
        Case("step_group_64", "near_lossless:step=0.25,group=64", "gpt_f32", (3000,)),
        Case("step_group_4096", "near_lossless:step=0.0625,group=4096", "gpt_f32", (8192,)),
        Case("lossless_group_64", "lossless:group=64", "resnet_f32", (1000,)),
        Case("mantissa_2", "near_lossless:mantissa=2,group=256", "gpt_f32", (3000,)),
        Case("mantissa_9", "near_lossless:mantissa=9,group=256", "gpt_f32", (3000,)),
        Case("mantissa_16", "near_lossless:mantissa=16,group=512", "gpt_f32", (3000,)),
        Case("step_least", "near_lossless:step=0.00390625,group=256", "gpt_f32", (2500,)),
        Case("step_most", "near_lossless:step=8,group=256", "gpt_f32", (8192,)),
        Case("int8_noise", INT8, "gpt_f32", (500, 12), tensor=11, first_index=1 << 33 | 5,
             context={"op": 1, "phase": 1, "reduction": 2, "schedule": 1, "world": 4, "sender": 2,
                      "group_id": 0x1234567890ABCDEF, "step": 400, "sequence": 17, "segment": 1,
                      "segment_count": 3, "first_value": 4096}),
        Case("step_result", STEP, "gpt_f32", (700,),
             context={"op": 2, "phase": 2, "reduction": 1, "schedule": 1, "world": 2, "sender": 1}),
        Case("none_metadata", "none", "gpt_f32", (6, 2),
             metadata='{"format": "raw", "tensors": [{"name": "a", "shape": [2, 3]}, '
                      '{"name": "b", "shape": [2]}]}'),
    ]  # fmt: skip
    for dtype, name in (("float64", "f64"), ("float16", "f16"), ("bfloat16", "bf16")):
        hard = "specials_f64" if name == "f64" else f"bits_{name}"
        cases += [
            Case(f"lossless_{name}_normal", LOSSLESS, f"normal_{name}", (4400,), dtype),
            Case(f"lossless_{name}_parts", LOSSLESS, f"normal_{name}", (0, 300, 1, 99), dtype),
            Case(f"lossless_{name}_hard", LOSSLESS, hard, (1500,), dtype),
            Case(f"lossless_{name}_empty", LOSSLESS, hard, (), dtype),
            Case(f"none_{name}", "none", hard, (70,), dtype),
        ]
        for codec in (STEP, "near_lossless:step=0.00390625,group=256",
                      "near_lossless:step=1,group=64", "near_lossless:mantissa=6,group=256",
                      "near_lossless:mantissa=16,group=256"):  # fmt: skip
            cases += [
                Case(f"{short(codec)}_{name}_normal", codec, f"normal_{name}", (4000, 400), dtype),
                Case(f"{short(codec)}_{name}_hard", codec, hard, (1024, 400), dtype),
            ]
        for codec in (STEP, "near_lossless:step=8,group=64",
                      "near_lossless:mantissa=6,group=256"):  # fmt: skip
            cases.append(Case(f"{short(codec)}_{name}_ladder", codec, f"ladder_{name}",
                              (LADDER_VALUES[name],), dtype))  # fmt: skip
        for codec in (*BLOCKS, *BOUNDED):
            cases += [
                Case(f"{short(codec)}_{name}_normal", codec, f"normal_{name}", (0, 257, 1, 1000),
                     dtype, tensor=5, first_index=3),
                Case(f"{short(codec)}_{name}_hard", codec, hard, (1023, 400), dtype),
                Case(f"{short(codec)}_{name}_ladder", codec, f"ladder_{name}",
                     (LADDER_VALUES[name],), dtype),
            ]
        for codec in BLOCKS:
            cases += [
                Case(f"{short(codec)}_{name}_one", codec, f"normal_{name}", (1,), dtype),
                Case(f"{short(codec)}_{name}_empty", codec, f"normal_{name}", (), dtype),
            ]
    cases += [Case(f"{short(codec)}_above_bf16", codec, "above_bf16_f64", (700,), "float64")
              for codec in BLOCKS]
    cases.append(Case("int8_gpt_bf16", INT8, "gpt_bf16", (4608,), "bfloat16"))
    cases += [Case(f"cast_{name}_f64", f"cast:dtype={name}", "specials_f64", (1548,), "float64")
              for name in ("bf16", "fp16")]  # fmt: skip
    cases += [Case("lossless_gpt_bf16", LOSSLESS, "gpt_bf16", (4608,), "bfloat16"),
              Case("step_gpt_bf16", STEP, "gpt_bf16", (4608,), "bfloat16")]  # fmt: skip
    cases += [Case(f"none_{dtype}", "none", "bytes", (30, 2), dtype)
              for dtype, number in DTYPE_NUMBERS.items() if number >= 16]  # fmt: skip
    return cases


def more_values() -> list[Case]:
    """Every codec on sparse, constant and real values, with other groups, noise and contexts."""
    cases = []
    for codec in ALL:
        if codec == "none":
            continue
        cases += [
            Case(f"{short(codec)}_on_sparse", codec, "sparse_f32", (700, 1, 299)),
            Case(f"{short(codec)}_on_constant", codec, "constant_f32", (600,)),
            Case(f"{short(codec)}_on_kfac", codec, "kfac_f32", (64, 1500)),
            Case(f"{short(codec)}_on_exact_bf16", codec, "exact_bf16_f32", (1100,)),
        ]  # fmt: skip
    for group in (64, 128, 512, 2048):
        cases += [
            Case(f"step_groups_of_{group}", f"near_lossless:step=0.00575,group={group}",
                 "resnet_f32", (2000, 352)),
            Case(f"lossless_groups_of_{group}", f"lossless:group={group}", "gpt_f32", (2100,)),
        ]  # fmt: skip
    for step in ("0.0078125", "0.015625", "0.03125", "0.125", "0.5", "2", "4"):
        name = step.replace(".", "p")
        cases.append(Case(f"step_of_{name}", f"near_lossless:step={step},group=256", "gpt_f32",
                          (1300,)))  # fmt: skip
    for mantissa in (3, 4, 5, 7, 8, 10, 12):
        cases.append(Case(f"mantissa_of_{mantissa}", f"near_lossless:mantissa={mantissa},group=256",
                          "resnet_f32", (1300,)))  # fmt: skip
    for bits in (4, 6, 8):
        for seed in (0, 2**64 - 1):
            noise = f"block:bits={bits},group=64,rounding=stochastic,seed={seed}"
            cases.append(Case(f"noise_bits{bits}_seed{seed}", noise, "gpt_f32", (200, 184),
                              tensor=2**32 - 2, first_index=2**40,
                              context={"phase": 1, "step": 2**63, "sender": 7,
                                       "world": 8}))  # fmt: skip
    return cases


def own_tables() -> list[Case]:
    """Values unlike those of the built-in tables; "unforeseen": coded again with the built-in."""
    cases = []
    for codec in ("near_lossless:step=8,group=256", "near_lossless:step=0.00575,group=128",
                  "near_lossless:mantissa=6,group=256", LOSSLESS):  # fmt: skip
        name = f"own_{short(codec).replace(',', '_')}"
        cases += [
            Case(f"{name}_16_lanes", codec, "mostly_zero_f32", (4097, 33)),
            Case(f"{name}_64_lanes", codec, "mostly_zero_f32", (17, 32783)),
            Case(f"{name}_unforeseen", codec, "unforeseen_f32", (4608,)),
        ]
        cases += [
            Case(f"{name}_{short_type}", codec, f"mostly_zero_{short_type}", (4130,), dtype)
            for dtype, short_type in (("float16", "f16"), ("bfloat16", "bf16"), ("float64", "f64"))
        ]
    return cases


def huffman() -> list[Case]:
    """The coded codecs with coder 2."""
    cases = []
    for codec in (STEP, LOSSLESS, "near_lossless:mantissa=6,group=256",
                  "near_lossless:step=8,group=256",
                  "error_bounded:bound=0.03125,scale=rms,group=256,rounding=stochastic,seed=3",
                  "error_bounded:bound=1,scale=rms,group=64,rounding=nearest"):  # fmt: skip
        text, name = f"{codec},coder=huffman", f"huffman_{short(codec)}"
        cases += [
            Case(f"{name}_empty", text, "normal_f32", ()),
            Case(f"{name}_parts", text, "normal_f32", (0, 257, 1, 0, 63, 1000, 0)),
            Case(f"{name}_specials", text, "specials_f32", (1000, 503)),
            Case(f"{name}_gpt", text, "gpt_f32", (4000, 4192)),
            Case(f"{name}_own", text, "mostly_zero_f32", (4097, 33)),
        ]
    for codec in (STEP, LOSSLESS, "near_lossless:mantissa=6,group=256"):
        cases += [
            Case(f"huffman_{short(codec)}_{name}", f"{codec},coder=huffman", f"normal_{name}",
                 (4400,), dtype)
            for dtype, name in (("float64", "f64"), ("float16", "f16"), ("bfloat16", "bf16"))
        ]  # fmt: skip
        cases.append(Case(f"huffman_{short(codec)}_64_lanes", f"{codec},coder=huffman",
                          "mostly_zero_f32", (17, 32783)))  # fmt: skip
    return cases


def decode_only() -> list[Case]:
    """Blocks with tables of their own (all tokens of the form), and an error frame."""
    step_table = [0] * 32
    for token in (0, 2, *range(4, 22), 31):
        step_table[token] = 6
    step_table[22] = step_table[23] = 1 + 1
    step_table[2] = 128 - sum(step_table) + step_table[2]
    exponent_table = [4] * 32
    cases = []
    for name, codec, table in (
        ("step", STEP, step_table),
        ("lossless", LOSSLESS, exponent_table),
        ("mantissa", "near_lossless:mantissa=6,group=256", exponent_table),
    ):
        cases.append(Case(f"own_table_{name}", codec, "specials_f32", (1503,), decode_only=True,
                          own_table=tuple(table)))  # fmt: skip
        cases.append(Case(f"own_table_{name}_bf16", codec, "bits_bf16", (1503,), "bfloat16",
                          decode_only=True, own_table=tuple(table)))  # fmt: skip
    prefix_table = [32, 0, 32, 0] + 11 * [4] + 9 * [2] + 7 * [0] + [2]
    cases.append(Case("own_table_huffman", f"{STEP},coder=huffman", "specials_f32", (1503,),
                      decode_only=True, own_table=tuple(prefix_table)))  # fmt: skip
    one_token = tuple(128 if token == 0 else 0 for token in range(32))
    cases.append(Case("own_table_one_token", "near_lossless:step=8,group=256", "constant_f32",
                      (600,), decode_only=True, own_table=one_token))  # fmt: skip
    cases.append(Case("error_frame", STEP, "normal_f32", (), decode_only=True,
                      context={"op": 255, "world": 2, "sender": 1, "sequence": 3},
                      metadata='{"code": 4, "message": "", "field": "", "mine": "", "theirs": "", '
                               '"rank": 1}'))  # fmt: skip
    return cases


def baselines() -> list[Case]:
    """Codecs 16 and up: hard values, parts, real ones, and noise far away from its start."""
    cases = []
    for codec in BASELINES:
        name, blocks = short(codec), codec + ("," if ":" in codec else ":") + "block=4096"
        cases += [
            Case(f"{name}_one", codec, "normal_f32", (1,)),
            Case(f"{name}_parts", codec, "normal_f32", (0, 257, 1, 0, 63, 700, 0)),
            Case(f"{name}_specials", codec, "specials_f32", (1000, 503)),
            Case(f"{name}_ladder", codec, "ladder_f32", (1530,)),
            Case(f"{name}_sparse", codec, "sparse_f32", (700, 1, 299)),
            Case(f"{name}_gpt", blocks, "gpt_f32", (4000, 1500), tensor=3,
                 first_index=1 << 33 | 5, context={"phase": 2, "step": 7, "sender": 3, "world": 4}),
        ]  # fmt: skip
    return cases


def all_cases() -> list[Case]:
    return (baselines() + every_codec() + sizes() + values() + more_values() + own_tables()
            + huffman() + decode_only())  # fmt: skip
