"""Whether estimates of BERT supernets hold: inherited against standalone masked-LM loss, routing and conflict.

``python -m benchmarks bert_trust NAME=BIN [NAME=BIN ..] --work DIR`` where each BIN is a folder of ``fairseq-preprocess
--only-source`` (such as WikiText-2, whose test split is trained on and whose validation split judges, and
tiny Shakespeare, of which the last tenth judges; 2,000 subwords each). Supernets with and without experts have equal
updates and batches of the sandwich rule; the same random networks are trained from scratch once for each corpus. Each
step writes below DIR and is skipped when that exists; the result is written anew after each supernet.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.record import command, write_result
from benchmarks.parts.trained.translation_runs import USER_DIR
from benchmarks.parts.trained.trust_runs import EXPERTS, TrustRuns
from nas_core.errors import ConfigError
from nas_core.latency.machine import describe_machine

RESULT = Path(__file__).parents[1] / "results" / "bert_trust.json"


@dataclass(frozen=True)
class Job(TrustRuns):
    """Supernets of encoders on one corpus."""

    tokens: int
    """Tokens of a batch, at most."""
    first = "sandwich"
    examples = ("--valid-sentences", 500)

    def supernet(self, method: str, seed: int, updates: int) -> Path:
        name = f"{method}-{seed}"
        folder = self.work / name
        if not (folder / "done").exists():
            self.run(
                name, "fairseq-train", self.bin, "--user-dir", USER_DIR, "--task", "supernet_masked_lm", "--arch",
                "mos_bert_small", "--search-space", self.space, *EXPERTS[method], "--sampling", "sandwich",
                "--criterion", "masked_lm", "--sample-break-mode", "none", "--tokens-per-sample", 64, "--optimizer",
                "adam", "--adam-betas", "(0.9,0.98)", "--lr", 2e-3, "--lr-scheduler", "polynomial_decay",
                "--warmup-updates", max(1, updates // 10), "--total-num-update", updates, "--max-update",
                updates, "--max-tokens", self.tokens, "--seed", seed, "--cpu", "--num-workers", 0,
                "--disable-validation", "--no-epoch-checkpoints", "--log-format", "simple", "--log-interval", 50,
                "--save-dir", folder,
            )  # fmt: skip
            (folder / "done").touch()
        return folder / "checkpoint_last.pt"


def corpora(words: Sequence[str]) -> dict[str, Path]:
    """The folder of each corpus by its name.

    Raises:
        ConfigError: a word that is not ``NAME=FOLDER``.
    """
    found = {}
    for word in words:
        name, equals, folder = word.partition("=")
        if not (name and equals and folder):
            raise ConfigError(f"corpus {word!r}; expected NAME=FOLDER, such as wikitext2=data/bin")
        found[name] = Path(folder)
    return found


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
        name: Job(bin, args.work / name, args.threads, args.space, args.updates, args.networks, args.tokens)
        for name, bin in corpora(args.corpora).items()
    }
    rows: list[dict[str, Any]] = []
    for seed in range(1, args.seeds + 1):
        for name, job in jobs.items():
            for method in EXPERTS:
                rows.append({"corpus": name, **job.row(method, seed, routed=method != "sandwich")})
                print({key: value for key, value in rows[-1].items() if key != "inherited"}, flush=True)
                done = [each for each in jobs if any(row["corpus"] == each for row in rows)]
                content = {
                    "space": args.space, "updates": args.updates, "tokens": args.tokens,
                    "standalone": {each: jobs[each].networks_alone() for each in done},
                    "rows": rows, "machine": describe_machine("cpu", args.threads),
                }  # fmt: skip
                write_result(args.out, content, command(__file__, argv))


if __name__ == "__main__":
    main()
