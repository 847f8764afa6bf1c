"""Linear attention in a trained language model: perplexity against decoding cost.

``python -m benchmarks attention_placement TEXT --work DIR``: TEXT is a plain text file, may be gzipped (committed
result: Tiny Shakespeare). fairseq's ``transformer_lm`` is trained on characters and converted to a supernet with
softmax or linear attention in each layer. Perplexity is measured with linear attention in each single layer. The
supernet is then trained with the model as teacher, and searched under limits on the cache at a long context.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from benchmarks.attention.decoding_length import cache_bytes
from benchmarks.parts.record import command, write_result
from benchmarks.parts.runs import USER_DIR, TranslationRuns, schedule
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.latency.machine import describe_machine
from nas_core.models.language import LanguageConfig, LanguageNet
from nas_core.search import EvolutionConfig, HATEvolution, search
from nas_core.search.constraints import Constraint
from nas_core.space import Architecture, SearchSpace, load_space

RESULT = Path(__file__).parents[1] / "results" / "attention_placement.json"
SPACE_MARK = "\N{LOWER ONE EIGHTH BLOCK}"
"""Replacement of a space, since spaces separate characters."""
MB = 2**20
LINEAR = "linear"
WARM_UP, STEPS = 8, 48


@dataclass(frozen=True)
class Job(TranslationRuns):
    text: Path
    layers: int
    width: int
    length: int
    """Sequence length in tokens."""
    context: int
    """Longest context in tokens, at which decoding is measured."""
    updates: int
    """Number of updates of the trained model."""
    tuning: int
    """Number of updates of the supernet."""
    calibration_batches: int
    fit: int
    sequences: int
    """Number of validation sequences."""

    def corpus(self) -> Path:
        """Preprocess the text; the last tenth is the validation split."""
        if not (self.bin / "dict.txt").exists():
            content = self.text.read_bytes()
            plain = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
            lines = [line for line in plain.decode("utf-8").splitlines() if line]
            cut = len(lines) * 9 // 10
            names = []
            for split, part in (("train", lines[:cut]), ("valid", lines[cut:])):
                file = self.work / split
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("".join(" ".join(line.replace(" ", SPACE_MARK)) + "\n" for line in part), "utf-8")
                names.append(f"--{split}pref={file}")
            self.run(
                "preprocess", "fairseq-preprocess", "--only-source", *names, "--destdir", self.bin, "--workers", 1,
            )  # fmt: skip
        return self.bin

    def train(self, name: str, updates: int, *arguments: object) -> Path:
        self.corpus()
        return self.fairseq_train(
            name, "--tokens-per-sample", self.length, "--max-tokens", max(4096, self.length), "--clip-norm", 1.0,
            *schedule(updates), "--disable-validation", "--seed", 1, *arguments,
        )  # fmt: skip

    def trained_checkpoint(self) -> Path:
        return self.train(
            "trained", self.updates, "--task", "language_modeling", "--arch", "transformer_lm", "--decoder-layers",
            self.layers, "--decoder-embed-dim", self.width, "--decoder-input-dim", self.width, "--decoder-output-dim",
            self.width, "--decoder-ffn-embed-dim", 4 * self.width, "--decoder-attention-heads", 4,
            "--decoder-normalize-before",
            "--share-decoder-input-output-embed", "--dropout", 0.0, "--max-target-positions", self.context,
            "--lr", 3e-3,
        )  # fmt: skip

    def converted_supernet(self, fit: int) -> Path:
        """Return the converted supernet, with linear attention fitted by ``fit`` updates."""
        path = self.work / f"converted-{fit}.pt"
        self.run(
            f"converted-{fit}", "nas-ext", "elastic", "--checkpoint", self.trained_checkpoint(), "--data", self.bin,
            "--out", path, "--space", "attention", "--attention", f"softmax,{LINEAR}", "--importance", "none",
            "--calibration-batches", self.calibration_batches, "--fit", fit, "--space-out", path.with_suffix(".yml"),
        )  # fmt: skip
        return path

    def tuned_supernet(self) -> Path:
        """Return the trained supernet."""
        return self.train(
            "tuned", self.tuning, "--user-dir", USER_DIR, "--task", "supernet_language_modeling",
            "--arch", "mformer_language_base", "--finetune-from-model", self.converted_supernet(self.fit), "--sampling",
            "sandwich", "--criterion", "distilled_label_smoothed_cross_entropy", "--teacher", self.trained_checkpoint(),
            "--dropout", 0.0, "--lr", 5e-4,
        )  # fmt: skip

    @cached_property
    def space(self) -> SearchSpace:
        return load_space(self.converted_supernet(self.fit).with_suffix(".yml"))

    def with_linear(self, linear: set[int]) -> Architecture:
        """Return the network with linear attention in the given layers."""
        kinds = tuple(LINEAR if layer in linear else "softmax" for layer in range(self.layers))
        return Architecture({**self.space.largest(), "attention": kinds})


class Evaluator:
    """Bits per character and perplexity of a checkpoint's architectures, stored in a file."""

    def __init__(self, job: Job, name: str, checkpoint: Path) -> None:
        self.job, self.checkpoint = job, checkpoint
        self.file = job.work / f"evaluated-{name}.jsonl"
        self.metrics = {row["key"]: row for row in (read_jsonl(self.file) if self.file.exists() else [])}

    @cached_property
    def supernet(self) -> Any:
        from nas_core.supernet import open_supernet

        return open_supernet(self.checkpoint, data=str(self.job.bin), valid_samples=self.job.sequences)

    def __call__(self, architecture: Architecture) -> dict[str, float]:
        if architecture.key not in self.metrics:
            metrics = self.supernet.evaluate(architecture)
            self.metrics[architecture.key] = {"key": architecture.key, **metrics}
            append_jsonl(self.file, self.metrics[architecture.key])
        return {name: self.metrics[architecture.key][name] for name in ("loss", "ppl")}


