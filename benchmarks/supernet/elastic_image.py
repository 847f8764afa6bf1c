"""A trained vision transformer converted to a supernet: accuracy of subnets, with and without teacher and sorting.

``python -m benchmarks elastic_image --work DIR``. A ``VisionTransformer`` of timm is trained on CIFAR-10, converted,
and trained as a supernet by the sandwich rule. The largest and smallest subnet, and one found by a search under half of
the latency, are evaluated on the test images. NAS_EXT_DATA names the folder of the images.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.converted import ABLATIONS, FULL, ConvertedRuns, Variant
from benchmarks.parts.record import command, write_result
from benchmarks.parts.runs import TEST, TRAIN, export_images
from nas_core.files.reading import read_json
from nas_core.latency.machine import describe_machine
from nas_core.space import Architecture, load_space

RESULT = Path(__file__).parents[1] / "results" / "elastic_image.json"
HALF = "50% of its latency"
VARIANTS = tuple(variant for variant in ABLATIONS if variant.converted)


@dataclass(frozen=True)
class Job(ConvertedRuns):
    epochs: int
    """Number of epochs of the trained network."""
    updates: int
    """Numbers of updates of supernets."""

    def trained_checkpoint(self) -> Path:
        path = self.work / "trained.pt"
        self.run(
            "trained", "python", "-m", "benchmarks.parts.plain_vit", "--data", TRAIN, "--val-data", TEST, "--epochs",
            self.epochs, "--out", path,
        )  # fmt: skip
        return path

    def converted_supernet(self, variant: Variant) -> Path:
        return self.convert(variant, "--data", TRAIN)

    def train_supernet(self, name: str, variant: Variant, updates: int, seed: int) -> Path:
        teacher = ("--teacher", self.trained_checkpoint()) if variant.teacher else ()
        self.run(
            name, "python", "-m", "timm_ext.train", "--data", TRAIN, "--val-count", 5000, "--output", self.work / name,
            "--init", self.converted_supernet(variant), "--sampling", "sandwich", "--updates", updates,
            "--warmup-updates", max(1, updates // 10), "--batch-size", 64, "--lr", 3e-4, "--seed", seed, *teacher,
        )  # fmt: skip
        return self.work / name / "last.pt"

    def search_half_latency(self) -> Path:
        """Search; return the file of the best network within half of the latency."""
        model = self.latency_model(
            self.converted_supernet(FULL).with_suffix(".yml"), 100, "--workload", "activation=gelu"
        )
        folder = self.work / "search"
        self.run(
            "search", "nas-ext", "search", "--checkpoint", self.supernet(FULL, self.updates, 1), "--latency-model",
            model, "--limit", "latency_ms=50%", "--out", folder, "--valid-samples", 1000, "--strategy", "evolution",
            "--set", "iterations=10",
            "--set", "population=40",
        )  # fmt: skip
        finalists = read_json(folder / "finalists.json")["finalists"]
        best = next((entry for entry in finalists if entry["best_of"]), finalists[0])
        return folder / str(best["file"])


def report(job: Job, steps: list[int], seeds: int) -> dict[str, Any]:
    space = load_space(job.converted_supernet(FULL).with_suffix(".yml"))
    subnets = {
        "largest": space.largest(),
        HALF: Architecture.load(job.search_half_latency()),
        "smallest": space.smallest(),
    }
    images = export_images(TEST, "test", job.work / "images")
    runs = [(variant, job.updates, seed) for seed in range(1, seeds + 1) for variant in VARIANTS]
    runs += [(variant, updates, 1) for variant in VARIANTS for updates in steps if updates != job.updates]
    options = {"data": str(images), "valid_subset": "test"}
    rows = [row for run in runs for row in job.rows(*run, subnets, "top1", **options)]
    trained = read_json(job.trained_checkpoint().with_suffix(".json"))
    return {"epochs": job.epochs, "updates": job.updates, "trained": trained[-1], "rows": rows,
            "machine": describe_machine("cpu", job.threads)}  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("runs/elastic_image"))
    parser.add_argument("--epochs", type=int, default=12, help="epochs of the trained network")
    parser.add_argument("--updates", type=int, default=600, help="updates of supernets, for all seeds")
    parser.add_argument("--steps", type=int, nargs="*", default=[0, 200], help="further numbers of updates, for seed 1")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if not TRAIN.exists():
        print(f"skipped: no {TRAIN.name} in the folder that NAS_EXT_DATA names")
        return
    job = Job(args.work.resolve(), args.threads, args.epochs, args.updates)
    write_result(args.out, report(job, args.steps, args.seeds), command(__file__, argv))


if __name__ == "__main__":
    main()
