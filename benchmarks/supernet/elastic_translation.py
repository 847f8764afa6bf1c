"""A trained translation model as a supernet: inherited BLEU by updates, with and without teacher and sorting.

``python -m benchmarks elastic_translation BIN --work DIR`` where BIN is a folder of ``fairseq-preprocess`` with a
joined dictionary of sentencepiece subwords (Multi30k en-de, lower-cased, 6,000 subwords in the committed result).
fairseq's plain ``transformer`` is trained, taken over, and trained as a supernet by the sandwich rule. One network,
found under half of the trained one's latency, stands for all fast ones: every supernet is asked for its BLEU with
inherited weights. Each step writes one file below DIR and is skipped when that exists, so an interrupted run goes on.
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
from nas_core.files import read_json
from nas_core.latency.machine import describe_machine
from nas_core.models import params_m
from nas_core.space import Architecture, SearchSpace, load_space

RESULT = Path(__file__).parents[1] / "results" / "elastic_translation.json"
TRAINED_UPDATES, SHARES = 1608, (0.35, 0.5, 0.7)


CRITERIA = tuple(Variant(f"by {name}", importance=name) for name in ("weight", "gradient"))
EXPERTS = (Variant("neuron-wise experts", mos="neuron"),)


@dataclass(frozen=True)
class Job(TranslationRuns):
    """The steps of the benchmark."""

    lr: float
    """Highest learning rate of supernets that begin from trained weights."""

    def trained(self, seed: int) -> Path:
        """fairseq's plain transformer; the checkpoint."""
        last = self.fairseq_train(
            f"trained-{seed}", "--arch", "transformer", "--encoder-embed-dim", 128, "--decoder-embed-dim", 128,
            "--encoder-ffn-embed-dim", 512, "--decoder-ffn-embed-dim", 512, "--encoder-layers", 3, "--decoder-layers",
            3, "--encoder-attention-heads", 4, "--decoder-attention-heads", 4, "--criterion",
            "label_smoothed_cross_entropy", "--lr", 3e-3, "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 400,
            "--max-update", TRAINED_UPDATES, "--seed", seed,
        )  # fmt: skip
        return last.with_name("checkpoint_best.pt")

    def taken(self, variant: Variant, seed: int) -> Path:
        """The supernet before any update; of one from random weights, its space."""
        name = f"taken-{variant.importance}-{variant.mos}-{seed}"
        path = self.work / f"{name}.pt"
        if not path.exists():
            self.run(
                name, "nas-ext", "elastic", "--checkpoint", self.trained(seed), "--data", self.bin, "--out", path,
                *variant.calibration, "--mos", variant.mos, "--space-out", self.work / f"{name}.yml",
            )  # fmt: skip
        return path

    def supernet(self, variant: Variant, updates: int, seed: int) -> Path:
        """The supernet after so many updates."""
        if not updates:
            return self.taken(variant, seed)
        name = f"{slug(variant.name)}-{updates}-{seed}"
        criterion: tuple[object, ...] = ("--criterion", "fused_label_smoothed_cross_entropy")
        if variant.teacher:
            criterion = ("--criterion", "distilled_label_smoothed_cross_entropy", "--teacher", self.trained(seed))
        begin: tuple[object, ...] = ("--finetune-from-model", self.taken(variant, seed), "--lr", self.lr)
        if not variant.taken_over:
            begin = ("--search-space", self.space_file(), "--lr", 3e-3)
        return self.fairseq_train(
            name, "--user-dir", USER_DIR, "--task", "supernet_translation", "--arch", "mos_transformer", "--mos",
            variant.mos, "--sampling", "sandwich", *criterion, *begin, "--lr-scheduler", "polynomial_decay",
            "--warmup-updates", min(50, updates // 4), "--total-num-update", updates, "--max-update", updates, "--seed",
            seed,
        )  # fmt: skip

    def space_file(self) -> Path:
        """The space of the taken-over supernets, by which one from random weights is built."""
        return self.taken(FULL, 1).with_suffix(".yml")


def latency_model(job: Job) -> Path:
    data, model = job.work / "latency.jsonl", job.work / "latency.json"
    if not model.exists():
        job.run(
            "latency-collect", "nas-ext", "latency", "collect", "--space", job.space_file(), "--data", job.bin, "--out",
            data, "--samples", 120, "--source-length", 16, "--target-length", 16, "--beam", 4, "--threads", 1,
            "--clock", "cpu",
        )  # fmt: skip
        job.run("latency-fit", "nas-ext", "latency", "fit", "--data", data, "--out", model)
    return model


def limits(model: Path, space: SearchSpace) -> list[float]:
    """Shares of the trained network's latency, in ms."""
    from nas_core.latency import load_latency_model

    (whole,) = load_latency_model(model, "genes", space).predict([space.largest()])
    return [round(float(share * whole), 2) for share in SHARES]


def front(job: Job, updates: int, sentences: int) -> dict[str, dict[str, Any]]:
    """The networks found under each share of the trained one's latency, with ``largest`` and ``smallest``."""
    space = load_space(job.space_file())
    found: dict[str, dict[str, Any]] = {}
    for name, architecture in (("largest", space.largest()), ("smallest", space.smallest())):
        file = job.work / f"{name}.json"
        architecture.save(file, space=space.name)
        found[name] = {"file": file}
    model, folder = latency_model(job), job.work / "search"
    allowed = limits(model, space)
    if not (folder / "done").exists():
        flags = [word for limit in allowed for word in ("--limit-ms", limit)]
        job.run(
            "search", "nas-ext", "search", "--checkpoint", job.supernet(FULL, updates, 1), "--data", job.bin,
            "--latency-model", model, *flags, "--out", folder, "--valid-sentences", sentences, "--iterations", 10,
            "--parents", 8, "--mutations", 16, "--crossovers", 16,
        )  # fmt: skip
        (folder / "done").touch()
    chosen = read_json(folder / "finalists.json")["finalists"]
    for share, limit in zip(SHARES, allowed, strict=True):
        within = [entry for entry in chosen if any(str(limit) in search for search in entry["best_of"])]
        above = [entry for entry in chosen if any(str(limit) in search for search in entry["over_limit"])]
        best = (within or above)[0]
        found[f"{share:.0%} of its latency"] = {**best, "limit_ms": limit, "file": folder / best["file"]}
    return found


def row(job: Job, variant: Variant, updates: int, seed: int, subnet: str, entry: dict[str, Any]) -> dict[str, Any]:
    """BLEU of one network with weights inherited from one supernet."""
    name = f"{slug(variant.name)}-{updates}-{seed}-{slug(subnet)}"
    architecture = Architecture.load(entry["file"])
    static = job.subnet(name, job.supernet(variant, updates, seed), entry["file"])
    found = {"supernet": variant.name, "updates": updates, "seed": seed, "subnet": subnet}
    found |= {"params_m": round(params_m(architecture), 3), "bleu": job.bleu(name, static)}
    if "limit_ms" in entry:
        found |= {"limit_ms": entry["limit_ms"], "measured_ms": entry["measured"].get("latency_ms")}
    print(json.dumps(found), flush=True)
    return found


def report(job: Job, steps: list[int], main_updates: int, seeds: int, sentences: int, more: bool) -> dict[str, Any]:
    trained = [{"seed": seed, "bleu": job.bleu(f"trained-{seed}", job.trained(seed))} for seed in range(1, seeds + 1)]
    subnets = front(job, main_updates, sentences)
    main = [name for name in subnets if name in ("largest", "smallest") or name.startswith("50%")]
    rows = [row(job, FULL, main_updates, 1, name, entry) for name, entry in subnets.items() if name not in main]
    for seed in range(1, seeds + 1):
        for variant in ABLATIONS:
            rows += [row(job, variant, main_updates, seed, name, subnets[name]) for name in main]
    for variant in ABLATIONS:
        begun = [each for each in steps if each != main_updates and (each or variant.taken_over)]
        rows += [row(job, variant, updates, 1, name, subnets[name]) for updates in begun for name in main]
    for variant in (*CRITERIA, *EXPERTS) if more else ():
        rows += [row(job, variant, main_updates, 1, name, subnets[name]) for name in main]
    seconds = {path.stem: read_json(path) for path in sorted((job.work / "seconds").glob("*.json"))}
    return {
        "trained_updates": TRAINED_UPDATES, "updates": main_updates, "trained": trained, "rows": rows,
        "commands": seconds, "machine": describe_machine("cpu", job.threads),
    }  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, nargs="?")
    parser.add_argument("--work", type=Path, default=Path("runs/elastic_translation"))
    parser.add_argument("--steps", type=int, nargs="*", default=[0, 100, 300, 700], help="updates, seed 1")
    parser.add_argument("--updates", type=int, default=300, help="updates of the main rows, all seeds")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-more", action="store_true", help="leave out other criteria and experts")
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if args.bin is None:
        print("skipped: needs a preprocessed corpus, see python -m benchmarks elastic_translation --help")
        return
    job = Job(args.bin, args.work, args.threads, args.lr)
    content = report(job, args.steps, args.updates, args.seeds, args.sentences, not args.no_more)
    write_result(args.out, content, command(__file__, argv))


if __name__ == "__main__":
    main()
