"""Cost of training and evaluating image networks on a device: mFormer's space for CIFAR-10, images of 224 pixels.

``python -m benchmarks image_update [--device cuda]``; a few minutes on a GPU, with results in ``results/cuda``. Rows
have median milliseconds, images per second and, on CUDA, peak memory in MiB, for each precision:

- ``update``: forward, backward and AdamW as in ``timm_ext.train``, for one random subnet (``spos``), three
(``sandwich``), or the largest network with one kind of attention.
- ``forward``: evaluation of the largest and smallest network, and of the largest with one kind of attention.

Images are random numbers.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy
from torch import Tensor

import timm_ext  # noqa: F401  registers the models
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import measure_rows
from benchmarks.parts.timing import time_ms
from nas_core.device import usable_device
from nas_core.errors import ConfigError
from nas_core.latency.machine import describe_machine
from nas_core.precision import PRECISIONS, check_precision, computing_in
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.sampling import sandwich
from timm_ext.model import VisionModel
from timm_ext.step import Step
from timm_ext.workers import Workers

RESULTS = Path(__file__).parents[1] / "results"
CASES = (
    ("update", "spos"),
    ("update", "sandwich"),
    ("update", "largest, softmax"),
    ("update", "largest, linear"),
    ("forward", "largest"),
    ("forward", "smallest"),
    ("forward", "largest, softmax"),
    ("forward", "largest, linear"),
)
WARM_UP = 3


def network(space: SearchSpace, name: str) -> Architecture:
    if name == "smallest":
        return space.smallest()
    largest = space.largest()
    _, _, kind = name.partition(", ")
    return space.validate(
        Architecture({**largest, "attention": (kind,) * largest.number("layers")} if kind else largest)
    )


def architectures_of(model: VisionModel, name: str, update: int) -> list[Architecture]:
    if name not in ("spos", "sandwich"):
        return [network(model.space, name)]
    architecture = model.draw(update)
    return list(sandwich(model.space, architecture).values()) if name == "sandwich" else [architecture]


def updates_of(model: VisionModel, name: str, images: Tensor, labels: Tensor, precision: str) -> Callable[[int], None]:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    step, criterion = (
        Step(model.train(), optimizer, precision, 0.0, Workers(images.device)),
        LabelSmoothingCrossEntropy(),
    )

    def update(number: int) -> None:
        architectures = architectures_of(model, name, number)
        optimizer.zero_grad()
        for architecture in architectures:
            step.backward(
                lambda: criterion(model(images), labels) / len(architectures), model.use_architecture(architecture)
            )
        step.update()

    return update


def forwards_of(model: VisionModel, name: str, images: Tensor, precision: str) -> Callable[[int], None]:
    with torch.no_grad():
        subnet = model.eval().net.select(network(model.space, name))

    @torch.no_grad()
    def forward(_: int) -> None:
        with computing_in(precision, images.device):
            model.net(subnet, images)

    return forward


def measure(mode: str, name: str, precision: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of a row, or a note if the precision is not supported or memory is insufficient."""
    device = usable_device(options.device)
    try:
        check_precision(precision, device)
    except ConfigError as error:
        return {"note": str(error)}
    torch.manual_seed(1)
    model: VisionModel = timm.create_model(options.model, num_classes=10).to(device)
    side = model.space.largest().number("image_size")
    images = torch.randn(options.batch_size, 3, side, side, device=device)
    labels = torch.randint(10, (options.batch_size,), device=device)
    cuda = device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats(device)
    if mode == "update":
        run = updates_of(model, name, images, labels, precision)
    else:
        run = forwards_of(model, name, images, precision)
    try:
        times_ms = [time_ms(partial(run, number), device) for number in range(WARM_UP + options.repeats)]
    except torch.cuda.OutOfMemoryError:
        return {"note": f"out of memory with {options.batch_size} images"}
    median_ms = float(np.median(times_ms[WARM_UP:]))
    row = {"ms": round(median_ms, 2), "images_per_s": round(1000 * options.batch_size / median_ms, 1)}
    return {**row, "memory_mib": round(torch.cuda.max_memory_allocated(device) / 2**20)} if cuda else row


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--model", default="mformer_cifar10_supernet", help="name of a supernet of timm_ext")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--small", action="store_true", help="small search space and few images, for tests")
    parser.add_argument("--out", type=Path, help="default: in results/cuda on CUDA, none on the CPU")
    options = parser.parse_args(argv)
    if options.small:
        options.model, options.batch_size, options.repeats = "mformer_cifar10_small_supernet", 2, 1
    cuda = torch.device(options.device).type == "cuda"
    out = options.out or (RESULTS / "cuda" / "image_update.json" if cuda else None)
    machine = {**describe_machine(options.device, torch.get_num_threads()), "timm": timm.__version__}
    settings = {name: getattr(options, name) for name in ("model", "batch_size", "repeats")}
    cases = [(*case, precision) for case in CASES for precision in options.precisions]
    keys = [dict(zip(("what", "network", "precision"), case, strict=True)) for case in cases]
    rows = measure_rows(out, keys, {**settings, **machine}, lambda index: measure(*cases[index], options))
    if out is not None:
        write_result(out, {**settings, "rows": rows, "machine": machine}, command(__file__, argv))


if __name__ == "__main__":
    main()
