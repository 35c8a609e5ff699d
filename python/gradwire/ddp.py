"""Compressed gradients for ``torch.nn.parallel.DistributedDataParallel``."""

# No "from __future__ import annotations": register_comm_hook() compares the annotations of a hook
# with types, and would find strings.

import math
import weakref
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gradwire import _groups, _torch_module
from gradwire.errors import GradwireError, InvalidArgument, UnsupportedDType
from gradwire.schedule import CodecSchedule

_torch = _torch_module.load()

# One handle for each model that ever had one: torch cannot unregister a hook.
_handles: "weakref.WeakKeyDictionary[DistributedDataParallel, Handle]" = weakref.WeakKeyDictionary()


class _Compression:
    """Statistics, errors and state of one reducer: what Handle and HookState share."""

    _reducer: Any
    _connector: _groups.Connector
    _schedule: CodecSchedule | None = None

    def _start(self, group: dist.ProcessGroup, connector: _groups.Connector) -> None:
        """Makes the reducer with its thread, without any communication."""
        self._connector = connector
        self._reducer = _torch.BucketReducer(group, connector)
        _groups.close_at_exit(self._reducer)

    def _configure(
        self,
        codec: str,
        schedule: CodecSchedule | None,
        deadline: float,
        measure_every: int,
        compare: bool,
    ) -> None:
        choose = schedule.update if schedule is not None else None
        self._reducer.configure(codec, choose, deadline, measure_every, compare=compare)
        self._schedule = schedule

    @property
    def codec(self) -> str:
        """The codec in use, with all parameters that matter: of the step under way or the last."""
        return self._reducer.codec

    @property
    def schedule(self) -> CodecSchedule | None:
        """The schedule that gives the codec, or None."""
        return self._schedule

    @property
    def last_error(self) -> dict[str, Any] | None:
        """The last error of this rank, with the fields of GradwireError, or None."""
        error = self._reducer.last_error()
        if error is None:
            return None
        names = ("code", "message", "field", "mine", "theirs", "rank", "sequence")
        return {name: getattr(error, name) for name in names}

    def stats(self) -> dict[str, Any]:
        """What this rank did since it was attached.

        ``codec`` is the one in use; all other figures are of all codecs since. ``ratio`` is
        ``raw_bytes`` (what the same exchange would send uncompressed) over ``bytes_out``;
        ``rel_l2`` the L2 error of the codec relative to the values, on the buckets that were
        measured (None: none was). Times in milliseconds, summed over all buckets: ``encode_ms``,
        ``decode_ms`` (with the sum), ``wire_ms`` (blocked on the network), all three beside the
        backward; ``wait_ms`` is what the backward had to wait for at its end. ``fallbacks`` counts
        buckets that went uncompressed (sparse gradients, or detached), ``stored_blocks`` the
        blocks that the codec could not make smaller.
        """
        raw = self._reducer.stats()
        out = raw["encoded_bytes_out"]
        squares = raw["value_squares"]
        return {
            "codec": self.codec,
            "steps": raw["steps"],
            "step": self._reducer.step,
            "sequence": raw["sequence"],
            "buckets": raw["buckets"],
            "fallbacks": raw["fallbacks"],
            "errors": raw["errors"],
            "values": raw["values"],
            "raw_bytes": raw["raw_bytes_out"],
            "bytes_out": out,
            "bytes_in": raw["encoded_bytes_in"],
            "ratio": raw["raw_bytes_out"] / out if out else None,
            "encode_ms": 1e3 * raw["encode_seconds"],
            "decode_ms": 1e3 * raw["decode_seconds"],
            "wire_ms": 1e3 * raw["wait_seconds"],
            "wait_ms": 1e3 * raw["exposed_seconds"],
            "rel_l2": math.sqrt(raw["error_squares"] / squares) if squares else None,
            "nonfinite": raw["nonfinite"],
            "outliers": raw["outliers"],
            "stored_blocks": raw["stored_blocks"],
            "coded_blocks": raw["coded_blocks"],
            "fixed_blocks": raw["fixed_blocks"],
        }

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs so that it goes on bit for bit.

        With a lossy codec its buckets must be those of the saved run as well, since they decide
        which rank owns which values. DDP fills the buckets of a new model anew after its first
        step, except with ``find_unused_parameters=True``; else that one step differs by the error
        of the codec.
        """
        return {
            "version": 1,
            "codec": self.codec,
            "schedule": self._schedule.state_dict() if self._schedule is not None else None,
            "step": self._reducer.step,
            "sequence": self._reducer.stats()["sequence"],
        }

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> None:
        """Takes a state_dict() over. All ranks must load the same.

        ``sequence`` belongs to the connections of a run and is not restored. With
        ``strict=False`` the codec or schedule may differ from the one that saved the state; a
        schedule then goes on from what it has seen in this run.
        """
        missing = [name for name in ("version", "codec", "schedule", "step") if name not in state]
        if missing:
            raise InvalidArgument(f"the state has no {', '.join(missing)}", field=missing[0])
        if state["version"] != 1:
            raise InvalidArgument(
                f"the state has version {state['version']}, this release reads version 1",
                field="version",
                mine="1",
                theirs=str(state["version"]),
            )
        if strict:
            self._load_schedule(state)
        self._reducer.step = int(state["step"])

    def _load_schedule(self, state: dict[str, Any]) -> None:
        saved = state["schedule"]
        if self._schedule is not None and saved is not None:
            self._schedule.load_state_dict(saved)
            self._reducer.codec = self._schedule.codec
            return
        theirs = f"codec {state['codec']}" if saved is None else f"schedule {saved['kind']}"
        if self._schedule is not None:
            mine = f"schedule {type(self._schedule).__name__}"
        else:
            mine = f"codec {self.codec}"
        if mine != theirs:
            raise InvalidArgument(
                f"the state is of {theirs}, this run uses {mine}; "
                "load_state_dict(state, strict=False) takes the step alone",
                field="codec",
                mine=mine,
                theirs=theirs,
            )


class Handle(_Compression):
    """A model whose gradients are compressed. Made by :func:`attach`; use it in ``with`` or not."""

    def __init__(self) -> None:
        self._attached = False

    @property
    def attached(self) -> bool:
        """False after detach(), until attach() is called again."""
        return self._attached

    def detach(self) -> None:
        """Goes back to an uncompressed all-reduce. On all ranks between the same two steps.

        torch cannot unregister a hook: it stays and averages the buckets as DDP would.
        """
        self._reducer.detach()
        self._attached = False

    def __enter__(self) -> "Handle":
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def __repr__(self) -> str:
        return f"<gradwire.Handle codec={self.codec} attached={self._attached}>"


class HookState(_Compression):
    """State for ``model.register_comm_hook(gradwire.HookState(codec=...), gradwire.hook)``.

    Ranks are compared at the first bucket. ``parameters`` (``model.parameters()``) numbers the
    parameters, which chooses the noise of codecs that round stochastically; without it they are
    numbered as they appear. The state can be pickled; a copy makes connections of its own,
    between all ranks, and numbers the parameters as they appear.
    """

    def __init__(
        self,
        codec: str | CodecSchedule = "near_lossless",
        process_group: dist.ProcessGroup | None = None,
        deadline: float = 300.0,
        measure_every: int = 32,
        parameters: Iterable[torch.Tensor] | None = None,
    ) -> None:
        _groups.check_available()
        group = _groups.resolve(process_group)
        self._settings = (codec, deadline, _checked_measure_every(measure_every))
        self._build(group, list(parameters) if parameters is not None else [], step=0)

    def _build(self, group: dist.ProcessGroup, parameters: list[torch.Tensor], step: int) -> None:
        codec, deadline, measure_every = self._settings
        schedule, codec = _resolve_codec(codec, step)
        self._start(group, _groups.Connector(group, deadline))
        self._reducer.number_parameters(parameters)
        self._configure(codec, schedule, deadline, measure_every, compare=False)
        self._reducer.step = step

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self._settings, "step": self._reducer.step}

    def __setstate__(self, state: dict[str, Any]) -> None:
        _groups.check_available()
        self._settings = state["settings"]
        self._build(_groups.resolve(None), [], state["step"])


def hook(state: HookState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Communication hook in Python's form, with a :class:`HookState`; see there.

    :func:`attach` does the same without Python in the backward.
    """
    state._connector.reserve()  # here all ranks keep one order, which their threads do not
    return state._reducer.submit(bucket).then(_value)


