"""``nas-ext latency``: measure latencies, fit latency models and predict with them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from nas_core.cli.latency import networks
from nas_core.cli.latency.dataset import dataset as dataset_
from nas_core.cli.options import (
    Workload,
    parameters_of,
    settings_help,
    with_options,
    workload_config,
    workload_help,
)
from nas_core.differences import first_difference
from nas_core.errors import ConfigError
from nas_core.jobs import EXECUTORS, JobsConfig, jobs_config
from nas_core.latency import TimingConfig, load_latency_model, measure
from nas_core.latency.by_genes.base import GeneLatencyModel
from nas_core.latency.by_genes.collect import MeasureMany, reference_architecture
from nas_core.latency.by_genes.collect import collect as collect_latencies
from nas_core.latency.by_genes.dataset import LatencyData, load_latency_data
from nas_core.latency.by_genes.fit import LEGEND, Quality, evaluate, fit, quality_warnings
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import timing_of
from nas_core.latency.registry import describe_latency_models, latency_model, parsed_model_settings
from nas_core.models.kind import kind_of, workload_of
from nas_core.options import config_from, read_pairs
from nas_core.report.tables import Column, Table
from nas_core.space import Architecture, SearchSpace, get_space

app = typer.Typer(no_args_is_help=True, help="Measure latency, fit and check latency models.")
app.command("dataset")(dataset_)
app.command("train")(networks.train)
app.command("adapt")(networks.adapt)
app.command("predict")(networks.predict)


def _collect(
    out: Annotated[Path, typer.Option(help="File of measurements (.jsonl); an existing file is continued.")],
    samples: Annotated[int, typer.Option(min=1, help="Total number of measured architectures.")],
    space: Annotated[str | None, typer.Option(help="Name of a search space, or a YAML file.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Instead of --space: supernet that gives the space and sizes such as vocabularies."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="For text: folder of fairseq-preprocess, whose dictionaries give the vocabulary sizes; with"
            " --checkpoint only if the folder moved since training."
        ),
    ] = None,
    workload: Workload = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random architectures.")] = 0,
    predicted_by: Annotated[
        Path | None, typer.Option(help="Predict with this model of 'latency train' instead of measuring.")
    ] = None,
    executor: Annotated[str, typer.Option(help="local: measure in this process; submitit: in jobs.")] = EXECUTORS[0],
    job: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Setting of submitit's jobs; repeatable.")
    ] = None,
    *,
    timing_options: Mapping[str, Any],
) -> None:
    from nas_core.latency.by_genes.collect import SubmititMeasurements
    from nas_core.latency.by_genes.predicted import PredictedMeasurements

    if out.suffix != ".jsonl":
        raise ConfigError(f"--out is {out}; expected a name ending in .jsonl")
    timing = config_from(TimingConfig, timing_options, "option of the timing")
    threads = {"cpus": timing.threads} if executor != "local" else {}
    jobs = jobs_config(executor, timing.device, {**threads, **read_pairs("job", job or [])})
    searched, task = _space_and_task(space, checkpoint, data)
    kind = kind_of(searched)
    config = workload_config(kind, workload or [], task, None if checkpoint else data)
    measure_many: MeasureMany | None = None
    if jobs:
        measure_many = SubmititMeasurements(searched, config, timing, jobs, out.with_name(f"{out.name}.jobs"))
    described, note = kind.workload_to_dict(config), ""
    if predicted_by is not None:
        if jobs:
            raise ConfigError("--predicted-by and --executor exclude each other; leave out one of them")
        measure_many = predicted = PredictedMeasurements(searched, config, predicted_by)
        described, note = predicted.described, ", predicted and not measured"
    build = functools.partial(kind.workload, searched, config=config, device=timing.device)
    dataset = collect_latencies(out, searched, build, samples, timing, described, seed, measure_many=measure_many)
    measured = dataset.data()
    typer.echo(
        f"{len(measured)} architectures of {searched.name} in {out}: {measured.latency_ms.min():.2f} to"
        f" {measured.latency_ms.max():.2f} ms on {dataset.machine['device_name']}, {timing.threads} thread(s){note}"
    )


def _space_and_task(
    space: str | None, checkpoint: Path | None, data: Path | None
) -> tuple[SearchSpace, Mapping[str, Any]]:
    if checkpoint is not None and space is None:
        from nas_core.supernet.host import open_supernet

        supernet = open_supernet(checkpoint, data=None if data is None else str(data))
        return supernet.space, supernet.task
    if space is None or checkpoint is not None:
        raise ConfigError(
            "got both or none of --space and --checkpoint; give --space (a name of 'lab space list' or a YAML file) or"
            " --checkpoint (a supernet)"
        )
    return get_space(space), {}


_COLLECT = """Measure random architectures of a search space. The same command resumes; a larger --samples adds more.

