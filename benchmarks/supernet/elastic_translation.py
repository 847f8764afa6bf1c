"""A trained translation model as a supernet: inherited BLEU by updates, with and without teacher and sorting.

``python -m benchmarks elastic_translation BIN --work DIR`` where BIN is a folder of ``fairseq-preprocess`` with a
joined dictionary of sentencepiece subwords (Multi30k en-de, lower-cased, 6,000 subwords in the committed result).
fairseq's plain ``transformer`` is trained, taken over, and trained as a supernet by the sandwich rule. Its networks
have fewer layers, heads and hidden units, and all channels. One of them, found under half of the trained one's latency,
stands for all fast ones: every supernet is asked for its BLEU with inherited weights, and it is trained on alone from
an early supernet, so that both together take as many updates. So is, without any supernet's training, the network with
one decoder layer, which the order of layers gives. Seeds are those of the supernets; the trained network is
one. Each step writes one file below DIR and is skipped when that exists, so an interrupted run goes on.

Latencies are also measured relative to the trained network, whose passes alternate with those of the other network.
``--latency-only`` measures just that, of the networks that need no search, and adds it to the result.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.record import command, write_result
from benchmarks.parts.trained.translation_runs import USER_DIR, TranslationRuns
from benchmarks.parts.trained.variants import ABLATIONS, FULL, Variant, slug
from nas_core.files.reading import read_json
from nas_core.latency import TimingConfig, measure
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import prepared
from nas_core.models import params_m
from nas_core.models.translation.workload import TranslationWorkload, TranslationWorkloadConfig
from nas_core.space import Architecture, SearchSpace, get_space, load_space

RESULT = Path(__file__).parents[1] / "results" / "elastic_translation.json"
TRAINED_UPDATES, SHARES = 1608, (0.5, 0.65, 0.8)
SHALLOW = "one decoder layer"
"""The network with one decoder layer and all else as it was: what needs no search, only the order of layers."""


WORKLOAD = {"source_vocab": 6000, "target_vocab": 6000, "source_length": 16, "target_length": 16, "beam": 4}
CRITERIA = tuple(Variant(f"by {name}", importance=name) for name in ("weight", "gradient"))
EXPERTS = (Variant("neuron-wise experts", mos="neuron"),)


@dataclass(frozen=True)
class Job(TranslationRuns):
    """The steps of the benchmark."""

    lr: float
    """Highest learning rate of supernets that begin from trained weights."""

    def trained(self) -> Path:
        """fairseq's plain transformer; the checkpoint."""
        last = self.fairseq_train(
            "trained-1", "--arch", "transformer", "--encoder-embed-dim", 128, "--decoder-embed-dim", 128,
            "--encoder-ffn-embed-dim", 512, "--decoder-ffn-embed-dim", 512, "--encoder-layers", 3, "--decoder-layers",
            3, "--encoder-attention-heads", 4, "--decoder-attention-heads", 4, "--criterion",
            "label_smoothed_cross_entropy", "--lr", 3e-3, "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 400,
            "--dropout", 0.1,
            "--max-update", TRAINED_UPDATES, "--seed", 1,
        )  # fmt: skip
        return last.with_name("checkpoint_best.pt")

    def taken(self, variant: Variant) -> Path:
        """The supernet before any update."""
        name = f"taken-{variant.importance}-{variant.mos}"
        path = self.work / f"{name}.pt"
        if not path.exists():
            self.run(
                name, "nas-ext", "elastic", "--checkpoint", self.trained(), "--data", self.bin, "--out", path,
                "--space", self.space_file(), *variant.calibration, "--mos", variant.mos,
            )  # fmt: skip
        return path

    def supernet(self, variant: Variant, updates: int, seed: int) -> Path:
        """The supernet after so many updates."""
        if not updates:
            return self.taken(variant)
        name = f"{slug(variant.name)}-{updates}-{seed}"
        criterion: tuple[object, ...] = ("--criterion", "fused_label_smoothed_cross_entropy")
        if variant.teacher:
            criterion = self.distilled()
        begin: tuple[object, ...] = ("--finetune-from-model", self.taken(variant), "--lr", self.lr, "--dropout", 0.0)
        if not variant.taken_over:
            begin = ("--search-space", self.space_file(), "--lr", 3e-3, "--dropout", 0.1)
        return self.fairseq_train(
            name, "--user-dir", USER_DIR, "--task", "supernet_translation", "--arch", "mos_transformer", "--mos",
            variant.mos, "--sampling", "sandwich", *criterion, *begin, *_schedule(updates), "--seed", seed,
        )  # fmt: skip

    def alone(self, subnet: Path, name: str, updates: int, seed: int) -> Path:
        """A network that was taken out, after so many updates of its own with the trained one as teacher."""
        return self.fairseq_train(
            name, "--user-dir", USER_DIR, "--arch", "hat_transformer", "--finetune-from-model", subnet,
            *self.distilled(), "--lr", self.lr, "--dropout", 0.0, *_schedule(updates), "--seed", seed,
        )  # fmt: skip

    def distilled(self) -> tuple[object, ...]:
        return ("--criterion", "distilled_label_smoothed_cross_entropy", "--teacher", self.trained(),
                "--distill-weight", 0.7)  # fmt: skip

    def space_file(self) -> Path:
        """The space around the trained network, with all of its channels in every network."""
        path = self.work / "space.yml"
        if not path.exists():
            (self.work / "space.pt").unlink(missing_ok=True)  # of a run that was stopped here
            self.run(
                "space", "nas-ext", "elastic", "--checkpoint", self.trained(), "--data", self.bin, "--out",
                self.work / "space.pt", "--space-out", path, "--space", "auto:layers,ffn_dim,self_heads,cross_heads",
            )  # fmt: skip
        return path


