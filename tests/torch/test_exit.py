"""Processes that end in the middle of things: no hang, no crash, the exit status they asked for."""

from pathlib import Path

import pytest
from ranks import run_scripts

SETUP = f"""
import faulthandler, os, sys, time
faulthandler.enable()  # who aborted, if anybody did
sys.path.insert(0, {str(Path(__file__).parent)!r})
import torch, torch.distributed as dist, gradwire
from support import Net, SlowBackward, batch, ddp, train
torch.set_num_threads(1)
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method="file://" + os.environ["STORE"], rank=rank,
                        world_size=int(os.environ["WORLD_SIZE"]))
"""


def check(results, statuses: list[int], text: str) -> None:
    for (status, output), expected in zip(results, statuses, strict=True):
        assert status == expected, output
        assert text in output, output
        for sign in ("Fatal Python error", "terminate called", "Segmentation"):
            assert sign not in output, output


def test_exit_with_everything_alive() -> None:
    """No detach, no destroy_process_group; attached models and connections at module level."""
    script = SETUP + (
        "models = [ddp(seed=s) for s in range(2)]\n"
        "handles = [gradwire.attach(model) for model in models]\n"
        "train(models[0], rank)\n"
        "gradwire.all_reduce(torch.ones(1000))\n"
        "state = gradwire.HookState()\n"
        "print('finished')\n"
    )
    check(run_scripts(script, timeout=120), [0, 0], "finished")


@pytest.mark.parametrize("attached", [True, False], ids=["attached", "connecting"])
def test_exit_while_a_bucket_is_in_flight(attached: bool) -> None:
    """Rank 0 has a bucket on its way that rank 1 does not answer, and exits: at once.

    Or the bucket waits for the connections, which the first bucket of a HookState makes.
    """
    hook = (
        "handle = gradwire.attach(model, deadline=45.0)\n"
        if attached
        else "handle = gradwire.HookState(deadline=45.0)\n"
        "model.register_comm_hook(handle, gradwire.hook)\n"
    )
    script = SETUP + (
        "class Interrupted(Net):\n"
        "    def forward(self, x):\n"
        "        x = SlowBackward.apply(torch.relu(self.first(x)), stop)\n"
        "        return self.third(torch.relu(self.second(x)))\n"
        "def stop():\n"
        "    if stopping: raise KeyboardInterrupt\n"
        "stopping = False\n"
        "model = ddp(Interrupted())\n"
        "train(model, rank, steps=1)\n"
        + hook
        + "stopping = True\n"
        "loss = model(batch(rank, 0)).mean()\n"
        "pids = [None] * 2\n"
        "dist.all_gather_object(pids, os.getpid())\n"
        "print('started', flush=True)\n"
        "if rank == 1:\n"  # lives on and says nothing until rank 0 is gone
        "    end = time.monotonic() + 25\n"
        "    while os.path.exists(f'/proc/{pids[0]}') and time.monotonic() < end:\n"
        "        time.sleep(0.1)\n"
        "    sys.exit(5 if os.path.exists(f'/proc/{pids[0]}') else 4)\n"
        "try:\n"
        "    loss.backward()\n"
        "except KeyboardInterrupt:\n"
        "    assert handle.stats()['buckets'] == 1\n"
        "    sys.exit(3)\n"
    )
    # Well below the deadline of 45 s; the end of an interpreter with torch takes seconds.
    check(run_scripts(script, timeout=120), [3, 4], "started")
