"""``nas-ext search``: from a supernet and a latency model to the architectures worth having."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from nas_core.cli.executor import (
    Cluster,
    Cpus,
    Executor,
    Gpus,
    Jobs,
    MemoryGb,
    Partition,
    PerJob,
    Slurm,
    TimeoutMin,
    jobs_config,
)
from nas_core.cli.interruption import interruption_told
from nas_core.errors import ConfigError, DataError
from nas_core.latency import load_latency_model
from nas_core.search import EvolutionConfig, MultiObjectiveConfig, RankNASConfig, Strategy, search
from nas_core.search.finalists import save_finalists
from nas_core.search.limits import cost_limits, costs_on_paper, latency_limit
from nas_core.search.registry import RANKERS, STRATEGIES, StrategyOptions, how_many, strategy_maker
from nas_core.search.strategies.ranknas import PRUNE_BY
from nas_core.search.within import goals, measure_finalists
from nas_core.space import Architecture

__all__ = ["command"]

_DEFAULTS, _FRONT, _RANKNAS = EvolutionConfig(), MultiObjectiveConfig(), RankNASConfig()
_EVOLUTION = "evolution, random, multi-objective:"


def command(
    checkpoint: Annotated[Path, typer.Option(help="Checkpoint of a trained supernet.")],
    out: Annotated[Path, typer.Option(help="Run folder; a search that was interrupted there is continued.")],
    latency_model: Annotated[Path | None, typer.Option(help="A model of 'nas-ext latency fit'.")] = None,
    limit_ms: Annotated[list[float] | None, typer.Option(help="Latency limit; repeat it for several searches.")] = None,
    max_params_m: Annotated[float | None, typer.Option(help="Limit in millions of parameters, for all.")] = None,
    max_flops_g: Annotated[float | None, typer.Option(help="Limit in billions of FLOPs, for all.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Data folder; default: the one the supernet was trained on.")
    ] = None,
    valid_subset: Annotated[str, typer.Option(help="Split whose loss is minimised.")] = "valid",
    valid_sentences: Annotated[int | None, typer.Option(min=1, help="Use only so many of its sentences.")] = None,
    strategy: Annotated[str, typer.Option(help=f"One of {', '.join(STRATEGIES)}.")] = "evolution",
    iterations: Annotated[
        int | None, typer.Option(help=f"{_EVOLUTION} populations that are scored; default {_DEFAULTS.iterations}.")
    ] = None,
    population: Annotated[
        int | None,
        typer.Option(
            help=f"{_EVOLUTION} members; those of the next three that are not given follow, in HAT's proportions"
            f" 25:50:50 (multi-objective 50:25:25). Default {_DEFAULTS.population}."
        ),
    ] = None,
    parents: Annotated[
        int | None,
        typer.Option(
            help=f"{_EVOLUTION} best members, which have children; default {_DEFAULTS.parents}, multi-objective"
            f" {_FRONT.parents}."
        ),
    ] = None,
    mutations: Annotated[
        int | None, typer.Option(help=f"{_EVOLUTION} children by mutation; default {_DEFAULTS.mutations}.")
    ] = None,
    crossovers: Annotated[
        int | None, typer.Option(help=f"{_EVOLUTION} children by crossover; default {_DEFAULTS.crossovers}.")
    ] = None,
    mutation_prob: Annotated[
        float | None,
        typer.Option(
            help=f"Chance of each gene to mutate; default {_DEFAULTS.mutation_prob}, multi-objective"
            f" {_FRONT.mutation_prob}."
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help=f"ranknas: random architectures to learn from; default {_RANKNAS.samples}. It evaluates samples +"
            " rankings x per-ranking architectures in all."
        ),
    ] = None,
    rankings: Annotated[
        int | None, typer.Option(help=f"ranknas: rankings learned one after another; default {_RANKNAS.rounds}.")
    ] = None,
    per_ranking: Annotated[
        int | None, typer.Option(help=f"ranknas: architectures each ranking proposes; default {_RANKNAS.finalists}.")
    ] = None,
    keep_genes: Annotated[
        int | None,
        typer.Option(
            help="ranknas: genes that stay free, so many that matter most to the loss and so many to each limit;"
            f" 0: all. Default {_RANKNAS.keep}."
        ),
    ] = None,
    prune_by: Annotated[
        str | None,
        typer.Option(
            help=f"ranknas: what genes have to matter to, one of {', '.join(PRUNE_BY)} (the loss alone); default"
            f" {PRUNE_BY[0]}."
        ),
    ] = None,
    ranker: Annotated[
        str | None,
        typer.Option(help=f"ranknas: what orders architectures, one of {', '.join(RANKERS)}; default {RANKERS[0]}."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the search.")] = 0,
    finalists: Annotated[int, typer.Option(min=1, help="Architectures to pick at the end.")] = 8,
    measure: Annotated[bool, typer.Option(help="Measure the finalists' latency on this machine.")] = True,
    device: Annotated[str, typer.Option(help="Where subnets are evaluated: cpu, cuda, cuda:1.")] = "cpu",
    executor: Executor = "local",
    cluster: Cluster = None,
    jobs: Jobs = None,
    per_job: PerJob = None,
    timeout_min: TimeoutMin = None,
    gpus: Gpus = None,
    cpus: Cpus = None,
    memory_gb: MemoryGb = None,
    partition: Partition = None,
    slurm: Slurm = None,
) -> None:
    """Search architectures under hard limits; the same command again continues an interrupted search."""
    from nas_core.report import finalists_table, limit_notes, read_run
    from nas_core.search.executor import SubmititExecutor
    from nas_core.search.remeasure import remeasure
    from nas_core.supernet.host import open_supernet

    if limit_ms and latency_model is None:
        raise ConfigError("--limit-ms needs --latency-model; 'nas-ext latency collect' and 'fit' make one")
    if valid_subset.startswith("test"):
        raise ConfigError(f"--valid-subset {valid_subset}: nothing is left to test with after that; give valid")
    shared_out = jobs_config(
        executor,
        device,
        slurm,
        cluster=cluster,
        jobs=jobs,
        per_job=per_job,
        timeout_min=timeout_min,
        gpus=gpus,
        cpus=cpus,
        memory_gb=memory_gb,
        partition=partition,
    )
    numbers = StrategyOptions(
        iterations=iterations,
        population=population,
        parents=parents,
        mutations=mutations,
        crossovers=crossovers,
        mutation_prob=mutation_prob,
        samples=samples,
        rankings=rankings,
        per_ranking=per_ranking,
        keep_genes=keep_genes,
        prune_by=prune_by,
        ranker=ranker,
    )
    make = strategy_maker(strategy, numbers)
    settings = {
        "checkpoint_sha256": _fingerprint(checkpoint),
        "latency_model_sha256": _fingerprint(latency_model) if latency_model else None,
        "data": str(data.resolve()) if data else None,
        "valid_subset": valid_subset,
        "valid_sentences": valid_sentences,
    }
    options = {
        "data": str(data.resolve()) if data else None,
        "valid_subset": valid_subset,
        "valid_sentences": valid_sentences,
        "device": device,
    }
    # Where jobs evaluate, this machine only looks up the space, and may have no such device.
    supernet = open_supernet(checkpoint, **{**options, "device": "cpu" if shared_out else device})
    space, costs = supernet.space, costs_on_paper(supernet.space)
    model = load_latency_model(latency_model, "genes", space) if latency_model else None
    for_all = cost_limits(space, {"params_m": max_params_m, "flops_g": max_flops_g})
    latencies = [latency_limit(model, ms) for ms in limit_ms or () if model is not None]
    modelled = ["latency_ms"] if model else []
    strategies: dict[str, Strategy] = {}
    for constraints in [[latency, *for_all] for latency in latencies] or [for_all]:
        name = " ".join(constraint.label for constraint in constraints) or "unlimited"
        strategies[name] = make(space, constraints, ["loss", *(modelled or costs)], seed)

    def on_paper(architecture: Architecture) -> dict[str, float]:
        metrics = {name: cost(architecture) for name, cost in costs.items()}
        if model is not None:
            metrics["latency_ms"] = float(model.predict(architecture)[0])
        return metrics

    def evaluate(architecture: Architecture) -> dict[str, float]:
        return {**on_paper(architecture), **supernet.evaluate(architecture)}

    elsewhere = SubmititExecutor(checkpoint, options, shared_out, out / "jobs", on_paper) if shared_out else None
    weighed = [*strategies[name].objectives, *modelled, *(constraint.name for constraint in for_all)]
    for each in strategies.values():
        each.start()  # an impossible limit is said first
    _announce(strategy, numbers, [each.budget for each in strategies.values()])
    with interruption_told(out):
        result = search(
            strategies,
            None if elsewhere else evaluate,
            out,
            evaluate_many=elsewhere,
            together=elsewhere.together if elsewhere else 1,
            objectives=list(dict.fromkeys(weighed if len(weighed) > 1 else [*weighed, *costs])),
            finalists=finalists,
            settings=settings,
            notes={
                "checkpoint": str(checkpoint.resolve()),
                "latency_model": str(latency_model.resolve()) if latency_model else None,
                "device": device,
                "units": dict(getattr(supernet, "units", {})),
            },
        )
        if model is not None and measure:
            found = measure_finalists(result, goals(strategies), lambda some: remeasure(some, model, supernet.task))
            save_finalists(out, found)
    run = read_run(out)
    typer.echo("\n".join([finalists_table(run).text(), *limit_notes(run)]))
    everything = result.evaluations + result.saved
    typer.echo(
        f"{result.evaluations} architectures evaluated ({result.replayed} of them before), {result.saved} evaluations"
        f" saved by the cache ({result.saved / everything:.0%}), {len(result.archive)} on the Pareto front: {out}"
    )


def _announce(strategy: str, numbers: StrategyOptions, budgets: Sequence[int]) -> None:
    """How much will be evaluated, before it starts; how long it takes is known after the first evaluations."""
    typer.echo(f"{how_many(strategy, numbers, budgets)}; how long it takes is said after the first ones", err=True)
    if unused := numbers.unused(strategy):
        typer.echo(f"note: --strategy {strategy} does not read {', '.join(unused)}", err=True)


def _fingerprint(path: Path) -> str:
    """What a file holds, so that a search is not continued with another one under the same name."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, IsADirectoryError):
        raise DataError(f"file not found: {path}; check the name and the folder it is taken from") from None
