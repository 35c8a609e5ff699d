"""Sub-groups of c10d ranks over Gloo, which carry the encoded gradients."""

from __future__ import annotations

import atexit
import contextlib
import weakref
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from gradwire.errors import InvalidArgument

# Objects with a thread or a connection, which must end before the interpreter does.
_closing: weakref.WeakSet[Any] = weakref.WeakSet()


class Connector:
    """Makes the sub-group for the ranks of a group, and a new one after an error.

    Calling it is collective: all ranks of the group do it, in the same order.
    """

    def __init__(self, group: dist.ProcessGroup | None, deadline: float) -> None:
        self._ranks = dist.get_process_group_ranks(group)
        self._subgroup: dist.ProcessGroup | None = None
        self.deadline = deadline

    def __call__(self) -> dist.ProcessGroup:
        self.close()
        self._subgroup = dist.new_group(
            self._ranks,
            timeout=timedelta(seconds=self.deadline),
            backend="gloo",
            use_local_synchronization=True,
            group_desc="gradwire",
        )
        return self._subgroup

    def close(self) -> None:
        """Gives the sub-group up; its connections end with its last user."""
        subgroup, self._subgroup = self._subgroup, None
        if subgroup is not None:
            # It is gone already after destroy_process_group() of everything.
            with contextlib.suppress(ValueError, RuntimeError, KeyError):
                dist.destroy_process_group(subgroup)


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


def close_at_exit(resource: Any) -> None:
    """Calls ``resource.close()`` when the interpreter exits, if it still lives."""
    _closing.add(resource)


@atexit.register
def _close_all() -> None:
    for resource in list(_closing):
        resource.close()
