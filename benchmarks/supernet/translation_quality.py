"""Quality of subnets on a real corpus: inherited, further trained and standalone, for each kind of experts.

``python -m benchmarks translation_quality BIN --work DIR`` where BIN is a folder of ``fairseq-preprocess`` with a
joined dictionary of sentencepiece subwords (Multi30k en-de, lower-cased, 6,000 subwords in the committed result). Each
step writes one file below DIR and is skipped when that exists, so an interrupted run goes on. Supernets are trained by
the sandwich rule, three passes an update. The smallest and the largest network are trained from scratch for as many
updates, the largest also for as many passes. Batches and schedule are the same. BLEU is sacrebleu on the detokenised
test set. ``--kinds`` and ``--parts`` run some of it; rows of an earlier result that are not measured again stay.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import merged
from benchmarks.parts.trained.translation_runs import USER_DIR, TranslationRuns
from nas_core.files.reading import read_json
from nas_core.latency.machine import describe_machine
from nas_core.models import params_m
from nas_core.space import Architecture, get_space

KINDS = ("none", "layer", "neuron")
PARTS = ("search", "further", "standalone", "passes")
SANDWICH_PASSES = 3
"""Subnets that one update of the sandwich rule trains: the largest, the smallest and a random one."""
EQUAL_PASSES = "standalone, equal passes"
RESULT = Path(__file__).parents[1] / "results" / "translation_quality.json"


@dataclass(frozen=True)
class Job(TranslationRuns):
    """Where things are and how long trainings last."""

    space: str
    """Search space; its largest network is compared with a standalone one."""
    updates: int
    """Updates of every supernet and every standalone network."""
    further: int
    """Updates when an inherited subnet is trained further."""
    sentences: int
    """Validation sentences a search evaluates an architecture on."""

    def train(self, name: str, updates: int, lr: float, *arguments: object) -> Path:
        """A training with the shared schedule; the checkpoint."""
        return self.fairseq_train(
            name, "--user-dir", USER_DIR, "--criterion", "fused_label_smoothed_cross_entropy", "--lr", lr,
            "--dropout", 0.1, "--lr-scheduler", "polynomial_decay", "--warmup-updates", min(400, updates // 3),
            "--total-num-update", updates, "--max-update", updates, "--seed", 1, "--search-space", self.space,
            *arguments,
        )  # fmt: skip


def latency_model(job: Job) -> Path:
    data, model = job.work / "latency.jsonl", job.work / "latency.json"
    if not model.exists():
        job.run(
            "latency-collect", "nas-ext", "latency", "collect", "--space", job.space, "--data", job.bin, "--out", data,
            "--samples", 120, "--workload", "source_length=16", "--workload", "target_length=16",
            "--workload", "beam=4", "--threads", 1,
            "--clock", "cpu",
        )  # fmt: skip
        job.run("latency-fit", "nas-ext", "latency", "fit", "--data", data, "--out", model)
    return model


def latency_limits(model: Path, space: str) -> list[float]:
    """Tight, middle, loose: a tenth, a third and two thirds of the way from the smallest to the largest network."""
    from nas_core.latency import load_latency_model

    predictor = load_latency_model(model, "genes", get_space(space))
    low, high = predictor.predict([get_space(space).smallest(), get_space(space).largest()])
    return [round(float(low + share * (high - low)), 2) for share in (0.1, 1 / 3, 2 / 3)]


def searched(job: Job, kind: str, checkpoint: Path) -> dict[str, Any]:
    """Tightness -> the finalist of each latency limit."""
    model = latency_model(job)
    limits = latency_limits(model, job.space)
    folder = job.work / f"search-{kind}"
    if not (folder / "done").exists():
        flags = [word for limit in limits for word in ("--limit", f"latency_ms={limit}")]
        job.run(
            f"search-{kind}", "nas-ext", "search", "--checkpoint", checkpoint, "--data", job.bin,
            "--latency-model", model, *flags, "--out", folder, "--valid-sentences", job.sentences,
            "--set", "iterations=10", "--set", "parents=8", "--set", "mutations=16", "--set", "crossovers=16",
        )  # fmt: skip
        (folder / "done").touch()
    chosen = read_json(folder / "finalists.json")["finalists"]
    named = {}
    for name, limit in zip(("tight", "middle", "loose"), limits, strict=True):
        within = [entry for entry in chosen if any(str(limit) in search for search in entry["best_of"])]
        above = [entry for entry in chosen if any(str(limit) in search for search in entry["over_limit"])]
        best = (within or above)[0]
        named[name] = {**best, "limit_ms": limit, "file": folder / best["file"]}
    return named


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
            files.update(searched(job, kind, checkpoint))
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
    seconds = {path.stem: read_json(path) for path in sorted((job.work / "seconds").glob("*.json"))}
    return {
        "space": job.space, "updates": job.updates, "further_updates": job.further, "rows": rows,
        "commands": seconds, "machine": describe_machine("cpu", job.threads),
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
    job = Job(args.bin, args.work, args.threads, args.space, args.updates, args.further, args.sentences)
    content = report(job, args.kinds, args.parts)
    before = read_json(args.out) if args.out.exists() else {}
    content["rows"] = merged(args.out, content["rows"], ("experts", "subnet"))
    if "latency-collect" not in content["commands"]:
        content |= {key: before[key] for key in ("machine", "note") if key in before}  # of the measured latencies
    content["commands"] = before.get("commands", {}) | content["commands"]
    write_result(args.out, content, command(__file__, argv), adds=True)
    print(json.dumps(content["rows"], indent=1))


if __name__ == "__main__":
    main()