def single_layers(job: Job, evaluators: Mapping[str, Evaluator]) -> list[dict[str, Any]]:
    """Return perplexity with linear attention in one layer."""
    rows = []
    for name, evaluate in evaluators.items():
        base = evaluate(job.with_linear(set()))["ppl"]
        for layer in range(job.layers):
            row = {
                "after": name,
                "layer": layer + 1,
                "ppl": evaluate(job.with_linear({layer}))["ppl"],
                "softmax_ppl": base,
            }
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def subnet_cache_bytes(net: LanguageNet, architecture: Architecture, position: int) -> int:
    """Return the bytes of attention states after ``position`` tokens."""
    with torch.no_grad():
        _, cache = net.read(net.select(architecture), torch.full((1, position), 5))
    return cache_bytes(cache)


def token_ms(net: LanguageNet, architectures: Sequence[Architecture], position: int) -> list[float]:
    """Return the median time (ms) of one token for each architecture, measured alternately."""
    tokens = torch.full((1,), 5)
    with torch.no_grad():
        subnets = [net.select(architecture) for architecture in architectures]
        caches = [net.read(subnet, torch.full((1, position), 5))[1] for subnet in subnets]
        times: list[list[float]] = [[] for _ in subnets]
        for step in range(WARM_UP + STEPS):
            for index, subnet in enumerate(subnets):
                cache = caches[index].copy()
                start = time.perf_counter()
                net.step(subnet, tokens, cache)
                if step >= WARM_UP:
                    times[index].append((time.perf_counter() - start) * 1e3)
    return [statistics.median(times_of_subnet) for times_of_subnet in times]


def random_network(space: SearchSpace, vocab: int) -> LanguageNet:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LanguageNet(space, vocab, LanguageConfig(norm_first=True)).eval()


