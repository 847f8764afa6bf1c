"""A trained masked language model converted to a supernet: loss of subnets, with and without teacher and sorting.

``python -m benchmarks elastic_masked_lm BIN --work DIR``: BIN is a folder of ``fairseq-preprocess --only-source``
(committed result: the English half of Multi30k in subwords). A small ``roberta`` of fairseq is trained, converted, and
trained as a supernet by the sandwich rule. The largest network, the one with half of its layers, and the smallest are
evaluated.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.converted import ABLATIONS, FULL, ConvertedRuns, Variant
from benchmarks.parts.record import command, write_result
from benchmarks.parts.runs import USER_DIR, TranslationRuns, schedule
from nas_core.latency.machine import describe_machine
from nas_core.space import Architecture, load_space

RESULT = Path(__file__).parents[1] / "results" / "elastic_masked_lm.json"
LAYERS, WIDTH, HEADS = 4, 128, 4


@dataclass(frozen=True)
class Job(ConvertedRuns, TranslationRuns):
    trained_updates: int
    updates: int
    """Number of updates of each supernet."""

    def train(self, name: str, updates: int, lr: float, *arguments: object) -> Path:
        return self.fairseq_train(
            name, "--user-dir", USER_DIR, "--sample-break-mode", "eos", "--tokens-per-sample", 64, "--max-tokens", 4096,
            "--clip-norm", 1.0, "--lr", lr, *schedule(updates), "--dropout", 0.0, "--attention-dropout", 0.0,
            "--disable-validation", *arguments,
        )  # fmt: skip

    def trained_checkpoint(self) -> Path:
        return self.train(
            "trained", self.trained_updates, 1e-3, "--task", "masked_lm", "--arch", "roberta_base", "--criterion",
            "masked_lm", "--encoder-layers", LAYERS, "--encoder-embed-dim", WIDTH, "--encoder-ffn-embed-dim", 4 * WIDTH,
            "--encoder-attention-heads", HEADS, "--seed", 1,
        )  # fmt: skip

    def converted_supernet(self, variant: Variant) -> Path:
        return self.convert(variant, "--data", self.bin)

    def train_supernet(self, name: str, variant: Variant, updates: int, seed: int) -> Path:
        criterion: tuple[object, ...] = ("--criterion", "masked_lm")
        if variant.teacher:
            criterion = ("--criterion", "distilled_masked_lm", "--teacher", self.trained_checkpoint())
        initialization: tuple[object, ...] = ("--finetune-from-model", self.converted_supernet(variant))
        if not variant.converted:
            initialization = ("--search-space", self.converted_supernet(FULL).with_suffix(".yml"))
        return self.train(
            name, updates, 5e-4 if variant.converted else 1e-3, "--task", "supernet_masked_lm", "--arch", "mos_roberta",
            "--mos", "none", "--sampling", "sandwich", *criterion, *initialization, "--seed", seed,
        )  # fmt: skip

    def subnets(self) -> dict[str, Architecture]:
        space = load_space(self.converted_supernet(FULL).with_suffix(".yml"))
        largest, smallest = space.largest(), space.smallest()
        layers = smallest.number("layers")
        genes = {name: value[:layers] if isinstance(value, tuple) else value for name, value in largest.items()}
        shallow = Architecture({**genes, "layers": layers})
        return {"largest": largest, "half of the layers": shallow, "smallest": smallest}


def report(job: Job, seeds: int) -> dict[str, Any]:
    subnets, data = job.subnets(), str(job.bin)
    rows = []
    for variant in ABLATIONS:
        if variant.converted and variant.teacher:
            rows += job.rows(variant, 0, 1, subnets, "loss", data=data)
        for seed in range(1, seeds + 1):
            rows += job.rows(variant, job.updates, seed, subnets, "loss", data=data)
    return {
        "layers": LAYERS, "width": WIDTH, "trained_updates": job.trained_updates, "updates": job.updates, "rows": rows,
        "commands": job.seconds(), "machine": describe_machine("cpu", job.threads),
    }  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, nargs="?")
    parser.add_argument("--work", type=Path, default=Path("runs/elastic_masked_lm"))
    parser.add_argument("--trained-updates", type=int, default=1500)
    parser.add_argument("--updates", type=int, default=200, help="updates of each supernet")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if args.bin is None:
        print("skipped: needs a preprocessed corpus, see python -m benchmarks elastic_masked_lm --help")
        return
    job = Job(args.work, args.threads, args.bin, args.trained_updates, args.updates)
    write_result(args.out, report(job, args.seeds), command(__file__, argv))


if __name__ == "__main__":
    main()
