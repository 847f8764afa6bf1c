"""A trained masked language model as a supernet: inherited loss, with and without teacher and sorting.

``python -m benchmarks elastic_masked_lm BIN --work DIR`` where BIN is a folder of ``fairseq-preprocess --only-source``
(the English half of Multi30k in subwords in the committed result). fairseq's ``roberta`` of a small
size is trained, taken over, and trained as a supernet by the sandwich rule; each supernet is asked for the loss of its
largest network, of the one with half of the layers, and of the smallest. Each step writes one file below DIR and is
skipped when that exists, so an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.record import command, write_result
from benchmarks.parts.trained.translation_runs import USER_DIR, TranslationRuns
from benchmarks.parts.trained.variants import ABLATIONS, FULL, Variant, slug
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.latency.machine import describe_machine
from nas_core.models import params_m
from nas_core.space import Architecture, SearchSpace, load_space

RESULT = Path(__file__).parents[1] / "results" / "elastic_masked_lm.json"
LAYERS, WIDTH, HEADS = 4, 128, 4


@dataclass(frozen=True)
class Job(TranslationRuns):
    """The steps of the benchmark."""

    trained_updates: int
    updates: int
    """How many each supernet gets."""

    def train(self, name: str, updates: int, lr: float, *arguments: object) -> Path:
        """``fairseq-train`` on the corpus; the last checkpoint."""
        folder = self.work / name
        if not (folder / "done").exists():
            self.run(
                name, "fairseq-train", self.bin, "--user-dir", USER_DIR, "--cpu", "--sample-break-mode", "eos",
                "--tokens-per-sample", 64, "--max-tokens", 4096, "--optimizer", "adam", "--adam-betas", "(0.9,0.98)",
                "--clip-norm", 1.0, "--lr", lr, "--lr-scheduler", "polynomial_decay", "--warmup-updates",
                max(1, updates // 10), "--total-num-update", updates, "--max-update", updates,
                "--no-epoch-checkpoints", "--num-workers", 0, "--log-format", "simple", "--log-interval", 50,
                "--disable-validation", "--save-dir", folder, *arguments,
            )  # fmt: skip
            (folder / "done").touch()
        return folder / "checkpoint_last.pt"

    def trained(self) -> Path:
        """fairseq's own model."""
        return self.train(
            "trained", self.trained_updates, 1e-3, "--task", "masked_lm", "--arch", "roberta_base", "--criterion",
            "masked_lm", "--encoder-layers", LAYERS, "--encoder-embed-dim", WIDTH, "--encoder-ffn-embed-dim", 4 * WIDTH,
            "--encoder-attention-heads", HEADS, "--dropout", 0.0, "--attention-dropout", 0.0, "--seed", 1,
        )  # fmt: skip

    def taken(self, variant: Variant) -> Path:
        """The supernet before any update."""
        path = self.work / f"taken-{variant.importance}.pt"
        if not path.exists():
            self.run(
                path.stem, "nas-ext", "elastic", "--checkpoint", self.trained(), "--data", self.bin, "--out", path,
                *variant.calibration, "--space-out", path.with_suffix(".yml"),
            )  # fmt: skip
        return path

    def supernet(self, variant: Variant, updates: int, seed: int) -> Path:
        """The supernet after so many updates."""
        if not updates:
            return self.taken(variant)
        criterion: tuple[object, ...] = ("--criterion", "masked_lm")
        if variant.teacher:
            criterion = ("--criterion", "distilled_masked_lm", "--teacher", self.trained())
        begin: tuple[object, ...] = ("--finetune-from-model", self.taken(variant))
        if not variant.taken_over:
            begin = ("--search-space", self.taken(FULL).with_suffix(".yml"))
        return self.train(
            f"{slug(variant.name)}-{updates}-{seed}", updates, 5e-4 if variant.taken_over else 1e-3, "--task",
            "supernet_masked_lm", "--arch", "mos_roberta", "--mos", variant.mos, "--sampling", "sandwich", "--dropout",
            0.0, "--attention-dropout", 0.0, *criterion, *begin, "--seed", seed,
        )  # fmt: skip

    @property
    def space(self) -> SearchSpace:
        return load_space(self.taken(FULL).with_suffix(".yml"))

    def subnets(self) -> dict[str, Architecture]:
        """The networks that each supernet is asked for."""
        space = self.space
        largest, smallest = space.largest(), space.smallest()
        layers = smallest.number("layers")
        genes = {name: value[:layers] if isinstance(value, tuple) else value for name, value in largest.items()}
        return {"largest": largest, "half of the layers": Architecture({**genes, "layers": layers}),
                "smallest": smallest}  # fmt: skip

    def rows(self, variant: Variant, updates: int, seed: int) -> list[dict[str, Any]]:
        """The loss (bits of a masked token) of each network with inherited weights."""
        from nas_core.supernet import open_supernet

        file = self.work / "losses" / f"{slug(variant.name)}-{updates}-{seed}.json"
        if not file.exists():
            opened = open_supernet(self.supernet(variant, updates, seed), data=str(self.bin))
            write_json(file, {name: opened.evaluate(one)["loss"] for name, one in self.subnets().items()})
        losses, sizes = read_json(file), {name: round(params_m(one), 3) for name, one in self.subnets().items()}
        rows = [
            {"supernet": variant.name, "updates": updates, "seed": seed, "subnet": name, "params_m": sizes[name],
             "loss": loss}
            for name, loss in losses.items()
        ]  # fmt: skip
        for each in rows:
            print(json.dumps(each), flush=True)
        return rows


def report(job: Job, seeds: int) -> dict[str, Any]:
    rows = []
    for variant in ABLATIONS:
        if variant.taken_over and variant.teacher:
            rows += job.rows(variant, 0, 1)
        for seed in range(1, seeds + 1):
            rows += job.rows(variant, job.updates, seed)
    seconds = {path.stem: read_json(path) for path in sorted((job.work / "seconds").glob("*.json"))}
    return {
        "layers": LAYERS, "width": WIDTH, "trained_updates": job.trained_updates, "updates": job.updates, "rows": rows,
        "commands": seconds, "machine": describe_machine("cpu", job.threads),
    }  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, nargs="?")
    parser.add_argument("--work", type=Path, default=Path("runs/elastic_masked_lm"))
    parser.add_argument("--trained-updates", type=int, default=1500)
    parser.add_argument("--updates", type=int, default=200, help="of each supernet")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if args.bin is None:
        print("skipped: needs a preprocessed corpus, see python -m benchmarks elastic_masked_lm --help")
        return
    job = Job(args.bin, args.work, args.threads, args.trained_updates, args.updates)
    write_result(args.out, report(job, args.seeds), command(__file__, argv))


if __name__ == "__main__":
    main()
