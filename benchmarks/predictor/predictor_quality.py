"""Kendall's tau of accuracy predictors on NAS-Bench-101 and -201, as in the paper's Tables 1, 2, 6 and 8.

Training cells are drawn at random: on NAS-Bench-101 from those with a published validation accuracy (one run), on
NAS-Bench-201 from all; targets are validation accuracies. The test is on all cells against the mean test accuracy. No
checkpoint is chosen: what stands at the end of training is tested.

Run: ``python -m benchmarks predictor_quality --benchmark nasbench101 --sizes 100 172 --methods best lightgbm``.
Each result is kept in a file beside the work and not computed again; ``--jobs 2`` runs two at a time, one thread each.
``--judged 40000`` tests on a sample of the cells: a tenth of the time where prediction takes most of it, and tau within
some .003 of that on all. With ``--validate`` the test is on validation accuracies of cells outside the training set,
for choosing settings.

With ``--device cuda`` the recipe ``paper``, as published, is trained for all eight columns of Tables 1 and 2, one draw
each. A run may be stopped at any time, or by ``--limit-s``: columns that are done are kept at once, and a training goes
on from where it was half a minute before.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.parts import published as _published
from benchmarks.parts.baselines import GCN, Trees
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import OutOfTimeError, merged, results, settings_hash, stopping
from nas_core.device import device_name
from nas_core.errors import NasExtError
from nas_core.graph import Graphs
from nas_core.latency.machine import describe_machine
from nas_core.predictor import (
    ACCURACY_MODELS,
    NNFormerPredictor,
    Recipe,
    get_recipe,
    kendall_tau,
    list_recipes,
)
from nas_core.predictor.settings import recipe_types
from nas_core.settings import parsed_settings

RESULTS = Path(__file__).parents[1] / "results"
TABLES = {
    "nasbench101": (_published.NASBENCH101, _published.NASBENCH101_VALID),
    "nasbench201": (_published.NASBENCH201,),
}
SIZES = {"nasbench101": (100, 172, 424, 4236), "nasbench201": (156, 469, 781, 1563)}
PAPER = {
    "nasbench101": {100: 0.709, 172: 0.765, 424: 0.809, 4236: 0.877},
    "nasbench201": {156: 0.804, 469: 0.860, 781: 0.879, 1563: 0.890},
}
AIMS = {
    "nasbench101": {100: 0.74, 172: 0.79, 424: 0.83, 4236: 0.885},
    "nasbench201": {156: 0.82, 469: 0.87, 781: 0.885, 1563: 0.89},
}
KINDS = {"nasbench101": (5, 7), "nasbench201": (7, 8)}
"""Kinds of operations, and the most nodes."""
ABLATIONS: dict[str, dict[str, Any]] = {
    "global": {"attention": "global"},
    "global, vanilla ffn": {"attention": "global", "feed_forward": "vanilla"},
    "asma, vanilla ffn": {"feed_forward": "vanilla"},
    "true siblings": {"sibling_mask": "paper"},
    "nar position": {"position": "nar"},
    "laplacian position": {"position": "laplacian"},
}
"""Changes of the paper's recipe: Tables 6 and 8, and the mask as the paper defines it."""
ALONE: dict[str, dict[str, Any]] = {
    "best, networks alone": {"statistics": 0.0},
    "best, networks alone, paper masks": {"statistics": 0.0, "sibling_mask": "paper"},
}
"""The NN-Formers of the recipe ``best`` without its statistics: with the masks of the authors' released code, as in
``best``, and with those that the paper defines."""
MODELS = tuple(name for name in ACCURACY_MODELS.names() if name not in ("nn-former", *list_recipes()))
"""Accuracy models by name beside NN-Former, those of other distributions too."""
USUAL = ("best", "statistics", "lightgbm", "gcn")
METHODS = ("paper", "best", *ALONE, *ABLATIONS, "statistics", *MODELS, "lightgbm", "lightgbm statistics", "gcn")


