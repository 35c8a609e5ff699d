"""The three models: a convolution network, a byte-level GPT and an autoencoder."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


def make_cnn(hidden: int) -> nn.Module:
    """28 x 28 pixels to ten classes; 210 thousand parameters with 128 hidden units."""
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 10),
    )


def make_autoencoder() -> nn.Module:
    """8 x 8 pixels through eight numbers and back."""
    widths = [64, 128, 64, 8, 64, 128, 64]
    layers: list[nn.Module] = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.GELU()]
    return nn.Sequential(*layers[:-1])


class Layer(nn.Module):
    """Causal self-attention and a feed-forward network, each behind a LayerNorm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.projections = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.before_network = nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        projected = self.projections(self.before_attention(x))
        shaped = projected.view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = shaped.permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.network(self.before_network(x))


class Gpt(nn.Module):
    """Predicts each byte from those before it: uint8 [n, length] to logits [n, length, 256]."""

    def __init__(self, width: int, layers: int, heads: int, length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        self.position = nn.Parameter(0.02 * torch.randn(length, width))
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 256, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.embedding(text.long()) + self.position[: text.shape[1]]
        return self.head(self.norm(self.layers(x)))
