"""BLEU of subnets on a real corpus, with supernet weights, after further training and from scratch, by kind of experts.

``python -m benchmarks translation_quality BIN --work DIR``: BIN is a folder of ``fairseq-preprocess`` with a joined
dictionary of sentencepiece subwords (committed result: Multi30k en-de, lower-cased, 6,000 subwords). Supernets are
trained by the sandwich rule, three subnets per update; the smallest and largest network from scratch for as many
updates, the largest also for as many passes. BLEU is sacrebleu's on the detokenised test set. ``--kinds`` and
``--parts`` run a part and keep the other rows.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import merge_rows
from benchmarks.parts.runs import SENTENCES, USER_DIR, TranslationRuns, schedule
from nas_core.files.reading import read_json
from nas_core.latency.machine import describe_machine
from nas_core.models import params_m
from nas_core.space import Architecture, get_space

KINDS = ("none", "layer", "neuron")
PARTS = ("search", "further", "standalone", "passes")
SANDWICH_PASSES = 3
"""Number of subnets per update: the largest, the smallest and a random one."""
EQUAL_PASSES = "standalone, equal passes"
RESULT = Path(__file__).parents[1] / "results" / "translation_quality.json"


@dataclass(frozen=True)
class Job(TranslationRuns):
    space: str
    updates: int
    """Number of updates of every supernet and network."""
    further: int
    """Number of further updates of a subnet."""
    sentences: int
    """Number of validation sentences in a search."""

    def train(self, name: str, updates: int, lr: float, *arguments: object) -> Path:
        return self.translation(
            name, "--user-dir", USER_DIR, "--criterion", "fused_label_smoothed_cross_entropy", "--lr", lr,
            "--dropout", 0.1, *schedule(updates, min(400, updates // 3)), "--seed", 1, "--search-space", self.space,
            *arguments,
        )  # fmt: skip

    def search_subnets(self, kind: str, checkpoint: Path) -> dict[str, dict[str, Any]]:
        """Return the best network of each latency limit."""
        model = self.latency_model(self.space, 120, "--data", self.bin, *SENTENCES)
        return self.search(f"search-{kind}", checkpoint, model, latency_limits(model, self.space), self.sentences, 10)


def latency_limits(model: Path, space: str) -> dict[str, float]:
    """Return limits at a tenth, a third and two thirds between the latencies of the smallest and largest network."""
    from nas_core.latency import load_latency_model

    predictor = load_latency_model(model, "genes", get_space(space))
    low, high = predictor.predict([get_space(space).smallest(), get_space(space).largest()])
    shares = {"tight": 0.1, "middle": 1 / 3, "loose": 2 / 3}
    return {name: round(float(low + share * (high - low)), 2) for name, share in shares.items()}


def report(job: Job, kinds: list[str], parts: list[str]) -> dict[str, Any]:
    space = get_space(job.space)
    corners = {"smallest": space.smallest(), "largest": space.largest()}
    rows: list[dict[str, Any]] = []
    for name, architecture in corners.items():
        architecture.save(job.work / f"{name}.json", space=job.space)
    for kind in kinds:
        arguments = ("--task", "supernet_translation", "--arch", "mos_transformer", "--sampling", "sandwich")
        checkpoint = job.train(f"supernet-{kind}", job.updates, 3e-3, *arguments, "--mos", kind)
        files: dict[str, Any] = {name: {"file": job.work / f"{name}.json"} for name in corners}
        if "search" in parts:
            files.update(job.search_subnets(kind, checkpoint))
        for name, entry in files.items():
            architecture = Architecture.load(entry["file"])
            row = {"experts": kind, "subnet": name, "params_m": round(params_m(architecture), 3)}
            if "limit_ms" in entry:
                row |= {"limit_ms": entry["limit_ms"], "predicted_ms": entry["metrics"]["latency_ms"]}
                row |= {"measured_ms": entry["measured"].get("latency_ms"), "genes": entry["genes"]}
            subnet = job.subnet(f"{kind}-{name}", checkpoint, entry["file"])
            row["bleu_inherited"] = job.bleu(f"{kind}-{name}", subnet)
            if "further" in parts and name in ("smallest", "largest", "tight"):
                trained = job.train(
                    f"further-{kind}-{name}", job.further, 5e-4, "--task", "translation", "--arch", "hat_transformer",
                    "--subnet", entry["file"], "--finetune-from-model", subnet,
                )  # fmt: skip
                row["bleu_further"] = job.bleu(f"further-{kind}-{name}", trained)
            rows.append(row)
    lengths = {"standalone": ("standalone", job.updates), "passes": (EQUAL_PASSES, SANDWICH_PASSES * job.updates)}
    for part, (label, updates) in lengths.items():
        for name, architecture in corners.items():
            if part not in parts or (part == "passes" and name != "largest"):
                continue
            run = f"{part}-{name}"
            arguments = ("--task", "translation", "--arch", "hat_transformer", "--subnet", job.work / f"{name}.json")
            bleu = job.bleu(run, job.train(run, updates, 3e-3, *arguments))
            size = round(params_m(architecture), 3)
            rows.append({"experts": label, "subnet": name, "params_m": size, "updates": updates, "bleu": bleu})
    return {
        "space": job.space, "updates": job.updates, "further_updates": job.further, "rows": rows,
        "commands": job.seconds(), "machine": describe_machine("cpu", job.threads),
    }  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, nargs="?")
    parser.add_argument("--work", type=Path, default=Path("runs/translation_quality"))
    parser.add_argument("--space", default="hat_small")
    parser.add_argument("--updates", type=int, default=1400)
    parser.add_argument("--further", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if args.bin is None:
        print("skipped: needs a preprocessed corpus, see python -m benchmarks translation_quality --help")
        return
    job = Job(args.work, args.threads, args.bin, args.space, args.updates, args.further, args.sentences)
    content = report(job, args.kinds, args.parts)
    previous = read_json(args.out) if args.out.exists() else {}
    content["rows"] = merge_rows(args.out, content["rows"], ("experts", "subnet"))
    if "latency-collect" not in content["commands"]:
        content |= {key: previous[key] for key in ("machine", "note") if key in previous}  # of the measured latencies
    content["commands"] = previous.get("commands", {}) | content["commands"]
    write_result(args.out, content, command(__file__, argv), adds=True)
    print(json.dumps(content["rows"], indent=1))


if __name__ == "__main__":
    main()
