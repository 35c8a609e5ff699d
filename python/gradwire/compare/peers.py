"""Compressors of other packages, in the comparison only: PowerSGD (torch's hook), SZ3 (pysz)."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import importlib.util
import math
import shutil
import signal
import tempfile
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

from gradwire.compare.exchange import Exchange, Traffic
from gradwire.errors import InvalidArgument, UnknownParameter

# Name, its one parameter, and the values that this may have.
_PARAMETERS = {"power_sgd": ("rank", 1, 64), "sz3": ("bound", 1e-6, 0.5)}
_PATIENCE = 120.0  # seconds that the ranks of the hook may take to start, or for a step


def is_peer(codec: str) -> bool:
    return codec.partition(":")[0] in _PARAMETERS


def why_missing(codec: str) -> str | None:
    """None if the peer can be used here, else the reason."""
    name, _ = parse(codec)
    if name == "sz3" and importlib.util.find_spec("pysz") is None:
        return "pysz is not installed (pip install pysz)"
    if name == "power_sgd" and not (dist.is_available() and dist.is_gloo_available()):
        return "this build of torch has no Gloo"
    return None


def parse(codec: str) -> tuple[str, float]:
    """``power_sgd:rank=4`` to name and value. UnknownParameter, InvalidArgument."""
    name, _, rest = codec.partition(":")
    parameter, least, most = _PARAMETERS[name]
    key, _, text = rest.partition("=")
    if key != parameter:
        raise UnknownParameter(
            f"{name} has no parameter {key!r}; it has: {parameter}", field=key or parameter
        )
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most or (name == "power_sgd" and value != int(value)):
        raise InvalidArgument(
            f"{parameter} of {name} is {text!r}, must be {least} to {most}",
            field=parameter,
            mine=text,
        )
    return name, value


def make(codec: str, ranks: int, shapes: Sequence[torch.Size], seed: int) -> Exchange:
    name, value = parse(codec)
    if name == "sz3":
        return Sz3Exchange(value, shapes)
    return PowerSgdExchange(int(value), ranks, shapes, seed)


class Sz3Exchange:
    """SZ3 on every parameter: each rank's gradient, then the mean. ``bound``: part of the
    parameter's range that a value may be off, the setting that COMPSO's paper compares with."""

    def __init__(self, bound: float, shapes: Sequence[torch.Size]) -> None:
        self._sz = importlib.import_module("pysz")
        self._bound = bound
        self._counts = [shape.numel() for shape in shapes]

    def reduce(self, gradients: list[torch.Tensor], step: int) -> tuple[torch.Tensor, Traffic]:
        sent = 0
        total = torch.zeros_like(gradients[0])
        for gradient in gradients:
            sent += self._round_trip(gradient.numpy())
            total += gradient
        total /= len(gradients)
        owners = self._round_trip(total.numpy())
        # Of both halves a rank keeps one share in `ranks` for itself.
        others = len(gradients) - 1
        raw = 2 * others * total.numel() * 4
        return total, Traffic(raw, sent * others // len(gradients) + owners * others)

    def _round_trip(self, values: np.ndarray) -> int:
        """Replaces the values by what SZ3 makes of them; returns its bytes."""
        size = first = 0
        for count in self._counts:
            part = values[first : first + count]
            first += count
            reach = float(part.max() - part.min()) if count else 0.0
            if not math.isfinite(reach) or reach == 0 or count < 2:
                size += part.nbytes
                continue
            config = self._sz.szConfig(part.shape)
            config.errorBoundMode = self._sz.szErrorBoundMode.ABS
            config.absErrorBound = self._bound * reach
            data = self._sz.sz.compress(part, config)[0]
            part[:] = self._sz.sz.decompress(data, np.float32, (count,))[0]
            size += data.nbytes
        return size

    def close(self) -> None:
        pass


class PowerSgdExchange:
    """torch's powerSGD_hook as it is, in one process for each rank, over Gloo.

    Its own error feedback and warm start; the first two steps are exact, as it demands.
    """

    def __init__(self, rank: int, ranks: int, shapes: Sequence[torch.Size], seed: int) -> None:
        values = sum(shape.numel() for shape in shapes)
        self._gradients = torch.zeros(ranks, values).share_memory_()
        self._processes = _rank_processes(ranks)
        self._processes.tell((self._gradients, list(shapes), rank, seed))

    def reduce(self, gradients: list[torch.Tensor], step: int) -> tuple[torch.Tensor, Traffic]:
        for shared, gradient in zip(self._gradients, gradients, strict=True):
            shared.copy_(gradient)
        self._processes.tell(step)
        sent = self._processes.answers()[0]
        others = len(gradients) - 1
        raw = 2 * others * gradients[0].numel() * 4
        return self._gradients[0].clone(), Traffic(raw, 2 * others * sent * 4)

    def close(self) -> None:
        pass  # the processes serve the next run


class _RankProcesses:
    """One process per rank for the whole life of this one: to start them takes seconds."""

    def __init__(self, ranks: int) -> None:
        context = multiprocessing.get_context("spawn")
        folder = tempfile.mkdtemp(prefix="gradwire-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self._pipes: list[Connection] = []
        for number in range(ranks):
            here, there = context.Pipe()
            store = str(Path(folder) / "store")
            # A daemon ends with this process, at the latest when its pipe does.
            context.Process(
                target=_power_sgd_rank, args=(there, store, number, ranks), daemon=True
            ).start()
            there.close()
            self._pipes.append(here)

    def tell(self, message: Any) -> None:
        for rank, pipe in enumerate(self._pipes):
            try:
                pipe.send(message)
            except OSError:
                raise _has_ended(rank) from None

    def answers(self) -> list[int]:
        return [self._answer(rank, pipe) for rank, pipe in enumerate(self._pipes)]

    def _answer(self, rank: int, pipe: Connection) -> int:
        if not pipe.poll(_PATIENCE):
            raise TimeoutError(f"rank {rank} of PowerSGD did not answer for {_PATIENCE:.0f} s")
        try:
            return pipe.recv()
        except (EOFError, OSError):
            raise _has_ended(rank) from None


def _has_ended(rank: int) -> RuntimeError:
    return RuntimeError(f"rank {rank} of PowerSGD ended; its error is printed above")


_rank_processes = functools.cache(_RankProcesses)


class _Bucket:
    """What the hook asks of DDP's bucket: the whole model as one."""

    def __init__(self, flat: torch.Tensor, shapes: Sequence[torch.Size]) -> None:
        self._flat = flat
        pieces = flat.split([shape.numel() for shape in shapes])
        self._views = [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]

    def buffer(self) -> torch.Tensor:
        return self._flat

    def gradients(self) -> list[torch.Tensor]:
        return self._views

    def index(self) -> int:
        return 0

    def is_last(self) -> bool:
        return True


def _power_sgd_rank(pipe: Connection, store: str, number: int, ranks: int) -> None:
    """One rank. A run begins with its (gradients, shapes, rank, seed); then for every step number
    its row of ``gradients`` is reduced, and the count of values that it sent goes back."""
    from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the one that serves it
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", store=dist.FileStore(store, ranks), rank=number, world_size=ranks
    )
    with contextlib.suppress(EOFError, OSError):  # nobody asks any more
        while True:
            message = pipe.recv()
            if isinstance(message, tuple):
                gradients, shapes, rank, seed = message
                state = PowerSGDState(None, rank, start_powerSGD_iter=2, random_seed=seed)
                bucket = _Bucket(gradients[number], shapes)
            else:
                pipe.send(_reduce(state, bucket))


def _reduce(state: Any, bucket: _Bucket) -> int:
    """Calls the hook; how many values it sent."""
    from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import powerSGD_hook

    before = (state.total_numel_before_compression, state.total_numel_after_compression)
    result = powerSGD_hook(state, bucket).wait()
    bucket.buffer().copy_(result[0] if isinstance(result, list) else result)
    if state.total_numel_before_compression == before[0]:
        return bucket.buffer().numel()  # one of the first steps, which are exact
    return state.total_numel_after_compression - before[1]