def _value(future: torch.futures.Future[torch.Tensor]) -> torch.Tensor:
    value = future.value()
    return value[0] if isinstance(value, list) else value  # c10d's own all-reduce gives a list


def attach(
    model: DistributedDataParallel,
    codec: str | CodecSchedule = "near_lossless",
    deadline: float = 300.0,
    measure_every: int = 32,
) -> Handle:
    """Compresses the gradients of a DistributedDataParallel model. Collective.

    Args:
        model: the DDP model, its parameters in CPU memory.
        codec: ``"name"`` or ``"name:key=value,..."``, or a :mod:`gradwire.schedule` that gives it
            for each step; the same on all ranks.
        deadline: seconds that a rank waits for another one at most; longer than the longest
            pause of a single rank (one that writes checkpoints, for instance).
        measure_every: one of n buckets measures the error of the codec; 0: none.

    A second call on the same model changes the settings, starts the statistics again and returns
    the same handle. The first call makes a group of connections beside the model's own.

    Raises:
        TypeError: ``model`` is not a DistributedDataParallel.
        PeerMismatch: the ranks name different codecs.
        UnsupportedDType: the codec cannot encode a parameter, which is named.
        InvalidArgument, UnknownCodec, UnknownParameter, OutOfRange: all are ValueErrors.
        PeerLost, DeadlineExceeded: a rank did not take part.
    """
    if not isinstance(model, DistributedDataParallel):
        raise TypeError(
            "gradwire.attach() needs a torch.nn.parallel.DistributedDataParallel, "
            f"got {_describe(model)}"
        )
    _groups.check_available()
    handle = _handles.get(model)
    is_new = handle is None
    if is_new:
        connector = _groups.Connector(model.process_group, deadline)
        connector.reserve()  # before anything can fail on one rank alone
    try:
        schedule, codec = _resolve_codec(codec, step=0 if is_new else handle._reducer.step)
        measure_every = _checked_measure_every(measure_every)
        _torch.check_deadline(deadline)
        for possible in schedule.codecs if schedule is not None else (codec,):
            _check_model(model, possible)
        if is_new:
            _check_has_no_hook(model)
    except (GradwireError, TypeError) as error:
        if is_new:
            connector.announce(error)
        raise

    if is_new:
        handle = Handle()
        handle._start(model.process_group, connector)
        handle._reducer.number_parameters(list(model.parameters()))
    handle._connector.deadline = deadline
    handle._attached = False
    handle._configure(codec, schedule, deadline, measure_every, compare=True)
    if is_new:
        try:
            handle._reducer.register_with(model.reducer)
        except RuntimeError as error:
            raise InvalidArgument(f"DDP does not take the hook: {error}", field="model") from error
        model.logger._set_comm_hook_name("gradwire")
        _handles[model] = handle
    handle._attached = True
    return handle