@dataclass(frozen=True)
class Task:
    benchmark: str
    size: int
    draw: int
    method: str
    changes: tuple[tuple[str, Any], ...]
    """Changes of the recipe's settings; part of the method's name in the results."""
    validate: bool
    judged: int | None = None
    """Cells that it is judged by, drawn at random; None: all."""
    device: str = "cpu"
    """Where NN-Former computes."""

    @property
    def key(self) -> dict[str, Any]:
        changes = "".join(f", {name} {value}" for name, value in self.changes)
        on = "valid" if self.validate else "test"
        settings = settings_of(self.method, self.size, self.changes)
        return {
            "benchmark": self.benchmark,
            "size": self.size,
            "draw": self.draw,
            "method": self.method + changes,
            "on": on,
            "judged": "all" if self.judged is None else self.judged,
            **({} if settings is None else {"settings": settings}),
            **({} if self.device == "cpu" else {"device": device_name(self.device)}),
        }


@dataclass(frozen=True)
class Split:
    graphs: Graphs
    targets: NDArray[np.float64]
    judged: Graphs
    wanted: NDArray[np.float64]


def split_of(task: Task) -> Split:
    """Training cells of a draw, and what the predictor is judged by."""
    if task.benchmark == "nasbench101":
        graphs, test = _published.nasbench101()
        rows, valid = _published.nasbench101_valid()
    else:
        graphs, valid, test = _published.nasbench201()
        rows = np.arange(len(graphs))
    order = np.random.default_rng([task.draw, 101]).permutation(len(rows))
    chosen = order[: task.size]
    train, targets = graphs.take(rows[chosen]), valid[chosen]
    if not task.validate:
        if task.judged is None:
            return Split(train, targets, graphs, test)
        some = np.random.default_rng(103).permutation(len(graphs))[: task.judged]
        return Split(train, targets, graphs.take(some), test[some])
    others = order[-5000:]  # disjoint from any training set of up to 10,000
    return Split(train, targets, graphs.take(rows[others]), valid[others])


def recipe_of(method: str, changes: Iterable[tuple[str, Any]] = ()) -> Recipe | None:
    """Return the recipe of an NN-Former method; None for the others."""
    if method in ABLATIONS:
        return get_recipe("paper").changed(**{**ABLATIONS[method], **dict(changes)})
    if method in ALONE:
        return get_recipe("best").changed(**{**ALONE[method], **dict(changes)})
    return get_recipe(method).changed(**dict(changes)) if method in list_recipes() else None


def settings_of(method: str, size: int, changes: Iterable[tuple[str, Any]] = ()) -> str | None:
    """Short name of the settings of an NN-Former method with so many training cells; None for the others."""
    recipe = recipe_of(method, changes)
    return None if recipe is None else settings_hash(recipe.adapted(size).to_dict())


def predictor_of(task: Task) -> Any:
    operations, nodes = KINDS[task.benchmark]
    recipe = recipe_of(task.method, task.changes)
    if recipe is not None:
        return NNFormerPredictor(recipe, seed=task.draw, device=task.device, unseen="warn")
    if task.method in MODELS:
        return ACCURACY_MODELS.get(task.method)(seed=task.draw, unseen="warn")
    if task.method == "gcn":
        return GCN(operations, task.draw, **dict(task.changes))
    return Trees(operations, nodes, task.method == "lightgbm", task.draw)


def run(task: Task, unfinished: Path | None = None, until: float = float("inf")) -> dict[str, Any]:
    """Fit and judge one predictor, on one thread.

    Args:
        unfinished: folder of trainings that were stopped.
        until: value of the monotonic clock at which to stop.

    Raises:
        OutOfTimeError: it was stopped.
    """
    torch.set_num_threads(1)
    in_time = stopping(until, f"{task.benchmark}, {task.size} cells, {task.method}")
    split = split_of(task)
    start, used = time.perf_counter(), time.process_time()
    predictor = predictor_of(task)
    if unfinished is None or not isinstance(predictor, NNFormerPredictor):
        predictor.fit(split.graphs, split.targets)
    else:
        unfinished.mkdir(parents=True, exist_ok=True)
        goes_on = unfinished / settings_hash(task.key)
        predictor.fit(split.graphs, split.targets, progress=in_time, checkpoint=goes_on)
    fitted, fit_cpu = time.perf_counter(), time.process_time() - used
    tau = kendall_tau(predictor.predict(split.judged), split.wanted)
    times = {"fit_s": fitted - start, "fit_cpu_s": fit_cpu, "predict_s": time.perf_counter() - fitted}
    facts = {} if unfinished is None else getattr(predictor, "info", {})
    return {**task.key, "tau": tau, **_precision(facts), **{name: round(value, 1) for name, value in times.items()}}


def _precision(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name == "precision"}