A reference architecture is measured in between to correct for drift of the machine's speed. With submitit, each job
measures a part of the architectures on its own machine. The machines must be equal; with cluster=local, jobs run one at
a time.
"""
_JOBS = settings_help("Jobs of submitit; --job NAME=VALUE, such as slurm.constraint=a100", JobsConfig)
_HELP = "\n\n".join([_COLLECT, workload_help(), _JOBS])
app.command("collect")(with_options(_collect, {"timing_options": parameters_of(TimingConfig)}, _HELP))


@app.command("fit")
def fit_(
    data: Annotated[Path, typer.Option(help="Measurements: .jsonl of 'collect', or a latency table of HAT (.csv).")],
    out: Annotated[Path, typer.Option(help="Model file to write (.json).")],
    model: Annotated[str, typer.Option(help=f"{describe_latency_models('genes')}.")] = "linear",
    holdout: Annotated[float, typer.Option(help="Fraction of measurements held out for evaluation.")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Setting of the model, NAME=VALUE; repeatable.")
    ] = None,
    space: Annotated[str | None, typer.Option(help="Search space of a latency table of HAT.")] = None,
) -> None:
    """Fit a latency model and print its quality on held-out measurements, with warnings if it is poor."""
    if out.suffix != ".json":
        raise ConfigError(f"--out is {out}; expected a name ending in .json")
    model_class = latency_model(model, "genes")
    config = model_class.config_class(**parsed_model_settings(model, settings or []))
    measured = load_latency_data(data, get_space(space) if space else None)
    fitted, metrics = fit(measured, lambda: model_class(measured.space, measured.source, config), holdout, seed)
    fitted.save(out)
    _print_quality({"held out": metrics})
    typer.echo(f"{model} model of {len(measured)} measurements in {measured.space.name}: {out}")


@app.command("check")
def check(
    model: Annotated[Path, typer.Option(help="File written by 'fit'.")],
    data: Annotated[Path | None, typer.Option(help="Other measurements to compare with.")] = None,
    architecture: Annotated[Path | None, typer.Option(help="Architecture file to predict and measure.")] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Number of timed passes; default: as in 'collect'.")
    ] = None,
) -> None:
    """Compare a latency model with other measurements, or with a measurement of one architecture now."""
    if (data is None) == (architecture is None):
        raise ConfigError("got both or none of --data and --architecture; expected one of them")
    fitted = load_latency_model(model, "genes")
    if data is not None:
        _print_quality(_check_data(fitted, load_latency_data(data, fitted.space)), fitted=False)
    elif architecture is not None:
        typer.echo(_check_architecture(fitted, Architecture.load(architecture), repeats, str(model)))


_QUALITY = (
    Column("name", ""),
    Column("count", "rows", "d"),
    Column("mape_percent", "MAPE %", ".2f"),
    Column("r2", "R2", ".4f"),
    Column("kendall_tau", "tau", ".4f"),
    Column("coverage_percent", "coverage %", ".1f"),
    Column("options_percent", "options %", ".1f"),
)


def _print_quality(rows: dict[str, Quality], fitted: bool = True) -> None:
    table = Table(_QUALITY, [{"name": name, **asdict(quality)} for name, quality in rows.items()])
    typer.echo(f"{table.text()}\n\n{LEGEND}\n")
    for warning in quality_warnings(list(rows.values())[-1], fitted):
        typer.echo(f"warning: {warning}", err=True)


def _check_data(model: GeneLatencyModel, data: LatencyData) -> dict[str, Quality]:
    rows = {"as measured": evaluate(model, data)}
    if difference := first_difference(_conditions(model.info), _conditions(data.info)):
        name, fitted, measured = difference
        typer.echo(f"note: the data were measured with {name} {measured}, the model was fitted to {fitted}", err=True)
    elif model.info.get("reference_ms") and data.info.get("reference_ms"):
        state = model.info["reference_ms"] / data.info["reference_ms"]
        rows["in the machine state of the fit"] = evaluate(model, replace(data, latency_ms=data.latency_ms * state))
    return rows


def _conditions(info: Mapping[str, Any]) -> dict[str, Any]:
    settings = info.get("settings") or {}
    timing = settings.get("timing") or {}
    conditions = {name: timing.get(name) for name in ("clock", "precision")}
    return {"workload": settings.get("workload"), **conditions}


def _check_architecture(model: GeneLatencyModel, architecture: Architecture, repeats: int | None, path: str) -> str:
    settings = model.info.get("settings") or {}
    workload = workload_of(settings.get("workload") or {})
    if workload is None:
        raise ConfigError(
            f"{path} was fitted to a table or to predictions and lacks measurement settings; give --data instead of"
            " --architecture"
        )
    kind, config = workload
    timing = timing_of(settings, **({"repeats": repeats} if repeats else {})).checked_here()
    machine, fitted_machine = describe_machine(timing.device, timing.threads), model.info.get("machine")
    if machine != fitted_machine:
        typer.echo(f"note: measuring on {machine['device_name']}, the model was fitted to {model.machine}", err=True)
    predicted_ms = float(model.predict(architecture)[0])
    low, high = (predicted_ms * factor for factor in model.interval)
    measured = measure(
        kind.workload(model.space, architecture, config, timing.device),
        kind.workload(model.space, reference_architecture(model.space), config, timing.device),
        timing,
    )
    corrected_ms = measured.corrected_ms(model.info["reference_ms"])
    error, std_note = predicted_ms / corrected_ms - 1, f"+- {measured.std_ms:.2f} over {timing.repeats} passes"
    lines = [
        ("predicted", predicted_ms, f"for {model.machine} ({low:.2f} to {high:.2f} in nine of ten cases)"),
        ("measured, as in the fit", corrected_ms, f"prediction {error:+.1%}"),
        ("measured, as it is now", measured.raw_ms, std_note),
        *((f"  {component}", value, "") for component, value in measured.components_ms.items()),
    ]
    table = [f"{name:24} {value:9.2f} ms   {note}".rstrip() for name, value, note in lines]
    return "\n".join([f"{'architecture':24} {architecture.key}", *table])
