"""``nas-ext search``: from a supernet and a latency model to the architectures worth having."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from nas_core.errors import ArchitectureError, ConfigError, DataError, unknown_choice
from nas_core.latency import load_model
from nas_core.search import (
    Constraint,
    EvolutionConfig,
    HATEvolution,
    RandomConfig,
    RandomSearch,
    RankNAS,
    RankNASConfig,
    Strategy,
    search,
)
from nas_core.search.finalists import save_finalists, with_measured
from nas_core.space import Architecture, SearchSpace

__all__ = ["command"]

_DEFAULTS, _RANKNAS = EvolutionConfig(), RankNASConfig()

Costs = Mapping[str, Callable[[Architecture], float]]


class _Settings(NamedTuple):
    """Of every strategy; each takes its own."""

    evolution: EvolutionConfig
    ranknas: RankNASConfig


def _evolution(space: SearchSpace, constraints: Sequence[Constraint], settings: _Settings, seed: int) -> Strategy:
    return HATEvolution(space, constraints, settings.evolution, seed=seed)


def _random(space: SearchSpace, constraints: Sequence[Constraint], settings: _Settings, seed: int) -> Strategy:
    """As many evaluations as the evolution with these settings proposes."""
    evaluations = HATEvolution(space, config=settings.evolution).budget
    return RandomSearch(space, constraints, RandomConfig(evaluations=evaluations), seed=seed)


def _ranknas(space: SearchSpace, constraints: Sequence[Constraint], settings: _Settings, seed: int) -> Strategy:
    return RankNAS(space, constraints, settings.ranknas, seed=seed)


STRATEGIES: Mapping[str, Callable[..., Strategy]] = {
    "evolution": _evolution,
    "random": _random,
    "ranknas": _ranknas,
}


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
    iterations: Annotated[int, typer.Option(help="Populations that are scored.")] = _DEFAULTS.iterations,
    population: Annotated[int | None, typer.Option(help="Members; default: the sum of the next three.")] = None,
    parents: Annotated[int, typer.Option(help="Best members, which have children.")] = _DEFAULTS.parents,
    mutations: Annotated[int, typer.Option(help="Children by mutation.")] = _DEFAULTS.mutations,
    crossovers: Annotated[int, typer.Option(help="Children by crossover.")] = _DEFAULTS.crossovers,
    mutation_prob: Annotated[float, typer.Option(help="Chance of each gene to mutate.")] = _DEFAULTS.mutation_prob,
    samples: Annotated[int, typer.Option(help="ranknas: random architectures to learn from.")] = _RANKNAS.samples,
    rankings: Annotated[int, typer.Option(help="ranknas: rankings learned one after another.")] = _RANKNAS.rounds,
    per_ranking: Annotated[
        int, typer.Option(help="ranknas: architectures each ranking proposes.")
    ] = _RANKNAS.finalists,
    keep_genes: Annotated[
        int, typer.Option(help="ranknas: most important genes that stay free; 0: all.")
    ] = _RANKNAS.keep,
    seed: Annotated[int, typer.Option(min=0, help="Of the search.")] = 0,
    finalists: Annotated[int, typer.Option(min=1, help="Architectures to pick at the end.")] = 8,
    measure: Annotated[bool, typer.Option(help="Measure the finalists' latency on this machine.")] = True,
    device: Annotated[str, typer.Option(help="Where subnets are evaluated: cpu, cuda, cuda:1.")] = "cpu",
) -> None:
    """Search architectures under hard limits; the same command again continues an interrupted search."""
    from nas_core.report import finalists_table, read_run
    from nas_core.search.remeasure import remeasure
    from nas_core.supernet.host import open_supernet

    if strategy not in STRATEGIES:
        raise unknown_choice("strategy", strategy, list(STRATEGIES))
    if limit_ms and latency_model is None:
        raise ConfigError("--limit-ms needs --latency-model; 'nas-ext latency collect' and 'fit' make one")
    if valid_subset.startswith("test"):
        raise ConfigError(f"--valid-subset {valid_subset}: nothing is left to test with after that; give valid")
    evolution = EvolutionConfig(
        iterations=iterations,
        population=parents + mutations + crossovers if population is None else population,
        parents=parents,
        mutations=mutations,
        crossovers=crossovers,
        mutation_prob=mutation_prob,
    )
    ranknas = RankNASConfig(
        samples=samples, rounds=rankings, finalists=per_ranking, keep=keep_genes, mutation_prob=mutation_prob
    )
    settings = {
        "checkpoint_sha256": _fingerprint(checkpoint),
        "latency_model_sha256": _fingerprint(latency_model) if latency_model else None,
        "data": str(data.resolve()) if data else None,
        "valid_subset": valid_subset,
        "valid_sentences": valid_sentences,
    }
    supernet = open_supernet(
        checkpoint,
        data=str(data) if data else None,
        valid_subset=valid_subset,
        valid_sentences=valid_sentences,
        device=device,
    )
    space, costs = supernet.space, _costs(supernet.space)
    model = load_model(latency_model, space) if latency_model else None
    limits = {"params_m": max_params_m, "flops_g": max_flops_g}
    for_all = [
        Constraint.per_architecture(name, limit, space, _cost(costs, name, space))
        for name, limit in limits.items()
        if limit is not None
    ]
    latencies = [Constraint("latency_ms", ms, model.predict_rows) for ms in limit_ms or () if model is not None]
    strategies: dict[str, Strategy] = {}
    for constraints in [[latency, *for_all] for latency in latencies] or [for_all]:
        name = " ".join(constraint.label for constraint in constraints) or "unlimited"
        strategies[name] = STRATEGIES[strategy](space, constraints, _Settings(evolution, ranknas), seed)

    def evaluate(architecture: Architecture) -> dict[str, float]:
        metrics = {name: cost(architecture) for name, cost in costs.items()}
        if model is not None:
            metrics["latency_ms"] = float(model.predict(architecture)[0])
        return {**metrics, **supernet.evaluate(architecture)}

    result = search(
        strategies,
        evaluate,
        out,
        objectives=["loss", *(["latency_ms"] if model else []), *(constraint.name for constraint in for_all)],
        finalists=finalists,
        settings=settings,
        notes={"checkpoint": str(checkpoint), "latency_model": str(latency_model), "device": device},
    )
    missing = [finalist.architecture for finalist in result.finalists if not finalist.measured]
    if model is not None and measure and missing:
        records = dict(zip(missing, remeasure(missing, model, supernet.task), strict=True))
        measured = [records.get(finalist.architecture, finalist.measured) for finalist in result.finalists]
        save_finalists(out, with_measured(result.finalists, measured))
    typer.echo(finalists_table(read_run(out)).text())
    everything = result.evaluations + result.saved
    typer.echo(
        f"{result.evaluations} architectures evaluated ({result.replayed} of them before), {result.saved} evaluations"
        f" saved by the cache ({result.saved / everything:.0%}), {len(result.archive)} on the Pareto front: {out}"
    )


def _fingerprint(path: Path) -> str:
    """What a file holds, so that a search is not continued with another one under the same name."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, IsADirectoryError):
        raise DataError(f"file not found: {path}; check the name and the folder it is taken from") from None


def _costs(space: SearchSpace) -> Costs:
    """The costs on paper that are defined for this kind of network."""
    from nas_core.cost import flops_g, params_m

    try:
        params_m(space.smallest()), flops_g(space.smallest())
    except ArchitectureError:
        return {}
    return {"params_m": params_m, "flops_g": flops_g}


def _cost(costs: Costs, name: str, space: SearchSpace) -> Callable[[Architecture], float]:
    if name not in costs:
        raise ConfigError(f"{name} has no formula for space {space.name!r}; limit the latency instead")
    return costs[name]
