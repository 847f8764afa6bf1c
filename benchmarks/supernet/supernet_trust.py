"""Estimates of supernets: inherited against standalone loss, for each way of training a supernet.

``python -m benchmarks supernet_trust BIN --work DIR``: BIN is a folder of ``fairseq-preprocess`` with a joined
dictionary (Multi30k en-de, lower-cased, 3,000 subwords in the committed result). Supernets of several seeds have equal
updates, batches and schedule. All share networks that are trained from scratch once. ``--equal-passes`` also trains
supernets for a third of the updates, as many passes as a standalone training; ``--further`` trains their subnets until
they are as good as standalone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.record import command, write_result
from benchmarks.parts.runs import USER_DIR, schedule
from benchmarks.parts.trust_runs import EXPERTS, TrustRuns
from nas_core.latency.machine import describe_machine

RESULT = Path(__file__).parents[1] / "results" / "supernet_trust.json"
METHODS: dict[str, tuple[str, ...]] = {"SPOS": ("--mos", "none", "--sampling", "spos"), **EXPERTS}
"""Name -> options of ``fairseq-train``."""
IN_PLACE = ("--criterion", "distilled_label_smoothed_cross_entropy", "--teacher", "largest", "--distill-weight", "1")
BEYOND: dict[str, tuple[str, ...]] = {
    "sandwich, taught in place": ("--mos", "none", *IN_PLACE),
    "neuron-wise, taught in place": ("--mos", "neuron", *IN_PLACE),
    "neuron-wise, near start": ("--mos", "neuron", "--mos-start", "near"),
    "neuron-wise, four of rank 16": ("--mos", "neuron", "--mos-experts", "4", "--mos-rank", "16"),
    "neuron-wise, near and kept apart": ("--mos", "neuron", "--mos-start", "near", "--mos-apart", "0.1"),
}
"""Variants that the paper does not have."""
SANDWICH = 3
"""Subnets of one update: the largest, a random and the smallest one."""


@dataclass(frozen=True)
class Job(TrustRuns):
    tokens: int
    """Largest number of tokens of a batch."""
    first = "SPOS"

    def supernet(self, method: str, seed: int, updates: int) -> Path:
        words = [method, str(seed), *([] if updates == self.updates else [str(updates)])]
        name, options = "-".join(words).replace(", ", "-").replace(" ", "-"), (METHODS | BEYOND)[method]
        return self.translation(
            name, "--user-dir", USER_DIR, "--task", "supernet_translation", "--arch", "mos_transformer",
            "--search-space", self.space, "--sampling", "sandwich", "--criterion",
            "fused_label_smoothed_cross_entropy", "--lr", 3e-3, "--dropout", 0.1, *schedule(updates), "--max-tokens",
            self.tokens, "--disable-validation", "--seed", seed, *options,
        )  # fmt: skip

    def rows(self, methods: Sequence[str], seeds: Sequence[int], updates: int) -> Iterator[dict[str, Any]]:
        """Yield the figures of each supernet."""
        for seed in seeds:
            for method in methods:
                figures = self.row(method, seed, "none" not in (METHODS | BEYOND)[method], updates)
                print({name: value for name, value in figures.items() if name != "inherited"}, flush=True)
                yield figures


def measure(job: Job, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the content so far after each supernet."""
    rows: list[dict[str, Any]] = []
    passes: list[dict[str, Any]] = []
    further: list[dict[str, Any]] = []
    content: dict[str, Any] = {"rows": rows}
    for row in job.rows(args.methods, args.seeds, job.updates):
        rows.append(row)
        yield content
    if not args.equal_passes:
        return
    compared = [method for method in args.methods if method in EXPERTS]
    updates = job.updates // SANDWICH
    content["equal_passes"] = {"updates": updates, "rows": passes}
    for row in job.rows([*compared, *args.beyond], args.seeds, updates):
        passes.append(row)
        yield content
    if not args.further:
        return
    every, most = args.schedule
    content["further"] = {"every": every, "most_updates": most, "rows": further}
    for seed in args.further_seeds or args.seeds:
        for method in args.methods:
            passed = updates if method in EXPERTS else job.updates
            further.append(job.further(method, seed, passed, args.further, every, most))
            print({name: value for name, value in further[-1].items() if name != "networks"}, flush=True)
            yield content


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, nargs="?")
    parser.add_argument("--work", type=Path, default=Path("runs/supernet_trust"))
    parser.add_argument("--space", default="hat_small")
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--networks", type=int, default=12)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--beyond", nargs="*", choices=list(BEYOND), default=[], help="with --equal-passes")
    parser.add_argument("--equal-passes", action="store_true", help="also supernets of a third of the updates")
    parser.add_argument("--further", type=int, default=0, help="of these, networks that are trained further")
    parser.add_argument("--further-seeds", type=int, nargs="*", default=[], help="only of these seeds")
    parser.add_argument("--schedule", type=int, nargs=2, default=[50, 1000], metavar=("EVERY", "MOST"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if (args.further or args.beyond) and not args.equal_passes:
        parser.error("--further and --beyond are measured with --equal-passes")
    if args.bin is None:
        print("skipped: needs a preprocessed corpus, see python -m benchmarks supernet_trust --help")
        return
    job = Job(args.work, args.threads, args.bin, args.space, args.updates, args.networks, args.tokens)
    for measured in measure(job, args):
        content = {
            "space": job.space, "updates": job.updates, "tokens": job.tokens, "standalone": job.networks_alone(),
            **measured, "machine": describe_machine("cpu", job.threads),
        }  # fmt: skip
        write_result(args.out, content, command(__file__, argv))


if __name__ == "__main__":
    main()
