"""Whether estimates of supernets hold: inherited against standalone loss, for each way of training a supernet.

``python -m benchmarks supernet_trust BIN --work DIR`` where BIN is a folder of ``fairseq-preprocess`` with a joined
dictionary (Multi30k en-de, lower-cased, 3,000 subwords in the committed result). Supernets of several seeds have equal
updates, batches and schedule; the networks of one list are trained from scratch once, by ``nas-ext study gap``, and
shared by all supernets. Each step writes below DIR and is skipped when that exists, so an interrupted run goes on; the
result is written anew after each supernet.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.brief.declared import NoBrief
from benchmarks.parts.record import command, write_result
from benchmarks.parts.trained.translation_runs import USER_DIR
from benchmarks.parts.trained.trust_runs import EXPERTS, TrustRuns
from nas_core.latency.machine import describe_machine

RESULT = Path(__file__).parents[1] / "results" / "supernet_trust.json"
METHODS: dict[str, tuple[str, ...]] = {"SPOS": ("--mos", "none", "--sampling", "spos"), **EXPERTS}
"""Name -> options of ``fairseq-train`` beside those that all supernets share."""
TAUGHT = ("--criterion", "distilled_label_smoothed_cross_entropy", "--teacher", "largest", "--distill-weight", "1")
BEYOND: dict[str, tuple[str, ...]] = {
    "sandwich, taught in place": ("--mos", "none", *TAUGHT),
    "neuron-wise, taught in place": ("--mos", "neuron", *TAUGHT),
    "neuron-wise, near start": ("--mos", "neuron", "--mos-start", "near"),
    "neuron-wise, four of rank 16": ("--mos", "neuron", "--mos-experts", "4", "--mos-rank", "16"),
    "neuron-wise, near and kept apart": ("--mos", "neuron", "--mos-start", "near", "--mos-apart", "0.1"),
}
"""The same for what the paper does not have; asked for by name."""
BRIEF = NoBrief("trainings of hours on a corpus; short ones say nothing of their quality")


@dataclass(frozen=True)
class Job(TrustRuns):
    """Supernets for translation."""

    tokens: int
    """Tokens of a batch, at most."""
    first = "SPOS"

    def supernet(self, method: str, seed: int) -> Path:
        name, options = f"{method}-{seed}".replace(", ", "-").replace(" ", "-"), (METHODS | BEYOND)[method]
        return self.fairseq_train(
            name, "--user-dir", USER_DIR, "--task", "supernet_translation", "--arch", "mos_transformer",
            "--search-space", self.space, "--sampling", "sandwich", "--criterion",
            "fused_label_smoothed_cross_entropy", "--lr", 3e-3, "--dropout", 0.1, "--lr-scheduler", "polynomial_decay",
            "--warmup-updates", max(1, self.updates // 10), "--total-num-update", self.updates, "--max-update",
            self.updates, "--max-tokens", self.tokens, "--disable-validation", "--seed", seed, *options,
        )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, nargs="?")
    parser.add_argument("--work", type=Path, default=Path("runs/supernet_trust"))
    parser.add_argument("--space", default="hat_small")
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--networks", type=int, default=12)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, *BEYOND], default=list(METHODS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if args.bin is None:
        print("skipped: needs a preprocessed corpus, see python -m benchmarks supernet_trust --help")
        return
    job = Job(args.bin, args.work, args.threads, args.space, args.updates, args.networks, args.tokens)
    rows: list[dict[str, Any]] = []
    for seed in args.seeds:
        for method in args.methods:
            rows.append(job.row(method, seed, routed="none" not in (METHODS | BEYOND)[method]))
            print({name: value for name, value in rows[-1].items() if name != "inherited"}, flush=True)
            content = {
                "space": job.space, "updates": job.updates, "tokens": job.tokens, "standalone": job.networks_alone(),
                "rows": rows, "machine": describe_machine("cpu", job.threads),
            }  # fmt: skip
            write_result(args.out, content, command(__file__, argv))


if __name__ == "__main__":
    main()
