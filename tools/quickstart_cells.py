"""Train the cells of ``nas-ext quickstart predictor``: random cells of NAS-Bench-201's space.

``python -m tools.quickstart_cells`` resumes. A network has each cell twice (with 8 and with 16 channels). It is trained
on scikit-learn's handwritten digits with noise. Its accuracy is the mean over seeds on held-out digits.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.graph import nasbench201_string
from nas_core.graph.nasbench201 import CHOICES
from nas_core.optional import require

RESULT = Path(__file__).resolve().parents[1] / "nas_core" / "quickstart" / "templates" / "predictor" / "cells.jsonl"
CELLS, SEEDS, UPDATES, BATCH, TRAIN_SIZE, NOISE = 140, 2, 80, 64, 1000, 0.3


class Cell(nn.Module):
    """Cell of four nodes; each sums an operation of every earlier node."""

    def __init__(self, operations: np.ndarray, channels: int) -> None:
        super().__init__()
        self.edges = nn.ModuleList(_operation(CHOICES[int(code)], channels) for code in operations)

    def forward(self, images: Tensor) -> Tensor:
        nodes, edges = [images], iter(self.edges)
        for _ in range(3):
            nodes.append(sum((edge(node) for node, edge in zip(nodes, edges, strict=False)), torch.zeros_like(images)))
        return nodes[-1]


def _operation(name: str, channels: int) -> nn.Module:
    if name.startswith("nor_conv"):
        size = int(name[-1])
        convolution = nn.Conv2d(channels, channels, size, padding=size // 2, bias=False)
        return nn.Sequential(nn.ReLU(), convolution, nn.BatchNorm2d(channels))
    pool = nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)
    return {"none": Zero(), "skip_connect": nn.Identity(), "avg_pool_3x3": pool}[name]


class Zero(nn.Module):
    """Operation with output 0."""

    def forward(self, images: Tensor) -> Tensor:
        return torch.zeros_like(images)


def network(operations: np.ndarray) -> nn.Sequential:
    """Return a network: stem, cell, halving, cell, classifier."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), Cell(operations, 8),
        nn.ReLU(), nn.Conv2d(8, 16, 2, stride=2, bias=False), nn.BatchNorm2d(16), Cell(operations, 16),
        nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
    )  # fmt: skip


def digits() -> tuple[Tensor, Tensor]:
    """Return all images ``(N, 1, 8, 8)`` with noise and their labels, in a fixed random order."""
    images, labels = require("sklearn.datasets", "the digits", "naslib").load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(labels))
    scaled = images[order].reshape(-1, 1, 8, 8) / 16 - 0.3
    noisy = scaled + NOISE * rng.standard_normal(scaled.shape)
    return torch.tensor(noisy, dtype=torch.float32), torch.tensor(labels[order])


def accuracy(operations: np.ndarray, images: Tensor, labels: Tensor, seed: int) -> tuple[float, int]:
    """Return the accuracy on held-out digits of a newly trained network, and its parameters."""
    torch.manual_seed(seed)
    net = network(operations)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, UPDATES)
    for _ in range(UPDATES):
        rows = torch.randint(TRAIN_SIZE, (BATCH,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images[rows]), labels[rows]).backward()
        optimizer.step()
        schedule.step()
    net.eval()
    with torch.no_grad():
        correct = (net(images[TRAIN_SIZE:]).argmax(1) == labels[TRAIN_SIZE:]).float().mean()
    return float(correct), sum(parameter.numel() for parameter in net.parameters())


def main() -> None:
    """Train the cells that are missing in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULT, help="JSON Lines file; its cells are not trained again")
    parser.add_argument("--cells", type=int, default=CELLS, help="number of random cells")
    args = parser.parse_args()
    torch.set_num_threads(1)
    images, labels = digits()
    finished = {record["architecture"] for record in read_jsonl(args.out)} if args.out.exists() else set()
    start = time.monotonic()
    codes = np.random.default_rng(1).permutation(5**6)[: args.cells]
    for number, operations in enumerate(codes[:, None] // 5 ** np.arange(6) % 5):
        cell = nasbench201_string(operations)
        if cell in finished:
            continue
        accuracies = [accuracy(operations, images, labels, seed) for seed in range(SEEDS)]
        target = round(float(np.mean([value for value, _ in accuracies])), 4)
        append_jsonl(args.out, {"architecture": cell, "target": target, "parameters": accuracies[0][1]})
        if number % 20 == 19:
            print(f"{number + 1} cells, {time.monotonic() - start:.0f} s, the last {target:.3f}", flush=True)


if __name__ == "__main__":
    main()
