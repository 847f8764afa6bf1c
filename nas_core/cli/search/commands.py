"""``nas-ext search``: from a supernet and a latency model to the architectures worth having."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from nas_core.cli.calibrate.search import open_calibrated, written_next
from nas_core.cli.executor import Executor, jobs_config, jobs_parameters
from nas_core.cli.interruption import interruption_told
from nas_core.cli.options import flagged, flags_named, parameters_of, with_options
from nas_core.cli.search.limits import limits_ms, workload_held_at
from nas_core.cli.search.shared import Shared, check_shared, shared_evaluations
from nas_core.device import usable_devices
from nas_core.errors import ConfigError, unknown_choice
from nas_core.files import file_digest, real_path
from nas_core.latency import load_latency_model
from nas_core.latency.machine import describe_machine
from nas_core.options import flag_of
from nas_core.precision import PRECISIONS, check_precision
from nas_core.search import DeviceExecutor, Strategy, search
from nas_core.search.calibration import evaluation_settings
from nas_core.search.finalists import save_finalists
from nas_core.search.limits import cost_limits, costs_on_paper, latency_limit
from nas_core.search.registry import STRATEGIES, config_of, how_many, options_by_strategy, strategy_options
from nas_core.search.within import goals, measure_finalists
from nas_core.space import Architecture

__all__ = ["make_command"]


def _search(
    checkpoint: Annotated[Path, typer.Option(help="Checkpoint of a trained supernet.")],
    out: Annotated[Path, typer.Option(help="Run folder; a search that was interrupted there is continued.")],
    latency_model: Annotated[Path | None, typer.Option(help="A model of 'nas-ext latency fit'.")] = None,
    limit_ms: Annotated[list[float] | None, typer.Option(help="Latency limit; repeat it for several searches.")] = None,
    limit_share: Annotated[
        list[float] | None,
        typer.Option(help="The same as a share of the largest network's latency, such as 0.5; repeatable."),
    ] = None,
    max_params_m: Annotated[float | None, typer.Option(help="Limit in millions of parameters, for all.")] = None,
    max_flops_g: Annotated[float | None, typer.Option(help="Limit in billions of FLOPs, for all.")] = None,
    max_memory_mb: Annotated[float | None, typer.Option(help="Limit of weights and activations in 10^6 bytes.")] = None,
    max_cache_mb: Annotated[float | None, typer.Option(help="Limit of the decoding cache in 10^6 bytes.")] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=VALUE, what memory and cache are counted at, as source_length, target_length, beam, batch;"
            " repeatable; default: as the latency model was measured."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Data folder; default: the one the supernet was trained on.")
    ] = None,
    valid_subset: Annotated[str, typer.Option(help="Split whose loss is minimised.")] = "valid",
    valid_sentences: Annotated[int | None, typer.Option(min=1, help="Use only so many of its sentences.")] = None,
    strategy: Annotated[str, typer.Option(help="What searches, by a name of the list above.")] = "evolution",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")] = 0,
    finalists: Annotated[int, typer.Option(min=1, help="Architectures to pick at the end.")] = 8,
    placements: Annotated[
        bool,
        typer.Option(
            "--placements",
            help="Compare with placements of attention that need no search: every second layer, the first, the last.",
        ),
    ] = False,
    calibration: Annotated[
        Path | None, typer.Option(help="A file of 'nas-ext calibrate', whose estimate is searched by.")
    ] = None,
    further_supernet: Annotated[
        list[Path] | None, typer.Option(help="Of a calibration with several, all but the first; repeatable.")
    ] = None,
    train_next: Annotated[int, typer.Option(min=1, help="Networks to train next that a calibration names.")] = 4,
    measure: Annotated[bool, typer.Option(help="Measure the finalists' latency on this machine.")] = True,
    device: Annotated[
        str, typer.Option(help="Where subnets are evaluated: cpu, cuda, cuda:1; or cuda:0,cuda:1, a process for each.")
    ] = "cpu",
    precision: Annotated[
        str, typer.Option(help=f"Numbers they are evaluated with: {', '.join(PRECISIONS)}.")
    ] = PRECISIONS[0],
    executor: Executor = "local",
    storage: Annotated[
        str | None,
        typer.Option(
            help="Share the search with everybody who gives the same command: URL of a storage of Optuna, such as"
            " sqlite:///search.db or postgresql://user@host/name, or a journal file."
        ),
    ] = None,
    study: Annotated[str | None, typer.Option(help="Name of the search in --storage.")] = None,
    lost_after_s: Annotated[
        float, typer.Option(min=1, help="With --storage: a worker without a sign of life for so long is lost.")
    ] = 120.0,
    *,
    jobs_options: Mapping[str, Any],
    strategy_options: Mapping[str, Any],
) -> None:
    from nas_core.report import read_run
    from nas_core.report.run import finalists_text
    from nas_core.search.executor import SubmititExecutor
    from nas_core.search.placements import placements as compared_placements
    from nas_core.search.remeasure import remeasure
    from nas_core.supernet.host import open_supernet

    if (limit_ms or limit_share) and latency_model is None:
        option = "--limit-ms" if limit_ms else "--limit-share"
        raise ConfigError(f"{option} needs --latency-model; 'nas-ext latency collect' and 'fit' make one")
    if further_supernet and not calibration:
        raise ConfigError("--further-supernet is of --calibration; give a file of 'nas-ext calibrate'")
    if wrong := [share for share in limit_share or () if not 0 < share <= 1]:
        raise ConfigError(f"--limit-share {wrong[0]}; expected a share above 0 and up to 1")
    if valid_subset.startswith("test"):
        raise ConfigError(f"--valid-subset {valid_subset}: nothing is left to test with after that; give valid")
    in_storage = check_shared(storage, study, executor, device)
    shared_out = jobs_config(executor, device, **jobs_options)
    devices = [device] if shared_out else usable_devices(device)
    if precision not in PRECISIONS:
        raise unknown_choice("precision", precision, PRECISIONS)
    if not shared_out and len(devices) == 1:  # elsewhere it is asked of the device itself
        check_precision(precision, device)
    with flags_named(list(options_by_strategy())):
        config = _config(strategy, strategy_options)
    options = evaluation_settings(data, valid_subset, valid_sentences)
    settings: dict[str, Any] = {
        "checkpoint_sha256": file_digest(checkpoint),
        "latency_model_sha256": file_digest(latency_model) if latency_model else None,
        **options,
        "precision": precision,
    }
    settings |= {"calibration_sha256": file_digest(calibration)} if calibration else {}
    there = {**options, **({} if precision == "fp32" else {"precision": precision})}
    # Where others evaluate, this process only looks up the space; its machine may have no such device.
    here = {**options, "device": "cpu"} if shared_out or len(devices) > 1 else {**there, "device": device}
    supernet = open_supernet(checkpoint, **here)
    space, costs = supernet.space, costs_on_paper(supernet.space)
    given = compared_placements(space) if placements else {}
    alone = not shared_out and len(devices) == 1
    calibrated = (
        open_calibrated(calibration, checkpoint, further_supernet or [], space, here, alone) if calibration else None
    )
    model = load_latency_model(latency_model, "genes", space) if latency_model else None
    memory = {"memory_mb": max_memory_mb, "cache_mb": max_cache_mb}
    held_at = workload_held_at(supernet, model, workload or [], any(limit is not None for limit in memory.values()))
    settings |= {"workload": held_at} if held_at else {}
    for_all = cost_limits(space, {"params_m": max_params_m, "flops_g": max_flops_g, **memory}, workload=held_at)
    latencies = [latency_limit(model, ms) for ms in limits_ms(model, limit_ms, limit_share)] if model else []
    modelled = ["latency_ms"] if model else []
    quality = calibrated.objective if calibrated else "loss"
    kind, objectives = STRATEGIES.get(strategy), [quality, *(modelled or costs)]
    if kind.weighs_several and len(objectives) < 2:
        raise ConfigError(
            f"--strategy {strategy} has nothing to weigh against {quality}: costs on paper are not defined for space"
            f" {space.name!r}; give --latency-model"
        )
    strategies: dict[str, Strategy] = {}
    for constraints in [[latency, *for_all] for latency in latencies] or [for_all]:
        name = " ".join(constraint.label for constraint in constraints) or "unlimited"
        with flags_named(list(options_by_strategy())):
            strategies[name] = kind.made(space, constraints, config, objectives=objectives, seed=seed)

    def on_paper(architecture: Architecture) -> dict[str, float]:
        metrics = {name: cost(architecture) for name, cost in costs.items()}
        if model is not None:
            metrics["latency_ms"] = float(model.predict(architecture)[0])
        return metrics

    def evaluate(architecture: Architecture) -> dict[str, float]:
        found = {**on_paper(architecture), **supernet.evaluate(architecture)}
        return calibrated.added(architecture, found) if calibrated else found

    def evaluate_for_all(architecture: Architecture) -> dict[str, float]:
        row = space.rows([architecture])
        return {**{limit.name: float(limit.values(row)[0]) for limit in for_all}, **evaluate(architecture)}

    elsewhere: SubmititExecutor | DeviceExecutor | Shared | None = None
    if shared_out:
        elsewhere = SubmititExecutor(checkpoint, {**there, "device": device}, shared_out, out / "jobs", on_paper)
    elif len(devices) > 1:
        elsewhere = DeviceExecutor(checkpoint, device, there, on_paper)
    weighed = [*strategies[name].objectives, *modelled, *(constraint.name for constraint in for_all)]
    weighed = list(dict.fromkeys(weighed if len(weighed) > 1 else [*weighed, *costs]))
    for each in strategies.values():
        each.start()  # an impossible limit is said first
    if storage and study:
        elsewhere = shared_evaluations(storage, study, space, evaluate_for_all, weighed, settings, lost_after_s)
    told = flagged(how_many(list(strategies.values())), list(options_by_strategy()))
    typer.echo(f"{told}; how long it takes is said after the first ones", err=True)
    if model is not None:
        typer.echo(f"latencies are predicted for {model.machine}", err=True)
    with interruption_told(out):
        with elsewhere if isinstance(elsewhere, DeviceExecutor) else nullcontext():
            result = search(
                strategies,
                None if elsewhere else evaluate,
                out,
                evaluate_many=calibrated.added_to_many(elsewhere)
                if calibrated and elsewhere and not in_storage
                else elsewhere,
                together=elsewhere.together if elsewhere else 1,
                at_once=elsewhere.at_once if isinstance(elsewhere, DeviceExecutor) else None,
                objectives=weighed,
                finalists=finalists,
                given=given,
                settings=settings,
                notes={
                    "checkpoint": str(real_path(checkpoint)),
                    "latency_model": str(real_path(latency_model)) if latency_model else None,
                    "device": device,
                    **_device_name(devices, shared_out is None),
                    "units": dict(supernet.units),
                },
            )
        if model is not None and measure:
            found = measure_finalists(result, goals(strategies), lambda some: remeasure(some, model, supernet.task))
            save_finalists(out, found)
    typer.echo(finalists_text(read_run(out)))
    if calibrated:
        paid = on_paper(space.smallest())
        weighed_cost = next((name for name in (*result.archive.objectives[1:], *paid) if name in paid), None)
        typer.echo(
            written_next(calibrated.calibration, result, strategies.values(), weighed_cost, on_paper, out, train_next)
        )
    everything = result.evaluations + result.saved
    typer.echo(
        f"{result.evaluations} architectures evaluated ({result.replayed} of them before), {result.saved} evaluations"
        f" saved by the cache ({result.saved / everything:.0%}), {len(result.archive)} on the Pareto front: {out}"
    )


def _device_name(devices: list[str], here: bool) -> dict[str, str]:
    """The name of the one CUDA device of this process; to ask several would take memory of each."""
    if not here or len(devices) > 1 or not devices[0].startswith("cuda"):
        return {}
    return {"device_name": str(describe_machine(devices[0], 1)["device_name"])}


def make_command() -> Callable[..., None]:
    """The command with the options of all strategies there are now."""
    strategies = [f"  {name}: {strategy.purpose}" for name, strategy in STRATEGIES.items()]
    doc = (
        "Search architectures under hard limits; the same command again continues an interrupted search.\n\n"
        "\b\nStrategies, each with the options that name it below:\n" + "\n".join(strategies)
    )
    further = {"strategy_options": parameters_of(options_by_strategy(_taken())), "jobs_options": jobs_parameters()}
    return with_options(_search, further, doc)


def _taken() -> set[str]:
    """Names of the command's own options."""
    return {*inspect.signature(_search).parameters, *(parameter.name for parameter in jobs_parameters())}


def _config(strategy: str, typed: Mapping[str, Any]) -> Any:
    """The strategy's settings, checked before a supernet is opened, which takes long.

    Raises:
        UnknownChoiceError: no such strategy. ConfigError: an option that it does not take, or out of range.
    """
    known = {option.name: option for option in strategy_options(strategy, _taken())}
    for name in typed:
        if name not in known:
            takers = ", ".join(taker for taker, _ in options_by_strategy()[name])
            raise ConfigError(
                f"{flag_of(name)} is of --strategy {takers}, and the strategy is {strategy}, which takes"
                f" {', '.join(option.flag for option in known.values()) or 'no options'}"
            )
    return config_of(strategy, {name: known[name].read(value) for name, value in typed.items()})
