"""A trained vision transformer as a supernet: inherited accuracy by updates, with and without teacher and sorting.

A timm ``VisionTransformer`` is trained on CIFAR-10 (``benchmarks.parts.trained.plain_vit``), taken over, and trained
as a supernet by the sandwich rule. One network, found under half of the trained one's latency, stands for all fast
ones: every supernet is asked for its accuracy on the test images with inherited weights.

Run: ``python -m benchmarks elastic_image --work DIR``. Each step writes below DIR and is skipped when it is done, so an
interrupted run goes on. The images are not part of this repository: NAS_EXT_DATA names their folder.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.record import command, write_result
from benchmarks.parts.trained.image_runs import TEST, TRAIN, ImageRuns, as_folder
from benchmarks.parts.trained.variants import ABLATIONS, FULL, Variant, slug
from nas_core.files.reading import read_json
from nas_core.latency.machine import describe_machine
from nas_core.models import params_m
from nas_core.space import Architecture, load_space

RESULT = Path(__file__).parents[1] / "results" / "elastic_image.json"
HALF = "50% of its latency"
VARIANTS = tuple(variant for variant in ABLATIONS if variant.taken_over)


@dataclass(frozen=True)
class Job(ImageRuns):
    epochs: int
    """Epochs of the trained network."""
    updates: int
    """Updates of supernets."""

    @property
    def trained(self) -> Path:
        """The plain network."""
        path = self.work / "trained.pt"
        self.run(
            "trained", sys.executable, "-m", "benchmarks.parts.trained.plain_vit", "--data", TRAIN, "--val-data", TEST,
            "--epochs", self.epochs, "--out", path,
        )  # fmt: skip
        return path

    def taken(self, variant: Variant) -> Path:
        """The supernet before any update, with its space beside it."""
        path = self.work / f"taken-{variant.importance}-{variant.mos}.pt"
        if not path.exists():
            self.nas_ext(
                path.stem, "elastic", "--checkpoint", self.trained, "--data", TRAIN, "--out", path, "--mos",
                variant.mos, "--space-out", path.with_suffix(".yml"), *variant.calibration,
            )  # fmt: skip
        return path

    def supernet(self, variant: Variant, updates: int, seed: int) -> Path:
        """The supernet after so many updates."""
        begun = self.taken(variant)
        if not updates:
            return begun
        name = f"{slug(variant.name)}-{updates}-{seed}"
        teacher = ("--teacher", self.trained) if variant.teacher else ()
        self.run(
            name, sys.executable, "-m", "timm_ext.train", "--data", TRAIN, "--val-count", 5000, "--output",
            self.work / name, "--init", begun, "--sampling", "sandwich", "--updates", updates, "--warmup-updates",
            max(1, updates // 10), "--batch-size", 64, "--lr", 3e-4, "--seed", seed, *teacher,
        )  # fmt: skip
        return self.work / name / "last.pt"


def half(job: Job) -> Path:
    """The best network under half of the trained one's latency; its file."""
    space_file, data, model = job.taken(FULL).with_suffix(".yml"), "latency.jsonl", "latency.json"
    job.nas_ext(
        "latency-collect", "latency", "collect", "--space", space_file, "--out", job.work / data, "--samples", 100,
        "--threads", 1, "--clock", "cpu", "--workload", "activation=gelu",
    )  # fmt: skip
    job.nas_ext("latency-fit", "latency", "fit", "--data", job.work / data, "--out", job.work / model)
    job.nas_ext(
        "search", "search", "--checkpoint", job.supernet(FULL, job.updates, 1), "--latency-model", job.work / model,
        "--limit", "latency_share=0.5", "--out", job.work / "search", "--valid-sentences", 1000,
        "--set", "iterations=10", "--set", "parents=8", "--set", "mutations=16", "--set", "crossovers=16",
    )  # fmt: skip
    finalists = read_json(job.work / "search" / "finalists.json")["finalists"]
    best = next((entry for entry in finalists if entry["best_of"]), finalists[0])
    return Path(job.work / "search" / best["file"])


def top1(job: Job, checkpoint: Path, architectures: dict[str, Architecture]) -> dict[str, float]:
    """Percent of the test images whose class is found, with inherited weights."""
    from nas_core.supernet.host import open_supernet

    kept = checkpoint.with_suffix(".test.json")
    if not kept.exists():
        images = as_folder(TEST, "test", job.work / "images")
        supernet = open_supernet(checkpoint, data=str(images), valid_subset="test")
        found = {name: round(supernet.evaluate(each)["top1"], 2) for name, each in architectures.items()}
        kept.write_text(json.dumps(found))
    return dict(read_json(kept))


def report(job: Job, steps: list[int], seeds: int) -> dict[str, Any]:
    space = load_space(job.taken(FULL).with_suffix(".yml"))
    asked = {"largest": space.largest(), HALF: Architecture.load(half(job)), "smallest": space.smallest()}
    rows = []
    runs = [(variant, job.updates, seed) for seed in range(1, seeds + 1) for variant in VARIANTS]
    runs += [(variant, updates, 1) for variant in VARIANTS for updates in steps if updates != job.updates]
    for variant, updates, seed in runs:
        for name, value in top1(job, job.supernet(variant, updates, seed), asked).items():
            rows.append({"supernet": variant.name, "updates": updates, "seed": seed, "subnet": name,
                         "params_m": round(params_m(asked[name]), 3), "top1": value})  # fmt: skip
            print(rows[-1], flush=True)
    trained = read_json(job.trained.with_suffix(".json"))
    return {"epochs": job.epochs, "updates": job.updates, "trained": trained[-1], "rows": rows,
            "machine": describe_machine("cpu", job.threads)}  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("runs/elastic_image"))
    parser.add_argument("--epochs", type=int, default=12, help="of the trained network")
    parser.add_argument("--updates", type=int, default=600, help="of the main rows, all seeds")
    parser.add_argument("--steps", type=int, nargs="*", default=[0, 200], help="updates, seed 1")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if not TRAIN.exists():
        print(f"skipped: no {TRAIN.name} in the folder that NAS_EXT_DATA names")
        return
    job = Job(args.work.resolve(), args.threads, args.epochs, args.updates)
    job.work.mkdir(parents=True, exist_ok=True)
    write_result(args.out, report(job, args.steps, args.seeds), command(__file__, argv))


if __name__ == "__main__":
    main()
