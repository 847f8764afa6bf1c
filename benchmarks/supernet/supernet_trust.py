"""Agreement of supernets with networks trained from scratch, with conditions for the comparison.

``python -m benchmarks supernet_trust TASK --work DIR`` runs the trainings that the committed result lacks and adds
them: networks of several seeds, spread evenly over size, supernets of several seeds and methods, and further training
of extracted networks. ``--plan`` prints missing trainings with their minutes, ``--minutes`` limits the time of a call.
``multi30k`` needs ``--bin``: English to German, lower-cased, 2,000 joined subwords by sentencepiece's unigram model
with character coverage 1, test split of 2016.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import OutOfTimeError, results
from benchmarks.parts.runs import USER_DIR, TranslationRuns, schedule
from benchmarks.parts.trust import SANDWICH, conditions, further_verdicts, standalone, verdicts
from benchmarks.parts.trust_tasks import TASKS, TrustTask
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import read_json
from nas_core.latency.machine import describe_machine
from nas_core.space import Architecture, SearchSpace
from nas_core.studies.base import params_m
from nas_core.studies.routing import mixture_distance, mixtures_of
from nas_core.supernet.host import open_supernet

RESULT = Path(__file__).parents[1] / "results" / "supernet_trust.json"
METHODS: dict[str, tuple[str, ...]] = {
    "SPOS": ("--mos", "none", "--sampling", "spos"),
    "sandwich": ("--mos", "none"),
    "layer-wise": ("--mos", "layer"),
    "neuron-wise": ("--mos", "neuron"),
}
"""Name -> options of ``fairseq-train``."""
SINGLE_PATH: dict[str, tuple[str, ...]] = {
    "SPOS": METHODS["SPOS"],
    "neuron-wise, SPOS": ("--mos", "neuron", "--sampling", "spos"),
}
"""Trained for three times the updates, as many passes as those of the sandwich rule."""
OPTIONS: dict[str, tuple[str, ...]] = {
    "even mixture": ("--mos", "neuron", "--mos-router-temperature", "1e9"),
    "neuron-wise, centred": ("--mos", "neuron", "--mos-encoding", "centred"),
    "neuron-wise, temperature .2": ("--mos", "neuron", "--mos-router-temperature", "0.2"),
    "in-place distillation": ("--mos", "none", "--teacher", "largest"),
}
"""Compared at equal updates: experts without routing, and options beyond the paper."""
NETWORKS, SEEDS, SUPERNET_SEEDS = 16, (1, 2), (1, 2, 3)
FURTHER = {f"{method}, trained further": method for method in ("sandwich", "layer-wise", "neuron-wise")}
"""Supernets whose networks are extracted and trained until they are as good as from scratch."""
FURTHER_NETWORKS = (0, 3, 6, 9, 12, 15)
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)
"""Lengths of this training relative to that from scratch, each with its own schedule."""


def networks(space: SearchSpace, count: int) -> list[Architecture]:
    """Return architectures at equal quantiles of the number of parameters, smallest first."""
    stream = np.random.default_rng(0)
    drawn = {str(index): space.sample(stream) for index in range(500)}
    sizes = params_m(space, drawn)
    by_size = sorted(drawn, key=lambda name: sizes[name])
    inner = [drawn[by_size[round(q * (len(by_size) - 1))]] for q in np.linspace(0, 1, count)[1:-1]]
    return [space.smallest(), *inner, space.largest()]


@dataclass(frozen=True)
class Training:
    """Training of a supernet, or of the network with index ``network`` in :func:`networks`."""

    task: str
    method: str
    network: int | None
    seed: int
    updates: int

    @property
    def key(self) -> dict[str, Any]:
        return vars(self)

    @property
    def name(self) -> str:
        method = self.method.replace(", ", "-").replace(" ", "-")
        words = (self.task, method, self.network, self.seed, self.updates)
        return "-".join(str(word) for word in words if word is not None)


def trainings(task: TrustTask) -> list[Training]:
    """Return the trainings of a task, the most informative first."""
    rows = []
    third = task.updates // SANDWICH
    for seed in SUPERNET_SEEDS:
        rows += [Training(task.name, "standalone", index, seed, task.updates)
                 for index in range(NETWORKS) if seed in SEEDS]  # fmt: skip
        rows += [Training(task.name, method, None, seed, task.updates) for method in METHODS]
        if seed == 2:
            rows += [Training(task.name, "standalone", index, 1, 2 * task.updates) for index in range(NETWORKS)]
    for seed in SUPERNET_SEEDS:
        rows += [Training(task.name, method, None, seed, SANDWICH * task.updates) for method in SINGLE_PATH]
    for seed in SUPERNET_SEEDS:
        rows += [Training(task.name, method, None, seed, task.updates) for method in OPTIONS]
    for seed in SUPERNET_SEEDS:
        rows += [Training(task.name, method, None, seed, third) for method in METHODS if method != "SPOS"]
    for seed in SUPERNET_SEEDS:
        rows += [Training(task.name, method, None, seed, task.updates) for method in FURTHER]
    return rows


def trained(training: Training, work: Path, bin: Path, until: float) -> dict[str, Any]:
    """Run a training; return held-out qualities, routing distances and seconds."""
    if time.monotonic() > until:
        raise OutOfTimeError(f"{training.name} was not started before the time limit")
    task, runs = TASKS[training.task], TranslationRuns(work, 1, bin)
    if training.method in FURTHER:
        begin = time.monotonic()
        shares = shares_to_standalone(runs, task, replace(training, method=FURTHER[training.method]))
        return {**training.key, "seconds": round(time.monotonic() - begin, 1), "shares": shares}
    checkpoint, options = supernet_of(runs, task, training)
    space = task.space_in(work)
    architectures = networks(space, NETWORKS)
    if training.network is not None:
        architectures = [architectures[training.network]]
    supernet = open_supernet(checkpoint, data=str(bin), valid_subset="test")
    for metric in task.metrics:
        supernet.add_metric(metric)
    quality = [supernet.evaluate(architecture) for architecture in architectures]
    record: dict[str, Any] = {
        **training.key,
        "seconds": read_json(work / "seconds" / f"{training.name}.json")["seconds"],
    }
    record |= {metric: [round(values[metric], 4) for values in quality] for metric in ("nll_loss", *task.metrics)}
    if training.network is None and "none" not in options:
        mixtures = [mixtures_of(supernet.network, space.smallest()), mixtures_of(supernet.network, space.largest())]
        record["routing"] = round(float(np.mean(list(mixture_distance(*mixtures).values()))), 4)
    if training.method not in FURTHER.values() or training.updates < task.updates:
        checkpoint.unlink()
    return record


def supernet_of(runs: TranslationRuns, task: TrustTask, training: Training) -> tuple[Path, Sequence[object]]:
    """Train a supernet, or the network of ``training``; return its checkpoint and the options of its method."""
    options: Sequence[object] = (METHODS | OPTIONS | SINGLE_PATH).get(training.method, ("--mos", "none"))
    if "--teacher" in options:
        options = (*options, "--criterion", task.distilled)
    if training.network is not None:
        file = runs.work / f"network-{training.network}.json"
        networks(task.space_in(runs.work), NETWORKS)[training.network].save(file)
        options = (*options, "--subnet", file)
    else:
        options = ("--sampling", "sandwich", *options)  # the last one holds
    checkpoint = runs.fairseq_train(
        training.name, "--user-dir", USER_DIR, "--search-space", runs.work / f"{task.name}.yml", *task.options,
        *schedule(training.updates), "--seed", training.seed, "--disable-validation", *options,
    )  # fmt: skip
    return checkpoint, options


def shares_to_standalone(runs: TranslationRuns, task: TrustTask, training: Training) -> list[float | None]:
    """Return for each of :data:`FURTHER_NETWORKS` the smallest of :data:`SHARES` that reaches its loss from scratch
    (None: none does).
    """
    targets = standalone(read_jsonl(runs.work / f"{task.name}.jsonl"), "nll_loss", task.updates)
    supernet = open_supernet(supernet_of(runs, task, training)[0], data=str(runs.bin), valid_subset="test")
    architectures = networks(supernet.space, NETWORKS)
    reached: list[float | None] = []
    for index in FURTHER_NETWORKS:
        if index >= len(targets) or np.isnan(targets[index]):
            raise SystemExit(f"{training.name}, trained further, needs network {index} from scratch; train it first")
        extracted = runs.work / f"{training.name}-{index}.pt"
        supernet.extract(architectures[index], extracted)
        share = next((share for share in SHARES if further_loss(share, extracted, runs, task) <= targets[index]), None)
        reached.append(share)
        extracted.unlink()
    return reached


def further_loss(share: float, extracted: Path, runs: TranslationRuns, task: TrustTask) -> float:
    """Return the held-out loss of an extracted network after a share of the updates from scratch."""
    checkpoint = runs.fairseq_train(
        f"{extracted.stem}-{share}", "--user-dir", USER_DIR, *task.options, *task.extracted,
        *schedule(round(share * task.updates)), "--seed", 1, "--disable-validation", "--finetune-from-model", extracted,
    )  # fmt: skip
    network = open_supernet(checkpoint, data=str(runs.bin), valid_subset="test")
    loss = network.evaluate(network.space.largest())["nll_loss"]
    checkpoint.unlink()
    return loss


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", nargs="?", choices=list(TASKS))
    parser.add_argument("--bin", type=Path, help="folder of fairseq-preprocess, for tasks whose data are not generated")
    parser.add_argument("--work", type=Path, default=Path("runs/supernet_trust"))
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time, one thread each")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no training after this time")
    methods = ["standalone", *dict.fromkeys([*METHODS, *OPTIONS, *SINGLE_PATH, *FURTHER])]
    parser.add_argument("--methods", nargs="+", choices=methods, help="train only these")
    parser.add_argument("--plan", action="store_true", help="print the missing trainings, and train nothing")
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    content = read_json(args.out) if args.out.exists() else {"tasks": {}}
    if args.task is None:
        print("skipped: needs a task, see python -m benchmarks supernet_trust --help")
        return
    task = TASKS[args.task]
    args.work.mkdir(parents=True, exist_ok=True)
    stored = content["tasks"].get(task.name, {}).get("trainings", [])
    present = [{field.name: record[field.name] for field in fields(Training)} for record in stored]
    waiting = [
        row for row in trainings(task) if row.key not in present and row.method in (args.methods or [row.method])
    ]
    settings = [str(option) for option in task.options]
    if (before := content["tasks"].get(task.name, {}).get("settings", settings)) != settings:
        raise SystemExit(f"{args.out} has trainings of {task.name} with {before}, now {settings}; give another --out")
    if args.plan:
        for row in waiting:
            pace = [r["seconds"] / r["updates"] for r in stored if r["method"] == row.method]
            minutes = f"{np.mean(pace) * row.updates / 60:.1f} minutes" if pace else "unknown"
            print(f"{row.name}: {minutes}")
        return
    bin_folder = task.data_in(args.work, args.bin)
    space, done = task.space_in(args.work), args.work / f"{task.name}.jsonl"
    done.unlink(missing_ok=True)
    for record in stored:
        append_jsonl(done, record)
    sizes = list(params_m(space, {str(i): a for i, a in enumerate(networks(space, NETWORKS))}).values())

    def keep(records: list[dict[str, Any]]) -> None:
        checked = conditions(records, sizes, task)
        content["tasks"][task.name] = {
            "updates": task.updates, "params_m": sizes, "conditions": checked,
            "settings": settings,
            "verdicts": verdicts(records, task, checked), "further": further_verdicts(records), "trainings": records,
        }  # fmt: skip
        content["machine"] = describe_machine("cpu", 1)
        write_result(args.out, content, command(__file__, argv), adds=True)

    if stored:
        keep(stored)
    run = partial(
        trained, work=args.work.resolve(), bin=bin_folder.resolve(), until=time.monotonic() + 60 * args.minutes
    )
    try:
        results(waiting, run, done, args.jobs, keep)
    except OutOfTimeError as error:
        print(f"stopped before {error}; the same command continues")
    for part in ("conditions", "verdicts", "further"):
        for row in content["tasks"].get(task.name, {}).get(part, []):
            print(row)


if __name__ == "__main__":
    main()
