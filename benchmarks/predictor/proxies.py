"""Ranks of NAS-Bench-201's cells by this project's zero-cost proxies and by published values.

``python -m benchmarks proxies``. Published values (``zero_cost.json.gz`` of NASLib) come from one batch and one draw of
weights per cell. Kendall's tau between two draws shows the effect of the draw. Batches have 32 images, as the published
values of jacov imply. Cells without a finite published value of each proxy are excluded. Images are CIFAR-10's, or
random numbers. Scores are stored in ``--work``.
"""

from __future__ import annotations

import argparse
import functools
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.parts import published as _published
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import results
from nas_core.errors import NasExtError
from nas_core.latency.machine import describe_machine
from nas_core.predictor import kendall_tau
from nas_core.proxies import PROXIES
from nas_core.proxies.networks import NasBench201Proxies

RESULT = Path(__file__).parents[1] / "results" / "proxies.json"
BATCH = 32
AIM = 0.95
"""Aim: Kendall's tau with the published values."""
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
"""Mean and standard deviation of the channels of CIFAR-10."""


@dataclass(frozen=True)
class Task:
    """Cell, and seed of images and weights."""

    cell: tuple[int, ...]
    draw: int
    images: str
    device: str = "cpu"

    @property
    def key(self) -> dict[str, Any]:
        return {"cell": list(self.cell), "draw": self.draw, "images": self.images}


def images_of() -> str:
    """Return ``cifar10`` if its images are available, otherwise ``random``."""
    if _published.absent(_published.CIFAR10):
        return "random"
    try:
        import timm_ext.data  # noqa: F401
    except (ImportError, NasExtError):
        return "random"
    return "cifar10"


@functools.cache
def batch(images: str, draw: int) -> tuple[Tensor, Tensor]:
    """Return normalised images ``(32, 3, 32, 32)`` and their classes."""
    rng = np.random.default_rng(draw)
    if images == "random":
        drawn = rng.standard_normal((BATCH, 3, 32, 32), np.float32), rng.integers(10, size=BATCH)
        return torch.from_numpy(drawn[0]), torch.from_numpy(drawn[1])
    from timm_ext.data import JpegFile

    source = JpegFile(_published.CIFAR10)
    samples = [source.image(int(index)) for index in rng.permutation(len(source))[:BATCH]]
    pixels = np.stack([np.asarray(image, np.float32) for image, _ in samples]) / 255
    normal = torch.from_numpy((pixels - np.float32(MEAN)) / np.float32(DEVIATION)).permute(0, 3, 1, 2).contiguous()
    return normal, torch.tensor([label for _, label in samples])


def run(task: Task) -> dict[str, Any]:
    """Score one cell by all proxies on one thread; measure CPU time."""
    torch.set_num_threads(1)
    proxies = NasBench201Proxies(None, *batch(task.images, task.draw), seed=_seed(task), device=task.device)
    start = time.process_time()
    scores = proxies(task.cell)
    return {**task.key, "scores": scores, "cpu_s": round(time.process_time() - start, 4)}


def _seed(task: Task) -> int:
    return int(np.random.default_rng([task.draw, *task.cell]).integers(2**31))


def summary(records: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    published = {tuple(row["architecture"]): row for row in rows}
    draws: dict[int, dict[tuple[int, ...], dict[str, Any]]] = {}
    for record in records:
        if tuple(record["cell"]) in published:
            draws.setdefault(record["draw"], {})[tuple(record["cell"])] = record
    cells = [cell for cell in published if all(cell in found for found in draws.values())]
    return [_row(name, [[found[cell] for cell in cells] for found in draws.values()], [published[c] for c in cells])
            for name in PROXIES.names() if name in rows[0]]  # fmt: skip


def _row(name: str, draws: list[list[dict[str, Any]]], rows: list[dict[str, Any]]) -> dict[str, Any]:
    ours = np.array([[record["scores"][name] for record in found] for found in draws])
    theirs, accuracies = (np.array([row[key] for row in rows], np.float64) for key in (name, "val_accuracy"))
    pairs = [kendall_tau(a, b) for index, a in enumerate(ours) for b in ours[index + 1 :]]
    return {
        "proxy": name,
        "cells": len(rows),
        "draws": len(draws),
        "tau": _rounded(np.mean([kendall_tau(one, theirs) for one in ours])),
        "tau_of_mean": _rounded(kendall_tau(ours.mean(0), theirs)),
        "tau_of_two_draws": _rounded(np.mean(pairs)) if pairs else None,
        "tau_with_accuracy": _rounded(np.mean([kendall_tau(one, accuracies) for one in ours])),
        "published_tau_with_accuracy": _rounded(kendall_tau(theirs, accuracies)),
    }


def _rounded(value: Any) -> float:
    return round(float(value), 4)


def published_cells(count: int) -> list[dict[str, Any]]:
    """Return a fixed random sample of the cells with a finite value of each proxy."""
    needed = [*PROXIES.names(), "val_accuracy"]
    published = _published.zero_cost("nasbench201/cifar10")
    rows = [row for row in published if all(math.isfinite(row.get(k, math.nan)) for k in needed)]
    return [rows[index] for index in np.random.default_rng(201).permutation(len(rows))[:count]]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=100, help="published cells, at least 2")
    parser.add_argument("--draws", nargs="+", type=int, default=[0, 1, 2], help="seeds of images and weights")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time; 0: in this process")
    parser.add_argument("--device", default="cpu", help="where proxies are computed")
    parser.add_argument("--work", type=Path, default=Path("runs/proxies.jsonl"), help="scores as they come")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    if options.cells < 2:
        parser.error(f"--cells is {options.cells}; expected at least 2")
    if reason := _published.absent(_published.ZERO_COST):
        print(f"skipped: {reason}")
        return 0
    rows, images = published_cells(options.cells), images_of()
    tasks = [Task(tuple(row["architecture"]), draw, images, options.device) for row in rows for draw in options.draws]
    records = results(tasks, run, options.work, options.jobs)
    selected = [record for record in records if record["images"] == images and record["draw"] in options.draws]
    machine = describe_machine(options.device, 1)
    used = _rounded(np.median([record["cpu_s"] for record in selected]))
    content = {
        "images": images,
        "batch": BATCH,
        "aim": AIM,
        "cpu_s_per_network": used,
        "rows": summary(selected, rows),
        "machine": machine,
    }
    write_result(options.out, content, command(__file__, argv))
    for row in content["rows"]:
        print(row)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
