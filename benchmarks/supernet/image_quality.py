"""Accuracy on CIFAR-10 of networks with softmax, linear and mixed attention, at equal training budget.

``python -m benchmarks image_quality --work DIR [--jobs 2]``. Networks have six layers of width 128 and 64 tokens
(patches of 4 pixels). A supernet over the 64 combinations of attention is trained by the sandwich rule. The mixed
network is the best one with at least two linear layers, by supernet weights. All three networks are trained from
scratch with several seeds. NAS_EXT_DATA names the folder of the images.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts.record import command, write_result
from benchmarks.parts.runs import TEST, TRAIN, Runs
from nas_core.files.journal import read_jsonl
from nas_core.files.reading import read_json
from nas_core.latency.machine import describe_machine
from nas_core.models import flops_g
from nas_core.space import Architecture, SearchSpace, get_space, save_space
from nas_core.space.choice import Choice

RESULT = Path(__file__).parents[1] / "results" / "image_quality.json"
MIN_LINEAR = 2


@dataclass(frozen=True)
class Job(Runs):
    images: int
    epochs: int
    """Number of epochs of each network."""
    supernet_epochs: int

    def train(self, name: str, *options: object) -> Path:
        folder = self.work / name
        self.run(
            name, "python", "-m", "timm_ext.train", "--data", TRAIN, "--val-count", 5000,
            "--train-count", self.images, "--output", folder, "--model", "mformer_cifar10_small_supernet",
            "--search-space", self.work / "attention.yml", *options,
        )  # fmt: skip
        return folder


def attention_space() -> SearchSpace:
    """Return the search space of the largest small network with two kinds of attention per layer."""
    largest = get_space("mformer_cifar10_small").largest()
    choices = []
    for choice in get_space("mformer_cifar10_small").choices:
        value = largest[choice.name]
        if choice.name == "attention":
            choices.append(choice)
        elif isinstance(value, tuple):
            choices.append(Choice(choice.name, tuple((option,) for option in value), choice.per))
        else:
            choices.append(Choice(choice.name, ((value,),)))
    return SearchSpace("cifar10-attention", choices, get_space("mformer_cifar10_small").fixed)


def with_attention(kinds: list[str]) -> Architecture:
    return Architecture({**attention_space().largest(), "attention": kinds})


def search_placement(job: Job, supernet: Path) -> tuple[Architecture, list[dict[str, Any]]]:
    """Return the best mixed network, and the validation loss of all networks."""
    folder = job.work / "search"
    job.run(
        "search", "nas-ext", "search", "--checkpoint", supernet / "last.pt",
        "--strategy", "random", "--out", folder, "--finalists", 1,
    )  # fmt: skip
    placements = []
    for line in read_jsonl(folder / "journal.jsonl"):
        kinds = line["genes"]["attention"]
        placements.append({"linear": [i + 1 for i, kind in enumerate(kinds) if kind == "linear"], **line["metrics"]})
    mixed = min((row for row in placements if MIN_LINEAR <= len(row["linear"]) < 6), key=lambda row: row["loss"])
    return with_attention(["linear" if layer in mixed["linear"] else "softmax" for layer in range(1, 7)]), placements


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("runs/image_quality"))
    parser.add_argument("--images", type=int, default=15_000, help="number of training images, at most 45,000")
    parser.add_argument("--epochs", type=int, default=20, help="epochs of each standalone network")
    parser.add_argument("--supernet-epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel trainings")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of each training")
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    job = Job(args.work, args.threads, args.images, args.epochs, args.supernet_epochs)
    job.work.mkdir(parents=True, exist_ok=True)
    save_space(attention_space(), job.work / "attention.yml")
    supernet = job.train("supernet", "--epochs", job.supernet_epochs, "--sampling", "sandwich")
    mixed, placements = search_placement(job, supernet)
    networks = {"softmax": with_attention(["softmax"] * 6), "linear": with_attention(["linear"] * 6), "mixed": mixed}
    runs = []
    for name, architecture in networks.items():
        architecture.save(job.work / f"{name}.json")
        runs += [(name, seed) for seed in range(1, args.seeds + 1)]

    def train(run: tuple[str, int]) -> float:
        name, seed = run
        options = ("--subnet", job.work / f"{name}.json", "--val-data", TEST, "--seed", seed, "--epochs", job.epochs)
        return float(read_json(job.train(f"{name}-{seed}", *options) / "metrics.json")[-1]["top1"])

    with ThreadPoolExecutor(args.jobs) as pool:
        tops = dict(zip(runs, pool.map(train, runs), strict=True))
    rows = []
    for name, architecture in networks.items():
        accuracies = [tops[name, seed] for seed in range(1, args.seeds + 1)]
        deviation = round(float(np.std(accuracies, ddof=1)), 2) if len(accuracies) > 1 else None
        kinds, cost = list(architecture["attention"]), round(flops_g(architecture), 4)  # type: ignore[arg-type]
        mean = round(float(np.mean(accuracies)), 2)
        rows.append({"network": name, "attention": kinds, "top1": mean, "deviation": deviation, "each": accuracies,
                     "flops_g": cost})  # fmt: skip
        print(rows[-1], flush=True)
    settings = {"images": job.images, "epochs": job.epochs, "supernet_epochs": job.supernet_epochs}
    content = {**settings, "rows": rows, "placements": placements, "machine": describe_machine("cpu", args.threads)}
    write_result(args.out, content, command(__file__, argv))


if __name__ == "__main__":
    main()
