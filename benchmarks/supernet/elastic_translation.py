"""A trained translation model converted to a supernet: BLEU of subnets, with and without teacher and sorting.

``python -m benchmarks elastic_translation BIN --work DIR``: BIN is a folder of ``fairseq-preprocess`` with a joined
dictionary of sentencepiece subwords (committed result: Multi30k en-de, lower-cased, 6,000 subwords). fairseq's
``transformer`` is trained, converted, and trained as a supernet by the sandwich rule. BLEU is measured for the largest
and smallest subnet, for subnets found under latency limits, and for two networks trained alone with the same teacher.
Latencies are relative to the trained network's, measured alternately. ``--latency-only`` adds those of networks that
need no search.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.converted import ABLATIONS, FULL, ConvertedRuns, Variant, slug
from benchmarks.parts.record import command, write_result
from benchmarks.parts.runs import SENTENCES, USER_DIR, TranslationRuns, schedule
from nas_core.files.reading import read_json
from nas_core.latency import TimingConfig, load_latency_model, measure
from nas_core.latency.machine import describe_machine
from nas_core.models import params_m
from nas_core.models.translation.workload import TranslationWorkload, TranslationWorkloadConfig
from nas_core.space import Architecture, SearchSpace, get_space, load_space

RESULT = Path(__file__).parents[1] / "results" / "elastic_translation.json"
TRAINED_UPDATES, SHARES = 1608, (0.5, 0.65, 0.8)
SHALLOW = "one decoder layer"
WORKLOAD = {"source_vocab": 6000, "target_vocab": 6000, "source_length": 16, "target_length": 16, "beam": 4}


@dataclass(frozen=True)
class Job(ConvertedRuns, TranslationRuns):
    lr: float
    """Highest learning rate of supernets."""

    def trained_checkpoint(self) -> Path:
        last = self.translation(
            "trained-1", "--arch", "transformer", "--encoder-embed-dim", 128, "--decoder-embed-dim", 128,
            "--encoder-ffn-embed-dim", 512, "--decoder-ffn-embed-dim", 512, "--encoder-layers", 3, "--decoder-layers",
            3, "--encoder-attention-heads", 4, "--decoder-attention-heads", 4, "--criterion",
            "label_smoothed_cross_entropy", "--lr", 3e-3, "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 400,
            "--dropout", 0.1, "--max-update", TRAINED_UPDATES, "--seed", 1,
        )  # fmt: skip
        return last.with_name("checkpoint_best.pt")

    def converted_supernet(self, variant: Variant) -> Path:
        return self.convert(variant, "--data", self.bin, "--space", self.space_file())

    def train_supernet(self, name: str, variant: Variant, updates: int, seed: int) -> Path:
        criterion: tuple[object, ...] = ("--criterion", "fused_label_smoothed_cross_entropy")
        if variant.teacher:
            criterion = self.distillation_options()
        initialization: tuple[object, ...] = ("--finetune-from-model", self.converted_supernet(variant),
                                              "--lr", self.lr, "--dropout", 0)  # fmt: skip
        if not variant.converted:
            initialization = ("--search-space", self.space_file(), "--lr", 3e-3, "--dropout", 0.1)
        return self.translation(
            name, "--user-dir", USER_DIR, "--task", "supernet_translation", "--arch", "hat_transformer",
            "--sampling", "sandwich", *criterion, *initialization, *schedule(updates), "--seed", seed,
        )  # fmt: skip

    def train_standalone(self, subnet: Path, name: str, updates: int, seed: int) -> Path:
        """Train an extracted network with the trained one as teacher."""
        return self.translation(
            name, "--user-dir", USER_DIR, "--arch", "hat_transformer", "--finetune-from-model", subnet,
            *self.distillation_options(), "--lr", self.lr, "--dropout", 0, *schedule(updates), "--seed", seed,
        )  # fmt: skip

    def distillation_options(self) -> tuple[object, ...]:
        return ("--criterion", "distilled_label_smoothed_cross_entropy", "--teacher", self.trained_checkpoint(),
                "--distill-weight", 0.7)  # fmt: skip

    def space_file(self) -> Path:
        """Write the search space around the trained network, without choice of channels."""
        path = self.work / "space.yml"
        self.run(
            "space", "nas-ext", "elastic", "--checkpoint", self.trained_checkpoint(), "--data", self.bin, "--out",
            self.work / "space.pt", "--space-out", path, "--space", "auto:layers,ffn_dim,self_heads,cross_heads",
        )  # fmt: skip
        return path

    def fit_latency_model(self) -> Path:
        return self.latency_model(self.space_file(), 120, "--data", self.bin, *SENTENCES)


def predicted_ms(model: Path, space: SearchSpace, architectures: list[Architecture]) -> list[float]:
    return [float(ms) for ms in load_latency_model(model, "genes", space).predict(architectures)]


def relative_latency(
    space: SearchSpace, trained: Architecture, networks: Mapping[str, Architecture], **workload: int
) -> dict[str, float]:
    """Measure latencies as fractions of the trained network's, by CPU time, alternately.

    Args:
        workload: fields of :class:`TranslationWorkloadConfig`.
    """
    config = TranslationWorkloadConfig(**workload)
    timing = TimingConfig(warmup=3, repeats=100, clock="cpu")
    reference = TranslationWorkload(space, trained, config)

    def relative(architecture: Architecture) -> float:
        return measure(TranslationWorkload(space, architecture, config), reference, timing).relative

    reference_ratio = relative(trained)  # below 1 on a busy machine: a median is divided by means of two passes
    return {name: round(relative(architecture) / reference_ratio, 3) for name, architecture in networks.items()}


def front(job: Job, updates: int, sentences: int) -> dict[str, dict[str, Any]]:
    """Return the networks found under each latency limit, the smallest, the largest and the shallow one."""
    space = load_space(job.space_file())
    networks: dict[str, dict[str, Any]] = {}
    fixed = {"largest": space.largest(), "smallest": space.smallest(), SHALLOW: with_decoder_layers(space.largest())}
    for name, architecture in fixed.items():
        networks[name] = {"file": job.work / f"{slug(name)}.json"}
        architecture.save(networks[name]["file"], space=space.name)
    model = job.fit_latency_model()
    (largest_ms,) = predicted_ms(model, space, [space.largest()])
    limits = {f"{share:.0%} of its latency": round(share * largest_ms, 2) for share in SHARES}
    return networks | job.search("search", job.supernet(FULL, updates, 1), model, limits, sentences, 6)


def with_decoder_layers(trained: Architecture, layers: int = 1) -> Architecture:
    """Return ``trained`` with fewer decoder layers."""
    genes: dict[str, Any] = {**trained, "decoder.layers": layers}
    per_layer = [name for name, value in genes.items() if name.startswith("decoder.") and isinstance(value, tuple)]
    return Architecture(genes | {name: genes[name][:layers] for name in per_layer})


def subnet_row(
    job: Job, variant: Variant, updates: int, seed: int, subnet: str, entry: dict[str, Any]
) -> dict[str, Any]:
    name = f"{slug(variant.name)}-{updates}-{seed}-{slug(subnet)}"
    static = job.subnet(name, job.supernet(variant, updates, seed), entry["file"])
    size = round(params_m(Architecture.load(entry["file"])), 3)
    figures = {"supernet": variant.name, "updates": updates, "seed": seed, "subnet": subnet, "params_m": size}
    figures["bleu"] = job.bleu(name, static)
    if "limit_ms" in entry:
        figures |= {"limit_ms": entry["limit_ms"], "measured_ms": entry["measured"].get("latency_ms")}
    print(json.dumps(figures), flush=True)
    return figures


def standalone_row(
    job: Job, updates: int, standalone_updates: int, seed: int, subnet: str, entry: dict[str, Any]
) -> dict[str, Any]:
    """Return BLEU of a network that was extracted from an early supernet and trained alone."""
    early_name = f"{slug(FULL.name)}-{updates}-{seed}-{slug(subnet)}"
    static = job.subnet(early_name, job.supernet(FULL, updates, seed), entry["file"])
    name = f"alone-{updates}-{standalone_updates}-{seed}-{slug(subnet)}"
    bleu = job.bleu(name, job.train_standalone(static, name, standalone_updates, seed))
    figures = {"updates": updates, "alone": standalone_updates, "seed": seed, "subnet": subnet, "bleu": bleu}
    print(json.dumps(figures), flush=True)
    return figures


def report(job: Job, args: argparse.Namespace) -> dict[str, Any]:
    updates: int = args.updates
    other_seeds = range(1, 1 + args.other_seeds)

    def seeds_of(variant: Variant) -> range:
        if variant is FULL:
            return range(1, args.seeds + 1)
        is_ablation = variant.converted and (variant.teacher or variant.importance != "none")
        return other_seeds if is_ablation else range(1, 2)

    trained = {"bleu": job.bleu("trained-1", job.trained_checkpoint())}
    subnets = front(job, args.early, args.sentences)
    half_latency = f"{SHARES[0]:.0%} of its latency"
    main_subnets = ["largest", "smallest", half_latency]
    standalone_rows = [standalone_row(job, args.early, updates - args.early, 1, half_latency, subnets[half_latency])]
    standalone_rows += [standalone_row(job, 0, updates, seed, SHALLOW, subnets[SHALLOW]) for seed in other_seeds]
    runs = [(FULL, updates, 1, name) for name in subnets if name not in main_subnets]
    runs += [
        (variant, updates, seed, name) for variant in ABLATIONS for seed in seeds_of(variant) for name in main_subnets
    ]
    for variant in ABLATIONS:
        steps = args.steps if variant is FULL or not variant.converted else args.other_steps
        steps = [step for step in steps if step != updates and (step or variant.converted)]
        runs += [(variant, step, 1, name) for step in steps for name in main_subnets]
    rows = [subnet_row(job, *run, subnets[run[-1]]) for run in runs]
    space = load_space(job.space_file())
    networks = {name: Architecture.load(entry["file"]) for name, entry in subnets.items()}
    predicted = predicted_ms(job.fit_latency_model(), space, list(networks.values()))
    return {
        "trained_updates": TRAINED_UPDATES, "updates": updates, "lr": job.lr, "trained": trained, "rows": rows,
        "alone": standalone_rows,
        "predicted_ms": {name: round(ms, 2) for name, ms in zip(networks, predicted, strict=True)},
        "relative_latency": relative_latency(space, space.largest(), networks, **WORKLOAD),
        "commands": job.seconds(), "machine": describe_machine("cpu", job.threads),
    }  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, nargs="?")
    parser.add_argument("--work", type=Path, default=Path("runs/elastic_translation"))
    steps = "further numbers of updates of the recommended and the randomly initialised supernet, for seed 1"
    parser.add_argument("--steps", type=int, nargs="*", default=[0, 100, 300, 700], help=steps)
    parser.add_argument(
        "--other-steps", type=int, nargs="*", default=[0, 100], help="further numbers of updates of the other supernets"
    )
    parser.add_argument("--updates", type=int, default=300, help="updates of supernets, for all seeds")
    parser.add_argument("--early", type=int, default=100, help="updates of the searched supernet")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of the recommended supernet")
    parser.add_argument("--other-seeds", type=int, default=2, help="seeds of the ablations")
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--latency-only", action="store_true", help="add relative latencies to the result")
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if args.latency_only:
        space = get_space("hat_small")
        trained = Architecture({**space.largest(), "decoder.arbitrary_cross": (-1, -1, -1)})
        measured = relative_latency(space, trained, {SHALLOW: with_decoder_layers(trained)}, **WORKLOAD)
        write_result(
            args.out, {**read_json(args.out), "relative_latency": measured}, command(__file__, argv), adds=True
        )
        print(json.dumps(measured))
        return
    if args.bin is None:
        print("skipped: needs a preprocessed corpus, see python -m benchmarks elastic_translation --help")
        return
    job = Job(args.work, args.threads, args.bin, args.lr)
    write_result(args.out, report(job, args), command(__file__, argv))


if __name__ == "__main__":
    main()