def _resolve_codec(codec: str | CodecSchedule, step: int) -> tuple[CodecSchedule | None, str]:
    """The schedule, if it is one, and the codec of this step."""
    if isinstance(codec, CodecSchedule):
        return codec, _torch.canonical(codec.update(step))
    return None, _torch.canonical(codec)


def _describe(value: object) -> str:
    kind = type(value).__name__
    if isinstance(value, torch.nn.Module):
        return f"{kind}; wrap it first: DistributedDataParallel(model)"
    return kind


def _checked_measure_every(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidArgument(
            f"measure_every is {value!r}, must be an integer of 0 or more", field="measure_every"
        )
    return value


def _check_has_no_hook(model: DistributedDataParallel) -> None:
    if model._comm_hooks:
        name = getattr(model._comm_hooks[0][0], "__qualname__", "?")
        raise InvalidArgument(
            f"the model has a communication hook already ({name}), and DDP takes only one",
            field="model",
        )


def _check_model(model: DistributedDataParallel, codec: str) -> None:
    """Raises for what would fail in the first backward."""
    if getattr(model, "_use_python_reducer", False):
        raise InvalidArgument(
            "torch._dynamo.config.optimize_ddp is 'python_reducer', which calls no C++ hooks; "
            "set it to 'ddp_optimizer'",
            field="optimize_ddp",
        )
    for name, parameter in model.module.named_parameters():
        if not parameter.requires_grad:
            continue
        if parameter.device.type != "cpu":
            raise InvalidArgument(
                f"parameter {name} is on {parameter.device}; Gradwire compresses gradients in "
                "CPU memory only",
                field="device",
                mine=str(parameter.device),
            )
        try:
            _torch.check_dtype(codec, parameter)
        except UnsupportedDType as error:
            dtype = str(parameter.dtype).removeprefix("torch.")
            raise UnsupportedDType(
                f"parameter {name} is {dtype}: {error.message}", field="dtype", mine=dtype
            ) from None
