"""Architectures evaluated in a second: in this process, by one worker, and by one worker for each device.

The supernet is an image supernet with random weights on random images, so that nothing has to be trained or installed.
All three take the same architectures, in turns, so that the ratios hold on a busy machine. Workers are started and have
opened the supernet before the clock runs. Run: ``python -m benchmarks device_workers [--device cuda:0,cuda:1]``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.parts.record import command, write_result
from nas_core.device import pinned_threads, usable_devices
from nas_core.jobs import Failure
from nas_core.latency.machine import describe_machine
from nas_core.models.image.net import VisionConfig, VisionNet
from nas_core.space import Architecture, get_space
from nas_core.workers import WorkerPool

SPACE = get_space("mformer_cifar10_small")
IMAGES, BATCH = 64, 64


def opened(device: str) -> Callable[[Mapping[str, Any]], dict[str, float]]:
    """In a worker, or here: the loss of an architecture given by its genes."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = VisionNet(SPACE, VisionConfig()).to(device).eval()
    side = SPACE.largest().number("image_size")
    images = torch.randn(IMAGES, 3, side, side).to(device).split(BATCH)
    labels = torch.randint(0, 10, (IMAGES,)).to(device).split(BATCH)

    @torch.inference_mode()
    def loss(genes: Mapping[str, Any]) -> dict[str, float]:
        subnet = net.select(Architecture(genes))
        losses = [F.cross_entropy(net(subnet, x), y) for x, y in zip(images, labels, strict=True)]
        return {"loss": float(torch.stack(losses).mean())}

    return loss


def measure(devices: list[str], architectures: int, rounds: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    genes = [SPACE.sample(rng).to_dict() for _ in range(architectures)]
    with pinned_threads(1):
        here = opened(devices[0])
        one, all_ = (
            WorkerPool(opened, [{"device": name} for name in names], names) for names in (devices[:1], devices)
        )
        ways: dict[str, Callable[[], list[Any]]] = {
            "in_this_process": lambda: [here(each) for each in genes],
            "one_worker": lambda: list(one.map(genes)),
            "a_worker_for_each": lambda: list(all_.map(genes)),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        with one, all_:
            found = {name: way() for name, way in ways.items()}
            for _ in range(rounds):
                for name, way in ways.items():
                    start = time.perf_counter()
                    way()
                    seconds[name].append(time.perf_counter() - start)
    if any(isinstance(result, Failure) for result in found["a_worker_for_each"]):
        raise SystemExit(f"a worker failed: {found['a_worker_for_each']}")
    base = np.array(seconds["in_this_process"])
    rows = [
        {
            "evaluated": name.replace("_", " "),
            "architectures_per_s": round(architectures / float(np.median(seconds[name])), 2),
            "times_this_process": round(float(np.median(base / np.array(seconds[name]))), 2),
            "equal_losses": found[name] == found["in_this_process"],
        }
        for name in ways
    ]
    ratios = np.array(seconds["one_worker"]) / np.array(seconds["a_worker_for_each"])
    return {"rows": rows, "ratio_to_one_worker": [round(float(value), 2) for value in np.sort(ratios)]}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu,cpu", help="one worker for each")
    parser.add_argument("--architectures", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="the JSON; default: it is printed alone")
    options = parser.parse_args(argv)
    devices = usable_devices(options.device)
    content = {
        "devices": devices,
        "rounds": options.rounds,
        **measure(devices, options.architectures, options.rounds),
        "machine": describe_machine(devices[0], 1),
    }
    if options.out is not None:
        write_result(options.out, content, command(__file__, argv))
    print(json.dumps(content, indent=2))


if __name__ == "__main__":
    main()
