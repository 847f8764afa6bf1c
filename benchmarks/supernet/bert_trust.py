"""Estimates of BERT supernets: inherited against standalone masked-LM loss, routing and conflict.

``python -m benchmarks bert_trust NAME=BIN [NAME=BIN ..] --work DIR``: each BIN is a folder of ``fairseq-preprocess
--only-source`` (WikiText-2, trained on its test split and evaluated on its validation split, and tiny Shakespeare, of
which the last tenth is held out; 2,000 subwords each). Supernets with and without experts have equal updates and
batches of the sandwich rule; the same random networks are trained from scratch once per corpus.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.record import command, write_result
from benchmarks.parts.runs import USER_DIR, schedule
from benchmarks.parts.trust_runs import EXPERTS, TrustRuns
from nas_core.latency.machine import describe_machine
from nas_core.options import read_pairs

RESULT = Path(__file__).parents[1] / "results" / "bert_trust.json"


@dataclass(frozen=True)
class Job(TrustRuns):
    tokens: int
    """Largest number of tokens of a batch."""
    first = "sandwich"
    examples = ("--valid-sentences", 500)

    def supernet(self, method: str, seed: int, updates: int) -> Path:
        return self.fairseq_train(
            f"{method}-{seed}", "--user-dir", USER_DIR, "--task", "supernet_masked_lm", "--arch", "mos_bert_small",
            "--search-space", self.space, *EXPERTS[method], "--sampling", "sandwich", "--criterion", "masked_lm",
            "--sample-break-mode", "none", "--tokens-per-sample", 64, "--lr", 2e-3, *schedule(updates), "--max-tokens",
            self.tokens, "--seed", seed, "--disable-validation",
        )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", metavar="NAME=BIN")
    parser.add_argument("--work", type=Path, default=Path("runs/bert_trust"))
    parser.add_argument("--space", default="bert_small")
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--networks", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if not args.corpora:
        print("skipped: needs preprocessed corpora, see python -m benchmarks bert_trust --help")
        return
    jobs = {
        name: Job(args.work / name, args.threads, Path(bin), args.space, args.updates, args.networks, args.tokens)
        for name, bin in read_pairs("corpora", args.corpora).items()
    }
    rows: list[dict[str, Any]] = []
    for seed in range(1, args.seeds + 1):
        for name, job in jobs.items():
            for method in EXPERTS:
                rows.append({"corpus": name, **job.row(method, seed, routed=method != "sandwich")})
                print({key: value for key, value in rows[-1].items() if key != "inherited"}, flush=True)
                done = dict.fromkeys(row["corpus"] for row in rows)
                content = {
                    "space": args.space, "updates": args.updates, "tokens": args.tokens,
                    "standalone": {corpus: jobs[corpus].networks_alone() for corpus in done},
                    "rows": rows, "machine": describe_machine("cpu", args.threads),
                }  # fmt: skip
                write_result(args.out, content, command(__file__, argv))


if __name__ == "__main__":
    main()
