"""Damaged frames: for each error name, files that must give exactly this error."""

from __future__ import annotations

import struct
from collections.abc import Callable

import xxhash

from spec_encoder import entry_with, pack_entry, pack_header, seal
from spec_frame import Header, read_frame

# Offsets in a frame of one part and one block.
PART, INDEX = 128, 136


def put(frame: bytes, offset: int, layout: str, value: int | float) -> bytes:
    """The frame with one field changed; its checksums are not mended."""
    data = bytearray(frame)
    struct.pack_into("<" + layout, data, offset, value)
    return bytes(data)


def flip(frame: bytes, offset: int) -> bytes:
    """The frame with one bit changed."""
    at = offset % len(frame)
    return put(frame, at, "B", frame[at] ^ 1)


def rebuild(frame: bytes, edit: Callable[[bytearray], None], **entry_changes: int) -> bytes:
    """The frame with its only block edited; changes are added to the index entry's numbers."""
    old = read_frame(frame)
    block = bytearray(old.blocks[0])
    edit(block)
    changes = {name: getattr(old.index[0], name) + by for name, by in entry_changes.items()}
    entry = entry_with(
        old.index[0], **changes, length=len(block), hash=xxhash.xxh3_64_intdigest(bytes(block))
    )
    head = bytearray(frame[: len(frame) - len(old.blocks[0])])
    index_at = PART + 8 * len(old.parts)
    head[index_at : index_at + 32] = pack_entry(entry)
    length = len(head) + len(block)
    head[:128] = pack_header(Header(**(vars(old.header) | {"encoded_length": length})))
    return seal(bytes(head) + bytes(block))


def set_byte(frame: bytes, at: int, value: int) -> bytes:
    """One byte of the block replaced."""
    return rebuild(frame, lambda block: block.__setitem__(at, value))


def bad_headers(frame: bytes) -> dict[str, bytes]:
    """Fields out of range in a frame of near_lossless in step form."""
    changes = {
        "op": (6, "B", 5), "phase": (7, "B", 3), "dtype": (8, "B", 5), "dtype_codec": (8, "B", 19),
        "reduction": (9, "B", 3), "codec": (10, "B", 15), "coder": (11, "B", 0),
        "coder_high": (11, "B", 3),
        "table_low": (12, "B", 15), "table_high": (12, "B", 39), "table_form": (12, "B", 1),
        "schedule": (13, "B", 2), "rounding": (14, "B", 2), "scale": (15, "B", 1),
        "group_zero": (16, "I", 0), "group_multiple": (16, "I", 96), "group_high": (16, "I", 8192),
        "block_values_zero": (20, "I", 0), "block_values_multiple": (20, "I", 4104),
        "block_values_high": (20, "I", 2097152), "step_low": (24, "d", 0.0039),
        "step_high": (24, "d", 8.5), "step_nan": (24, "d", float("nan")),
        "step_negative": (24, "d", -1.0), "step_none": (24, "d", 0.0), "both_forms": (32, "B", 6),
        "bits": (33, "B", 8), "cast_dtype": (34, "B", 4), "options": (35, "B", 1),
        "segment": (44, "I", 1), "segment_count": (48, "I", 0), "value_count": (64, "Q", 1000),
        "value_count_high": (64, "Q", 2**64 - 1), "block_count": (64, "Q", 2**40),
        "part_table_high": (PART, "Q", 2**64 - 1), "variant": (120, "I", 1),
        "error_frame_values": (6, "B", 255), "index_length": (INDEX, "I", 1),
        "index_kind": (INDEX + 4, "B", 2), "index_kind_high": (INDEX + 4, "B", 3),
        "index_lanes": (INDEX + 5, "B", 8), "index_plane_high": (INDEX + 6, "B", 7),
        "index_plane": (INDEX + 6, "B", 1), "index_scale_bits": (INDEX + 7, "B", 13),
        "index_mantissa": (INDEX + 10, "B", 1), "index_flags": (INDEX + 11, "B", 2),
        "index_reserved": (INDEX + 20, "I", 1),
    }  # fmt: skip
    bad = {name: seal(put(frame, *change)) for name, change in changes.items()}
    # Counts beyond the frame are found before the checksum, which they would place elsewhere.
    bad["part_count_high"] = put(frame, 52, "I", 2**32 - 1)
    bad["block_count_high"] = put(frame, 56, "I", 2**32 - 1)
    bad["metadata_high"] = put(frame, 60, "I", 2**31)
    return bad


def bad_exponent_headers(frame: bytes) -> dict[str, bytes]:
    """What only an index entry in exponent form can have: float32, mantissa 23, plane_bytes 2."""
    changes = {
        "exponent_mantissa": (INDEX + 10, "B", 24),
        "exponent_plane_wide": (INDEX + 6, "B", 3),
        "exponent_lane_bits": (INDEX + 6, "B", 1),
    }
    return {name: seal(put(frame, *change)) for name, change in changes.items()}


