#!/usr/bin/env python3
"""Compressed gradients in DistributedDataParallel: one line more.

    torchrun --nproc-per-node 2 examples/ddp_minimal.py
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import gradwire

dist.init_process_group("gloo")
torch.manual_seed(0)  # the same model on all ranks
model = DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 1))
)
handle = gradwire.attach(model, codec="near_lossless")  # this line

optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(dist.get_rank())  # other data on each rank
for _ in range(20):
    inputs = torch.randn(64, 256)
    loss = (model(inputs) - inputs.mean(dim=1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

if dist.get_rank() == 0:
    stats = handle.stats()
    print(f"ratio {stats['ratio']:.2f}, error of the codec {stats['rel_l2']:.1e}")
dist.destroy_process_group()