def summary(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each benchmark, size and method judged on the test accuracies: mean and deviation over draws. Records
    of a method with other settings than today's are left out."""
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for record in records:
        today = settings_of(record["method"], record["size"]) if record["method"] in METHODS else record.get("settings")
        if record["on"] == "test" and record.get("settings") in (None, today):
            groups.setdefault((record["benchmark"], record["size"], record["method"]), []).append(record)
    rows = []
    for (benchmark, size, method), found in sorted(groups.items()):
        taus = [record["tau"] for record in sorted(found, key=lambda r: r["draw"])]
        rows.append(
            {
                "benchmark": benchmark,
                "size": size,
                "method": method,
                "draws": len(taus),
                "tau": round(float(np.mean(taus)), 4),
                "deviation": round(float(np.std(taus, ddof=1)), 4) if len(taus) > 1 else None,
                "taus": [round(tau, 4) for tau in taus],
                "judged": "all" if any(r.get("judged", "all") == "all" for r in found) else found[0]["judged"],
                "fit_cpu_s": round(float(np.mean([record["fit_cpu_s"] for record in found])), 1),
                "paper": PAPER[benchmark].get(size),
                "aim": AIMS[benchmark].get(size),
                **_precision(found[0]),
            }
        )
    return rows


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--sizes", nargs="+", type=int, help="training cells; default: the paper's")
    parser.add_argument("--draws", nargs="+", type=int, help="seeds of the draws; default: 0 1 2, on a GPU 0")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help=f"default: {' '.join(USUAL)}; on a GPU paper")
    parser.add_argument("--device", default="cpu", help="where NN-Former computes: cpu, cuda, cuda:1")
    parser.add_argument("--limit-s", type=float, default=float("inf"), help="seconds of this call, not on the CPU")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="changes of the recipe")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    parser.add_argument("--judged", type=int, metavar="CELLS", help="test on so many cells, drawn at random")
    parser.add_argument("--validate", action="store_true", help="judge by validation accuracies of other cells")
    parser.add_argument("--work", type=Path, help="results as they come; default: in runs")
    parser.add_argument("--out", type=Path, help="default: in benchmarks/results, on a GPU in cuda there")
    options = parser.parse_args(argv)
    there = torch.device(options.device).type != "cpu"
    options.out = options.out or RESULTS / ("cuda" if there else "") / "predictor_quality.json"
    options.work = options.work or Path("runs") / f"predictor_quality{'_cuda' if there else ''}.jsonl"
    options.methods = options.methods or (["paper"] if there else list(USUAL))
    options.draws = options.draws or ([0] if there else [0, 1, 2])
    try:
        of_gcn = {"width": int, "layers": int}
        changes = tuple(parsed_settings(options.set, {**recipe_types(), **of_gcn}).items())
        for method in options.methods:
            recipe_of(method, changes)
    except NasExtError as error:
        raise SystemExit(f"predictor_quality: error: {error}") from None
    tasks = [
        Task(benchmark, size, draw, method, changes, options.validate, options.judged, options.device)
        for benchmark in here(options.benchmark)
        for size in options.sizes or SIZES[benchmark]
        for draw in options.draws
        for method in options.methods
    ]

    def written(records: list[dict[str, Any]]) -> None:
        if not options.validate and records:
            rows = merged(options.out, summary(records), ("benchmark", "size", "method"))
            content = {"rows": rows, "machine": describe_machine(options.device, 1)}
            write_result(options.out, content, command(__file__, argv), adds=True)

    if not there:
        written(results(tasks, run, options.work, options.jobs))
        return
    one = functools.partial(run, unfinished=options.work.with_suffix(""), until=time.monotonic() + options.limit_s)
    try:
        written(results(tasks, one, options.work, 0, written))
    except OutOfTimeError as error:
        raise SystemExit(f"predictor_quality: stopped, {error}; the same command goes on from there") from None


def here(benchmarks: Iterable[str]) -> list[str]:
    """Those whose published tables are on this machine; of the others it is said why they are left out."""
    found = []
    for benchmark in benchmarks:
        reasons = [reason for table in TABLES[benchmark] if (reason := _published.absent(table))]
        print(*(f"{benchmark} is left out: {reason}" for reason in reasons), sep="\n", end="\n" if reasons else "")
        found += [] if reasons else [benchmark]
    return found


if __name__ == "__main__":
    main()