def corrupt_step_scales(frames: dict[str, bytes]) -> dict[str, bytes]:
    """Scales that the type does not have, and one where the values leave it."""
    borders = {"f64": (-1074, 1023), "f16": (-24, 15), "bf16": (-133, 127)}
    bad = {}
    for name, (least, most) in borders.items():
        frame = frames[f"near_lossless_step0p00575_{name}_normal"]
        for what, base in (("low", least - 1), ("high", most + 1), ("not_finite", most - 4)):
            change = base - read_frame(frame).index[0].scale_base
            bad[f"scale_{what}_{name}"] = rebuild(frame, lambda b: None, scale_base=change)
    return bad


def corrupt_blocks(frames: dict[str, bytes]) -> dict[str, bytes]:
    """Blocks with a right hash that break a rule of sections 2 to 5."""
    step, own = frames["step_gpt"], frames["own_table_step"]
    exponent = frames["lossless_group_64"]
    int8 = frames["block_bits8_group64_nearest_resnet"]
    groups = 2 * 37  # bytes of int8's scales: 2352 values
    first_state = read_frame(step).blocks[0][6]
    half = frames["own_table_step_bf16"]
    prefix = frames["own_table_huffman"]
    return corrupt_step_scales(frames) | {
        "lane_state": set_byte(step, 6, 128),
        "lane_position": set_byte(step, 7, 16),
        "first_state": set_byte(step, 6, first_state ^ 1),
        "words_missing": rebuild(step, lambda b: b.__delitem__(slice(8, 10)), word_count=-1),
        "words_left": rebuild(step, lambda b: b.__setitem__(slice(8, 8), bytes(2)), word_count=1),
        "sections_short": rebuild(step, lambda b: b.append(0)),
        "sections_long": rebuild(step, lambda b: b.pop()),
        "word_count_high": seal(put(step, INDEX + 12, "I", 2**32 - 1)),
        "outlier_more": rebuild(own, lambda b: b.extend(bytes(4)), outlier_count=1),
        "outlier_less": rebuild(own, lambda b: b.__delitem__(slice(-4, None)), outlier_count=-1),
        "outlier_more_bf16": rebuild(half, lambda b: b.extend(bytes(2)), outlier_count=1),
        "outlier_less_bf16": rebuild(
            half, lambda b: b.__delitem__(slice(-2, None)), outlier_count=-1),
        "scale_high": seal(put(step, INDEX + 8, "h", 127)),
        "scale_low": seal(put(step, INDEX + 8, "h", -150)),
        "not_finite": seal(put(step, INDEX + 8, "h", 120)),
        "exponent_scale_high": seal(put(exponent, INDEX + 8, "h", 255)),
        "exponent_scale_negative": seal(put(exponent, INDEX + 8, "h", -1)),
        "exponent_below_zero": seal(put(exponent, INDEX + 8, "h", 0)),
        "own_table_sum": set_byte(own, 0, 7),
        "own_table_token": set_byte(set_byte(own, 0, 5), 1, 1),
        "own_table_prefix": set_byte(set_byte(prefix, 0, 31), 2, 33),
        "own_table_prefix_one": rebuild(prefix, lambda b: b.__setitem__(
            slice(0, 32), bytes([128, *bytes(31)]))),
        "own_table_bits": set_byte(set_byte(own, 22, 1), 21, 7),
        "int8_scale_nan": set_byte(set_byte(int8, 0, 0xC1), 1, 0x7F),
        "int8_scale_infinite": set_byte(set_byte(int8, 0, 0x80), 1, 0x7F),
        "int8_scale_negative": set_byte(int8, 1, 0xBE),
        "int8_scale_small": set_byte(int8, 1, 0x01),
        "int8_integer": set_byte(int8, groups, 0x80),
        "int8_raw_groups": seal(put(int8, INDEX + 16, "I", 1)),
        "int8_short": rebuild(int8, lambda b: b.pop()),
        "cast_short": rebuild(frames["cast_dtypebf16_resnet"], lambda b: b.pop()),
    } | corrupt_baselines(frames)


def cocktail_scales_at(frame: bytes) -> int:
    """From the end of the block: integers of 4 bits, and a scale for 128 of them."""
    block = read_frame(frame).blocks[0]
    kept = int.from_bytes(block[8:12], "little")
    return len(block) - (kept + 1) // 2 - 2 * -(-kept // 128)


