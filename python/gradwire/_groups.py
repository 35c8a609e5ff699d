"""Sub-groups of c10d ranks over Gloo, which carry the encoded gradients."""

from __future__ import annotations

import atexit
import contextlib
import time
import weakref
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from gradwire.errors import InvalidArgument

# Objects with a thread or a connection, which must end before the interpreter does.
_closing: weakref.WeakSet[Any] = weakref.WeakSet()

_FAILED = "failed"  # key of a sub-group's store: why a rank will not come

_exiting = False  # threads that wait for other ranks see it

# How many connectors of a group have a number.
_numbers: weakref.WeakKeyDictionary[dist.ProcessGroup, int] = weakref.WeakKeyDictionary()


class Connector:
    """Makes the sub-group for the ranks of a group, and a new one after an error.

    Calling it is collective: all ranks of the group do it. Not by ``dist.new_group()``, which
    names groups by how many this rank has made: a sub-group of some ranks would give every later
    group, the user's own included, different names on different ranks, and these would wait for
    each other until the deadline. Here a name is the parent's, the number of the connector in the
    parent, and the number of the attempt; and c10d's registry knows nothing of it.
    """

    def __init__(self, group: dist.ProcessGroup, deadline: float) -> None:
        self._group = weakref.ref(group)
        self._number: int | None = None
        self._attempts = 0
        self.deadline = deadline

    def reserve(self) -> None:
        """Takes the next number of the group. All ranks of the group do it in the same order, so
        not in the thread that connects."""
        if self._number is None:
            group = self._living_group()
            self._number = _numbers.get(group, 0)
            _numbers[group] = self._number + 1

    def __call__(self) -> dist.ProcessGroup:
        group = self._living_group()
        name, store = self._next_attempt(group)
        self._meet(store, group.rank(), group.size())
        subgroup = dist.ProcessGroup(store, group.rank(), group.size())
        gloo = dist.ProcessGroup.BackendType.GLOO
        timeout = timedelta(seconds=self.deadline)
        backend = dist.ProcessGroupGloo(store, group.rank(), group.size(), timeout)
        subgroup._set_default_backend(gloo)
        subgroup._register_backend(torch.device("cpu"), gloo, backend)
        subgroup._set_group_name(f"{group.group_name}/{name}")
        return subgroup

    def announce(self, error: Exception) -> None:
        """Instead of connecting: lets the ranks that wait for this one fail at once, with its
        error. Returns at once."""
        with contextlib.suppress(RuntimeError):  # the store is gone: nobody waits there
            group = self._living_group()
            _, store = self._next_attempt(group)
            store.set(_FAILED, f"rank {group.rank()} failed: {error}")

    def _next_attempt(self, group: dist.ProcessGroup) -> tuple[str, dist.Store]:
        self.reserve()
        name = f"gradwire/{self._number}/{self._attempts}"
        self._attempts += 1
        # A connection of its own: a store is blocked for others while one thread waits in it.
        parent = dist.distributed_c10d._get_process_group_store(group).clone()
        return name, dist.PrefixStore(f"{name}/", parent)

    def _meet(self, store: dist.Store, rank: int, size: int) -> None:
        """Returns when all ranks are here. Gloo would wait too, but could not be interrupted, and
        would not say who is missing."""
        store.set(f"here/{rank}", "")
        keys = [f"here/{peer}" for peer in range(size)]
        end = time.monotonic() + self.deadline
        pause = 0.001
        while not store.check(keys):
            if _exiting:
                raise RuntimeError("the interpreter exits")
            if store.check([_FAILED]):
                raise RuntimeError(store.get(_FAILED).decode())
            if time.monotonic() > end:
                missing = [str(peer) for peer in range(size) if not store.check([keys[peer]])]
                raise RuntimeError(f"timed out: no sign of rank {', '.join(missing[:8])}")
            time.sleep(pause)
            pause = min(2 * pause, 0.1)

    def _living_group(self) -> dist.ProcessGroup:
        group = self._group()
        if group is None or not dist.is_initialized():
            raise RuntimeError("the group of these ranks was destroyed")
        return group


def check_available() -> None:
    """Raises InvalidArgument where c10d or its Gloo backend is missing or not set up."""
    if not dist.is_available() or not dist.is_initialized():
        raise InvalidArgument(
            "torch.distributed is not initialized; call init_process_group() first", field="group"
        )
    if not dist.is_gloo_available():
        raise InvalidArgument(
            "this build of torch has no Gloo, and Gradwire sends over Gloo; "
            f"the default group uses {dist.get_backend()}",
            field="backend",
            mine=dist.get_backend(),
        )


def resolve(group: dist.ProcessGroup | None) -> dist.ProcessGroup:
    """The group that is meant; None means all ranks."""
    if group is None:
        return dist.distributed_c10d._get_default_group()
    if not isinstance(group, dist.ProcessGroup):
        raise InvalidArgument(
            f"group is {group!r}: not a process group, or one that this rank is not in",
            field="group",
        )
    return group


def close_at_exit(resource: Any) -> None:
    """Calls ``resource.close()`` when the interpreter exits, if it still lives."""
    _closing.add(resource)


@atexit.register
def _close_all() -> None:
    global _exiting
    _exiting = True
    for resource in list(_closing):
        resource.close()