def costs(job: Job) -> list[dict[str, Any]]:
    """Return cache and time of a token near the start and at the end, by number of linear layers."""
    file = job.work / "costs.jsonl"
    if not file.exists():
        net = random_network(job.space, 64)
        networks = [job.with_linear(set(range(count))) for count in range(job.layers + 1)]
        near, far = min(256, job.context // 2), job.context - 1
        times_ms = {position: token_ms(net, networks, position) for position in (near, far)}
        for count, network in enumerate(networks):
            row = {"linear_layers": count, "near": near, "far": far, "near_ms": times_ms[near][count]}
            row |= {"far_ms": times_ms[far][count], "cache_mb": subnet_cache_bytes(net, network, far) / MB}
            append_jsonl(file, row)
    return read_jsonl(file)


def search_placements(job: Job, evaluate: Evaluator, cost_rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the best network within the cache of each number of linear layers, and baselines."""
    space, cache_by_count = job.space, {row["linear_layers"]: row["cache_mb"] for row in cost_rows}

    def count(architecture: Architecture) -> int:
        return list(architecture["attention"]).count(LINEAR)  # type: ignore[arg-type]

    def cache(architecture: Architecture) -> float:
        return cache_by_count[count(architecture)]

    config = EvolutionConfig(iterations=3, population=8, parents=3)
    limits = {number: Constraint.per_architecture("cache_mb", cache_by_count[number] * 1.001, space, cache)
              for number in range(1, job.layers)}  # fmt: skip
    strategies = {f"{number} linear": HATEvolution(space, [limit], config) for number, limit in limits.items()}
    result = search(
        strategies, lambda network: {**evaluate(network), "cache_mb": cache(network)}, job.work / "search",
        objectives=["loss", "cache_mb"], progress=False,
    )  # fmt: skip
    rows = []
    for number, (name, best) in zip(limits, result.best_by_search.items(), strict=True):
        row: dict[str, Any] = {"linear_layers": number, "cache_mb": cache_by_count[number], "ppl": best.metrics["ppl"]}
        row |= {"search": name, "attention": list(best.architecture["attention"])}  # type: ignore[arg-type]
        baselines = {
            "linear in every second layer": set(range(1, job.layers, 2)),
            f"linear in the first {number}": set(range(number)),
            f"linear in the last {number}": set(range(job.layers - number, job.layers)),
        }
        row["given"] = {
            baseline: evaluate(job.with_linear(layers))["ppl"]
            for baseline, layers in baselines.items()
            if len(layers) == number
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def report(job: Job) -> dict[str, Any]:
    stages = {
        "copied": job.converted_supernet(0),
        "fitted": job.converted_supernet(job.fit),
        "trained": job.tuned_supernet(),
    }
    evaluators = {name: Evaluator(job, name, path) for name, path in stages.items()}
    layer_rows = single_layers(job, evaluators)
    all_linear = job.with_linear(set(range(job.layers)))
    cost_rows = costs(job)
    return {
        "layers": job.layers, "width": job.width, "length": job.length, "context": job.context, "updates": job.updates,
        "tuning": job.tuning, "fit": job.fit, "single_layers": layer_rows,
        "all_linear_ppl": {name: evaluate(all_linear)["ppl"] for name, evaluate in evaluators.items()},
        "decoding": cost_rows,
        "placements": search_placements(job, evaluators["trained"], cost_rows),
        "machine": describe_machine("cpu", job.threads),
    }  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, nargs="?")
    parser.add_argument("--work", type=Path, default=Path("runs/attention_placement"))
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--updates", type=int, default=1200)
    parser.add_argument("--tuning", type=int, default=60)
    parser.add_argument("--calibration-batches", type=int, default=10)
    parser.add_argument("--fit", type=int, default=150)
    parser.add_argument("--sequences", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if args.text is None:
        print("skipped: needs a text, see python -m benchmarks attention_placement --help")
        return
    job = Job(
        args.work, args.threads, args.work / "bin", args.text, args.layers, args.width, args.length, args.context,
        args.updates, args.tuning, args.calibration_batches, args.fit, args.sequences,
    )  # fmt: skip
    write_result(args.out, report(job), command(__file__, argv))


if __name__ == "__main__":
    main()
