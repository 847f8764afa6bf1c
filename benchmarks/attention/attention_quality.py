"""BLEU of translation networks with softmax or linear attention, on a real corpus.

``python -m benchmarks attention_quality BIN --work DIR``: BIN is a folder of ``fairseq-preprocess`` (see
``translation_quality``). Networks are the largest one of ``mformer_translation_small`` with linear attention in
different places. Each is trained from scratch: those of ``MAIN`` with every seed, the others with one seed. Supernets,
trained with as many updates, are evaluated for each network too.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks.parts.record import command, write_result
from benchmarks.supernet.translation_quality import Job
from nas_core.latency.machine import describe_machine
from nas_core.space import Architecture, get_space

RESULT = Path(__file__).parents[1] / "results" / "attention_quality.json"
SPACE = "mformer_translation_small"
SOFTMAX, LINEAR = ["softmax"] * 3, ["linear"] * 3
LAYOUTS = {
    "softmax everywhere": (SOFTMAX, SOFTMAX, SOFTMAX),
    "linear in the encoder": (LINEAR, SOFTMAX, SOFTMAX),
    "linear in the decoder": (SOFTMAX, LINEAR, SOFTMAX),
    "linear across": (SOFTMAX, SOFTMAX, LINEAR),
    "linear everywhere": (LINEAR, LINEAR, LINEAR),
}
"""Kinds of attention by layer: in the encoder, in the decoder, and between them."""
MAIN = ("softmax everywhere", "linear in the encoder")
"""Networks trained with every seed."""


def architecture(layout: tuple[list[str], list[str], list[str]]) -> Architecture:
    genes = ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention")
    return Architecture({**get_space(SPACE).largest().to_dict(), **dict(zip(genes, layout, strict=True))})


class Evaluation:
    """BLEU by network and seed, written after each training."""

    def __init__(self, job: Job, out: Path, command: str) -> None:
        self.job, self.out, self.command = job, out, command
        self.inherited: dict[str, list[float]] = {title: [] for title in LAYOUTS}
        self.standalone: dict[str, list[float]] = {title: [] for title in LAYOUTS}

    def train_supernet(self, seed: int) -> None:
        checkpoint = self.job.train(
            f"supernet-{seed}", self.job.updates, 3e-3, "--task", "supernet_translation", "--arch", SPACE,
            "--sampling", "sandwich", "--disable-validation", "--seed", seed,
        )  # fmt: skip
        for title in LAYOUTS:
            name = f"{_slug(title)}-{seed}"
            subnet = self.job.subnet(name, checkpoint, self._architecture_file(title))
            self._store(self.inherited[title], f"inherited-{name}", subnet)

    def train_standalone(self, title: str, seed: int) -> None:
        name = f"alone-{_slug(title)}-{seed}"
        options = ("--arch", SPACE, "--subnet", self._architecture_file(title), "--disable-validation", "--seed", seed)
        self._store(self.standalone[title], name, self.job.train(name, self.job.updates, 3e-3, *options))

    def _architecture_file(self, title: str) -> Path:
        file = self.job.work / f"{_slug(title)}.json"
        architecture(LAYOUTS[title]).save(file)
        return file

    def _store(self, scores: list[float], name: str, checkpoint: Path) -> None:
        scores.append(round(self.job.bleu(name, checkpoint), 2))
        print(name, scores[-1], flush=True)
        rows = [
            {"attention": title, "inherited_bleu": self.inherited[title], "standalone_bleu": self.standalone[title]}
            for title in LAYOUTS
        ]
        machine = describe_machine("cpu", self.job.threads)
        content = {"updates": self.job.updates, "rows": rows, "seconds": self.job.seconds(), "machine": machine}
        write_result(self.out, content, self.command)


def _slug(title: str) -> str:
    return title.replace(" ", "-")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, help="folder of fairseq-preprocess")
    parser.add_argument("--work", type=Path, default=Path("runs/attention_quality"))
    parser.add_argument("--updates", type=int, default=1400, help="updates of each supernet and network")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--supernet-seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    job = Job(options.work, options.threads, options.bin, SPACE, options.updates, 0, 0)
    evaluation = Evaluation(job, options.out, command(__file__, argv))
    for title in LAYOUTS:
        for seed in options.seeds if title in MAIN else options.seeds[:1]:
            evaluation.train_standalone(title, seed)
    for seed in options.supernet_seeds:
        evaluation.train_supernet(seed)


if __name__ == "__main__":
    main()