def _schedule(updates: int) -> tuple[object, ...]:
    """A learning rate that falls to nothing after so many updates."""
    return ("--lr-scheduler", "polynomial_decay", "--warmup-updates", max(1, updates // 10),
            "--total-num-update", updates, "--max-update", updates)  # fmt: skip


def latency_model(job: Job) -> Path:
    data, model = job.work / "latency.jsonl", job.work / "latency.json"
    if not model.exists():
        job.run(
            "latency-collect", "nas-ext", "latency", "collect", "--space", job.space_file(), "--data", job.bin, "--out",
            data, "--samples", 120, "--workload", "source_length=16", "--workload", "target_length=16",
            "--workload", "beam=4", "--threads", 1,
            "--clock", "cpu",
        )  # fmt: skip
        job.run("latency-fit", "nas-ext", "latency", "fit", "--data", data, "--out", model)
    return model


def predicted_ms(model: Path, space: SearchSpace, architectures: list[Architecture]) -> list[float]:
    from nas_core.latency import load_latency_model

    return [float(each) for each in load_latency_model(model, "genes", space).predict(architectures)]


def relative_latency(
    space: SearchSpace, trained: Architecture, networks: Mapping[str, Architecture], **workload: int
) -> dict[str, float]:
    """Measure latencies as shares of the trained network's, on the CPU clock, with passes of both in turn.

    Args:
        workload: fields of the :class:`TranslationWorkloadConfig`.
    """
    config = TranslationWorkloadConfig(**workload)
    timing = TimingConfig(warmup=3, repeats=100, clock="cpu")
    reference = prepared(TranslationWorkload(space, trained, config), timing)

    def relative(architecture: Architecture) -> float:
        return measure(TranslationWorkload(space, architecture, config), reference, timing).relative

    itself = relative(trained)  # below 1 on a busy machine: a median is divided by means of two passes
    return {name: round(relative(architecture) / itself, 3) for name, architecture in networks.items()}


def front(job: Job, updates: int, sentences: int) -> dict[str, dict[str, Any]]:
    """The networks found under each share of the trained one's latency, with ``largest`` and ``smallest``."""
    space = load_space(job.space_file())
    found: dict[str, dict[str, Any]] = {}
    asked = {"largest": space.largest(), "smallest": space.smallest(), SHALLOW: shallow(space.largest())}
    for name, architecture in asked.items():
        file = job.work / f"{slug(name)}.json"
        architecture.save(file, space=space.name)
        found[name] = {"file": file}
    model, folder = latency_model(job), job.work / "search"
    (whole,) = predicted_ms(model, space, [space.largest()])
    allowed = [round(share * whole, 2) for share in SHARES]
    if not (folder / "done").exists():
        flags = [word for limit in allowed for word in ("--limit", f"latency_ms={limit}")]
        job.run(
            "search", "nas-ext", "search", "--checkpoint", job.supernet(FULL, updates, 1), "--data", job.bin,
            "--latency-model", model, *flags, "--out", folder, "--valid-sentences", sentences, "--set", "iterations=6",
            "--set", "parents=8", "--set", "mutations=16", "--set", "crossovers=16",
        )  # fmt: skip
        (folder / "done").touch()
    chosen = read_json(folder / "finalists.json")["finalists"]
    for share, limit in zip(SHARES, allowed, strict=True):
        within = [entry for entry in chosen if any(str(limit) in search for search in entry["best_of"])]
        above = [entry for entry in chosen if any(str(limit) in search for search in entry["over_limit"])]
        best = (within or above)[0]
        found[f"{share:.0%} of its latency"] = {**best, "limit_ms": limit, "file": folder / best["file"]}
    return found


def shallow(trained: Architecture, layers: int = 1) -> Architecture:
    """Return ``trained`` with ``layers`` decoder layers and all its other sizes."""
    genes: dict[str, Any] = {**trained, "decoder.layers": layers}
    per_layer = [name for name, value in genes.items() if name.startswith("decoder.") and isinstance(value, tuple)]
    return Architecture(genes | {name: genes[name][:layers] for name in per_layer})


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


def alone(job: Job, updates: int, more: int, seed: int, subnet: str, entry: dict[str, Any]) -> dict[str, Any]:
    """BLEU of one network that was taken out of an early supernet and trained on alone."""
    name = f"alone-{updates}-{more}-{seed}-{slug(subnet)}"
    early = f"{slug(FULL.name)}-{updates}-{seed}-{slug(subnet)}"
    static = job.subnet(early, job.supernet(FULL, updates, seed), entry["file"])
    found = {"updates": updates, "alone": more, "seed": seed, "subnet": subnet}
    found["bleu"] = job.bleu(name, job.alone(static, name, more, seed))
    print(json.dumps(found), flush=True)
    return found


def report(job: Job, args: argparse.Namespace) -> dict[str, Any]:
    main_updates: int = args.updates
    seeds = range(1, args.seeds + 1)

    def far(variant: Variant) -> bool:
        """Say whether more is asked of the supernet than of the others: it is the recommended one, or from nothing."""
        return variant is FULL or not variant.taken_over

    def seeds_of(variant: Variant) -> range:
        """Give as many as are asked for where one thing was left out, and elsewhere one."""
        one_less = variant.taken_over and (variant.teacher or variant.importance != "none")
        return seeds if variant is FULL else range(1, 1 + (args.other_seeds if one_less else 1))

    trained = {"bleu": job.bleu("trained-1", job.trained())}
    subnets = front(job, args.early, args.sentences)
    main = [name for name in subnets if name in ("largest", "smallest") or name.startswith("50%")]
    (half,) = (name for name in main if name.startswith("50%"))
    further = [alone(job, args.early, main_updates - args.early, 1, half, subnets[half])]
    alone_seeds = range(1, 1 + args.other_seeds)
    further += [alone(job, 0, main_updates, seed, SHALLOW, subnets[SHALLOW]) for seed in alone_seeds]
    rows = [row(job, FULL, main_updates, 1, name, entry) for name, entry in subnets.items() if name not in main]
    for variant in ABLATIONS:
        for seed in seeds_of(variant):
            rows += [row(job, variant, main_updates, seed, name, subnets[name]) for name in main]
    for variant in ABLATIONS:
        asked = args.steps if far(variant) else args.other_steps
        begun = [each for each in asked if each != main_updates and (each or variant.taken_over)]
        rows += [row(job, variant, updates, 1, name, subnets[name]) for updates in begun for name in main]
    for variant in () if args.no_more else (*CRITERIA, *EXPERTS):
        rows += [row(job, variant, main_updates, 1, name, subnets[name]) for name in main]
    space = load_space(job.space_file())
    networks = [Architecture.load(entry["file"]) for entry in subnets.values()]
    predicted = predicted_ms(latency_model(job), space, networks)
    latency = {name: round(each, 2) for name, each in zip(subnets, predicted, strict=True)}
    seconds = {path.stem: read_json(path) for path in sorted((job.work / "seconds").glob("*.json"))}
    return {
        "trained_updates": TRAINED_UPDATES, "updates": main_updates, "lr": job.lr, "trained": trained, "rows": rows,
        "alone": further, "predicted_ms": latency,
        "relative_latency": relative_latency(
            space, space.largest(), dict(zip(subnets, networks, strict=True)), **WORKLOAD
        ),
        "commands": seconds, "machine": describe_machine("cpu", job.threads),
    }  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, nargs="?")
    parser.add_argument("--work", type=Path, default=Path("runs/elastic_translation"))
    parser.add_argument(
        "--steps",
        type=int,
        nargs="*",
        default=[0, 100, 300, 700],
        help="updates of the recommended supernet and of the one from random weights, seed 1",
    )
    parser.add_argument("--other-steps", type=int, nargs="*", default=[0, 100], help="the same of the others")
    parser.add_argument("--updates", type=int, default=300, help="updates of the main rows, all seeds")
    parser.add_argument("--early", type=int, default=100, help="updates of the supernet that is searched")
    parser.add_argument("--seeds", type=int, default=3, help="of the recommended supernet")
    parser.add_argument("--other-seeds", type=int, default=2, help="of what it is compared with")
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-more", action="store_true", help="leave out other criteria and experts")
    parser.add_argument("--latency-only", action="store_true", help="add relative latencies to the result")
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if args.latency_only:
        space = get_space("hat_small")
        trained = Architecture({**space.largest(), "decoder.arbitrary_cross": (-1, -1, -1)})
        measured = relative_latency(space, trained, {SHALLOW: shallow(trained)}, **WORKLOAD)
        write_result(
            args.out, {**read_json(args.out), "relative_latency": measured}, command(__file__, argv), adds=True
        )
        print(json.dumps(measured))
        return
    if args.bin is None:
        print("skipped: needs a preprocessed corpus, see python -m benchmarks elastic_translation --help")
        return
    job = Job(args.bin, args.work, args.threads, args.lr)
    write_result(args.out, report(job, args), command(__file__, argv))


if __name__ == "__main__":
    main()