def corrupt_baselines(frames: dict[str, bytes]) -> dict[str, bytes]:
    """The same of sections 4.3 and following."""
    natural = frames["natural_seed5_ladder"]
    # Parts of 257, 1, 63 and 700 values.
    e4m3, e5m2 = frames["mxfp8_formate4m3_parts"], frames["mxfp8_formate5m2_parts"]
    mx_codes = 9 + 1 + 2 + 22
    terngrad, terngrad_codes = frames["terngrad_bucket4096_seed2_parts"], 4 * 4
    sign = frames["sign_bucket512_parts"]
    top_k = frames["top_k_fraction0p25_dtypefp32_parts"]
    cocktail = frames["cocktail_sample2_fraction0p5_bits4_group128_stochastic_seed6_parts"]
    cocktail_scales = cocktail_scales_at(cocktail)
    hadamard, hadamard_codes = frames["hadamard_bits4_group128_seed3_parts"], 2 * (3 + 1 + 1 + 6)
    return {
        "top_k_number_high": set_byte(top_k, 2, 1),
        "top_k_number": set_byte(top_k, 0, read_frame(top_k).blocks[0][0] ^ 1),
        "top_k_ones": set_byte(top_k, 4 + 64, 0xFF),
        "top_k_short": rebuild(top_k, lambda b: b.pop()),
        "top_k_empty": rebuild(top_k, lambda b: b.clear()),
        "cocktail_number_high": set_byte(cocktail, 11, 1),
        "cocktail_ones": set_byte(cocktail, cocktail_scales - 1, 0xFF),
        "cocktail_scale_zero": set_byte(set_byte(cocktail, cocktail_scales, 0),
                                        cocktail_scales + 1, 0),
        "cocktail_scale_raw": set_byte(set_byte(cocktail, cocktail_scales, 0xC0),
                                       cocktail_scales + 1, 0x7F),
        "cocktail_short": rebuild(cocktail, lambda b: b.pop()),
        "natural_short": rebuild(natural, lambda b: b.pop()),
        "natural_long": rebuild(natural, lambda b: b.append(0)),
        "natural_raw_more": rebuild(natural, lambda b: b.extend(bytes(4)), outlier_count=1),
        "natural_raw_uncounted": set_byte(set_byte(natural, 0, 255), 1, 0),
        "mx_scale_high": set_byte(e4m3, 0, 247),
        "mx_code_nan": set_byte(e4m3, mx_codes, 0x7F),
        "mx_code_infinite": set_byte(e5m2, mx_codes, 0x7C),
        "mx_raw_uncounted": set_byte(e4m3, 0, 255),
        "mx_short": rebuild(e4m3, lambda b: b.pop()),
        "levels_scale_low": set_byte(set_byte(terngrad, 2, 0), 3, 1),
        "levels_scale_negative": set_byte(terngrad, 3, 0xBE),
        "levels_scale_high": set_byte(set_byte(terngrad, 2, 0x01), 3, 0x7F),
        "levels_integer": set_byte(terngrad, terngrad_codes, 2),
        "levels_long": rebuild(terngrad, lambda b: b.append(0)),
        "sign_mean_negative": set_byte(sign, 3, 0x80),
        "sign_mean_infinite": set_byte(set_byte(sign, 6, 0x80), 7, 0x7F),
        "hadamard_scale_high": set_byte(set_byte(hadamard, 0, 0x01), 1, 0x7F),
        "hadamard_integer": set_byte(hadamard, hadamard_codes, 0x88),
    }


def bad_frames(frames: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    """Bad frames by error name and file name, made from the golden frames."""
    small, metadata = frames["step_result"], frames["none_metadata"]
    blocks = frames["step_blocks"]
    return {
        "Truncated": {
            "empty": b"", "one_byte": small[:1], "header_short": small[:127],
            "header_only": small[:128], "index_cut": small[:150], "last_byte": small[:-1],
            "length": put(small, 72, "Q", 2**64 - 1),
        },
        "TrailingBytes": {
            "one_byte": small + b"\0", "second_frame": small + small,
            "length_zero": put(small, 72, "Q", 0),
        },
        "BadMagic": {
            "zeros": bytes(128), "text": b"This is not a frame of gradients. " * 4,
            "lower_case": b"gwrf" + small[4:],
        },
        "UnsupportedVersion": {
            "one": put(small, 4, "H", 1), "highest": put(small, 4, "H", 65535),
        },
        "BadHeader": bad_headers(small) | bad_exponent_headers(frames["lossless_group_64"]),
        "HeaderChecksum": {
            "field": flip(small, 88), "checksum": flip(small, 124), "part_table": flip(small, PART),
            "index": flip(small, INDEX), "metadata": flip(metadata, 128 + 8 * 2 + 32 + 4),
        },
        "BlockChecksum": {
            "first_byte": flip(small, INDEX + 32), "last_byte": flip(small, -1),
            "second_block": flip(blocks, -7), "stored": flip(metadata, -1),
            "hash": seal(flip(small, INDEX + 24)),
        },
        "CorruptBlock": corrupt_blocks(frames),
    }  # fmt: skip
