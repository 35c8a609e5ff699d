#!/usr/bin/env python3
"""All-reduce of float32 between two hosts: c10d alone, cast to bfloat16, and Gradwire's codecs.

Usage: network.py [--link LINK] [--mib N]... [--codec SPEC]... [--repeat N] [--out FILE]

LINK is what tools/two_hosts takes; two network namespaces need root. Prints milliseconds (median)
of each call, and writes FILE (default out/bench-network/<LINK>.json): {"results": [{name, mib, ms,
ms_min, ms_max, ratio, rel_l2, cpu_ms, gbps}]}. Exit status: 0 done, 1 a rank failed, 2 wrong usage,
3 the link cannot be made here.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

ROOT = Path(__file__).resolve().parent.parent
TWO_HOSTS = ROOT / "tools" / "two_hosts"
SIZES_MIB = (25, 100)
CODECS = ("int8", "lossless", "near_lossless")
REPEAT = 7
ROW = 1024
SECONDS_PER_CALL = 30  # for the time limit of the whole

AllReduce = Callable[[torch.Tensor], float]  # averages in place, returns the ratio


# ---- values ----


def synthetic(count: int, rank: int) -> torch.Tensor:
    """Normal values in rows of scales that differ by some octaves, as gradients have them."""
    generator = torch.Generator().manual_seed(100 + rank)
    rows = -(-count // ROW)
    scales = torch.exp2(torch.randn(rows, 1, generator=generator) * 1.5 - 12)
    return (torch.randn(rows, ROW, generator=generator) * scales).flatten()[:count].contiguous()


def from_file(path: Path, count: int, rank: int) -> torch.Tensor:
    """Float32 values of a .safetensors file, repeated; each rank begins somewhere else."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        tensors = [file.get_tensor(name) for name in file.keys()]
    flat = torch.cat([t.flatten() for t in tensors if t.dtype == torch.float32])
    flat = flat.roll(rank * (flat.numel() // 3))
    return flat.repeat(-(-count // flat.numel()))[:count].contiguous()


# ---- what is compared ----


def plain(tensor: torch.Tensor) -> float:
    dist.all_reduce(tensor)
    tensor.div_(dist.get_world_size())
    return 1.0


def bfloat16(tensor: torch.Tensor) -> float:
    """What torch's bf16 hook does with a bucket."""
    half = tensor.to(torch.bfloat16).div_(dist.get_world_size())
    dist.all_reduce(half)
    tensor.copy_(half)
    return 2.0


def gradwire_codec(codec: str) -> AllReduce:
    import gradwire

    def call(tensor: torch.Tensor) -> float:
        return gradwire.all_reduce(tensor, op="avg", codec=codec)["ratio"]

    return call


# ---- one rank ----


def measure(call: AllReduce, values: torch.Tensor, repeat: int) -> dict[str, Any]:
    """Every repetition reduces the same values; the slower rank counts."""
    tensor = values.clone()
    ratio = call(tensor)
    error = relative_error(tensor, values)
    milliseconds, cpu = [], []
    for _ in range(repeat):
        tensor.copy_(values)
        dist.barrier()
        start, cpu_start = time.perf_counter(), time.process_time()
        call(tensor)
        milliseconds.append(1e3 * (time.perf_counter() - start))
        cpu.append(1e3 * (time.process_time() - cpu_start))
    times = torch.tensor(milliseconds)
    dist.all_reduce(times, dist.ReduceOp.MAX)
    median = float(times.median())
    return {
        "ms": median,
        "ms_min": float(times.min()),
        "ms_max": float(times.max()),
        "ratio": ratio,
        "rel_l2": error,
        "cpu_ms": statistics.median(cpu),
        "gbps": 4 * values.numel() / median / 1e6,
    }


def relative_error(result: torch.Tensor, local: torch.Tensor) -> float:
    """L2 distance from the mean of the ranks' values in float64, relative to the mean."""
    gathered = [torch.empty_like(local) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, local)
    mean = gathered[0].to(torch.float64)
    for other in gathered[1:]:
        mean += other
    mean /= len(gathered)
    return float((mean - result).norm() / mean.norm())


def work(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    calls = {"c10d float32": plain, "c10d bfloat16": bfloat16}
    calls |= {codec: gradwire_codec(codec) for codec in arguments.codec or CODECS}
    results = []
    for mib in arguments.mib or SIZES_MIB:
        count = mib * 2**20 // 4
        values = (
            from_file(arguments.values, count, rank)
            if arguments.values
            else synthetic(count, rank)
        )
        for name, call in calls.items():
            results.append({"name": name, "mib": mib} | measure(call, values, arguments.repeat))
            if rank == 0:
                print_row(results[-1], results)
    if rank == 0:
        content = {"link": arguments.link, "repeat": arguments.repeat, "ranks": 2}
        content |= {"torch": torch.__version__, "load_average": os.getloadavg()[0]}
        content |= {"values": str(arguments.values or "synthetic"), "results": results}
        arguments.out.write_text(json.dumps(content, indent=1))
    dist.barrier()
    dist.destroy_process_group()


def print_row(row: dict[str, Any], results: list[dict[str, Any]]) -> None:
    if len(results) == 1:
        print(f"{'MiB':>4}  {'codec':<20}{'ratio':>7}{'rel. L2':>10}{'ms':>9}{'min':>9}{'max':>9}"
              f"{'cpu ms':>9}{'speed':>8}")  # fmt: skip
    base = next(other["ms"] for other in results if other["mib"] == row["mib"])
    print(f"{row['mib']:>4}  {row['name']:<20}{row['ratio']:>7.2f}{row['rel_l2']:>10.1e}"
          f"{row['ms']:>9.1f}{row['ms_min']:>9.1f}{row['ms_max']:>9.1f}{row['cpu_ms']:>9.1f}"
          f"{base / row['ms']:>7.2f}x", flush=True)  # fmt: skip


# ---- the two hosts ----


def launch(arguments: argparse.Namespace) -> int:
    sizes = arguments.mib or SIZES_MIB
    codecs = arguments.codec or CODECS
    calls = len(sizes) * (2 + len(codecs)) * (arguments.repeat + 2)
    command = [sys.executable, str(TWO_HOSTS), "--timeout", str(60 + SECONDS_PER_CALL * calls)]
    command += [arguments.link, sys.executable, __file__, *sys.argv[1:]]
    command += ["--out", str(arguments.out), "--as-rank"]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    print(f"all-reduce of float32 between two ranks, one core each, link {arguments.link}, "
          f"median of {arguments.repeat}", flush=True)  # fmt: skip
    # c10d says on every connection between namespaces that it finds no host name: not that.
    environment = {"TORCH_CPP_LOG_LEVEL": "ERROR"} | os.environ
    status = subprocess.run(command, env=environment, check=False).returncode
    if status == 0:
        print(f"written: {arguments.out}")
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description="All-reduce between two hosts.")
    parser.add_argument("--link", default="1gbit", help="1gbit, 10gbit, ..., none, loopback")
    parser.add_argument("--mib", type=int, action="append", help="size (default 25 and 100)")
    parser.add_argument("--codec", action="append", help=f"default: {', '.join(CODECS)}")
    parser.add_argument("--repeat", type=int, default=REPEAT)
    parser.add_argument("--values", type=Path, help="a .safetensors file of real gradients")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--as-rank", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.out is None:
        arguments.out = ROOT / "out" / "bench-network" / f"{arguments.link}.json"
    if not arguments.as_rank:
        return launch(arguments)
    work(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
