"""``nas-ext latency train``, ``adapt`` and ``predict``: latency models of whole networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from nas_core.errors import ConfigError, NasExtError
from nas_core.export.folder import DESCRIPTION, default_sizes
from nas_core.graph.onnx.reader import OnnxNetwork, describe_unknown, read_onnx
from nas_core.latency import GraphLatencyModel, load_latency_model
from nas_core.latency.by_graph import shipped_model
from nas_core.latency.by_graph.adaptation import NETWORKS, adapted_model
from nas_core.latency.by_graph.base import MIN_NETWORKS
from nas_core.latency.by_graph.data import NetworkLatencies, family_quality
from nas_core.latency.by_graph.dataset.folder import JOURNAL, NetworkSet, load_networks, measured_on
from nas_core.latency.by_graph.dataset.runtimes import RUNTIMES
from nas_core.latency.by_graph.predict import NetworkPrediction, device_of, opened, predict_read, shipped_for
from nas_core.latency.machine import describe_machine, is_here
from nas_core.latency.registry import latency_model, list_latency_models, parsed_model_settings
from nas_core.predictor.files import OUTPUTS, new_file, write_predictions
from nas_core.predictor.progress import training_bar
from nas_core.report.tables import Column, Table

_RUNTIME = (
    "Runtime of the latencies; for a folder of 'dataset': onnxruntime (default) or torch; otherwise only recorded."
)
_COLUMNS = (
    Column("file", "file", ""),
    Column("latency_ms", "ms", ".3f"),
    Column("std_ms", "+- ms", ".3f"),
    Column("flops_g", "GFLOPs", ".3f"),
    Column("params_m", "M params", ".3f"),
)
_QUALITY = (
    Column("family", "family"),
    Column("count", "count", "d"),
    Column("mape_percent", "MAPE %", ".2f"),
    Column("acc10_percent", "Acc(10 %)", ".2f"),
)


def train(
    data: Annotated[Path, typer.Option(help="Folder of 'dataset', or networks as .npz.")],
    out: Annotated[Path, typer.Option(help="Model file to write (.safetensors).")],
    model: Annotated[str, typer.Option(help=f"Model: one of {', '.join(list_latency_models('graph'))}.")] = "ensemble",
    runtime: Annotated[str | None, typer.Option(help=_RUNTIME)] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and batches.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Setting of the model, NAME=VALUE; repeatable.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="After the evaluation, train on all networks.")] = False,
    device: Annotated[str, typer.Option(help="Device of the training: cpu, cuda, cuda:1.")] = "cpu",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Train a latency model and print its errors on held-out networks by family: MAPE and Acc(10 %)."""
    new_file(out, force, [data], [".safetensors"])
    model_class = latency_model(model, "graph")
    changes = parsed_model_settings(model, settings or [])
    fitted = model_class(**changes).on(device)
    if runtime is None and (data / JOURNAL).exists():
        measured = NetworkSet.read(data).reference_ms
        runtime = next(iter(measured)) if len(measured) == 1 else RUNTIMES[0]
    networks = load_networks(data, runtime or RUNTIMES[0])
    learned, held_out = networks.in_domain()
    fitted = _fit(fitted, learned, seed).calibrate(held_out)
    quality = family_quality(fitted.predict(held_out.graphs), held_out.latency_ms, held_out.families)
    typer.echo(Table(_QUALITY, [{"family": name, **asdict(row)} for name, row in quality.items()]).text())
    typer.echo(f"fitted on {len(learned)} networks, evaluated on {len(held_out)} held-out networks")
    if everything:
        held_out_metrics, std = fitted.info["held_out"], fitted.relative_std
        fitted = _fit(model_class(**changes).on(device), networks, seed)
        fitted.relative_std = std
        fitted.info["held_out"] = held_out_metrics
        typer.echo(f"fitted again on all {len(networks)}; the figures above are those of the first fit")
    fitted.info |= {
        **({"runtime": runtime} if runtime else {}),
        "machine": measured_on(data),
        "held_out_families": {name: asdict(row) for name, row in quality.items()},
    }
    fitted.save(out)
    typer.echo(f"{model} model of latency in {runtime or 'an unnamed runtime'}: {out}")


def adapt(
    out: Annotated[Path, typer.Option(help="Model file to write (.safetensors).")],
    model: Annotated[
        str | None,
        typer.Option(metavar="DEVICE|FILE", help="Device of a shipped model, or a model file; default: onnxruntime's."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of 'dataset', at least ten networks; default: measure now, into --out without suffix."
        ),
    ] = None,
    networks: Annotated[
        int | None, typer.Option(min=MIN_NETWORKS, help=f"Number of networks to measure; default: {NETWORKS}.")
    ] = None,
    runtime: Annotated[str | None, typer.Option(help="Runtime of the latencies; default: the model's.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Adapt a latency model of another machine to this one, by measuring a few networks on one CPU thread."""
    new_file(out, force, [data] if data else [], [".safetensors"])
    if data is not None and networks is not None:
        raise ConfigError("--networks has no effect with --data; leave out one of them")
    source = shipped_for(model) if model and not Path(model).suffix else model
    before = opened(source).machine
    folder = data or out.with_suffix("")
    count = None if data else networks or NETWORKS
    adapted = adapted_model(folder, source, networks=count, runtime=runtime)
    adapted.save(out)
    held_out = adapted.info["held_out"]
    typer.echo(
        f"{adapted.name} model of {before} on {held_out['networks']} networks of {adapted.machine} in"
        f" {adapted.info['runtime']}: error {held_out['mape_before_percent']:.1f} % before,"
        f" {held_out['mape_percent']:.1f} % after (each network held out in turn), standard deviation"
        f" {100 * adapted.relative_std:.1f} %: {out}"
    )


def predict(
    files: Annotated[list[Path], typer.Argument(help="ONNX models, with or without weights.")],
    model: Annotated[Path | None, typer.Option(help="File written by 'train'; default: a shipped model.")] = None,
    runtime: Annotated[str | None, typer.Option(help="Runtime of the shipped model; default: onnxruntime.")] = None,
    device: Annotated[str | None, typer.Option(help="Device name of the shipped model.")] = None,
    shapes: Annotated[
        list[str] | None,
        typer.Option(
            help="Shape of an input, or a dynamic dimension: x=1,3,224,224 or batch=1; repeatable. Default for files of"
            " 'nas-ext export': one sentence of 30 words, or as many as their model.json allows."
        ),
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Batch size: first dimension of all inputs.")] = None,
    out: Annotated[Path | None, typer.Option(help="Predictions (.jsonl or .csv); default: print them.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
) -> None:
    """Predict the latency of ONNX files in ms, with standard deviation, FLOPs and parameters."""
    if out is not None:
        new_file(out, force, [*files, *([model] if model else [])], OUTPUTS)
    selectors = {"--model": model, "--device": device, "--runtime": runtime}
    options = [f"{name} {value}" for name, value in selectors.items() if value is not None]
    if len(options) > 1:
        raise ConfigError(f"got {' and '.join(options)}; each selects a model, give one of them")
    sizes = _shapes(shapes or [])
    device_name = str(describe_machine("cpu", 1)["device_name"])
    if model is not None:
        selected = load_latency_model(model, "graph")
    else:
        selected = shipped_for(device) if device is not None else shipped_model(runtime or RUNTIMES[0], device_name)
    networks, unreadable = _read_networks(files, sizes, batch)
    predictions = predict_read(networks, selected)
    rows = [_row(prediction) for prediction in predictions]
    for network, prediction in zip(networks, predictions, strict=True):
        if network.unknown:
            typer.echo(f"note: {describe_unknown(network.name, network.unknown)}", err=True)
        if prediction.out_of_range:
            typer.echo(f"note: {network.name}: {prediction.out_of_range}", err=True)
    if out is not None and rows:
        write_predictions(out, rows)
        typer.echo(f"{len(rows)} predictions: {out}")
    elif rows:
        typer.echo(Table(_COLUMNS, rows).text())
    if rows:
        typer.echo(_provenance(selected, device_name), err=True)
    if unreadable:
        raise typer.Exit(2)


def _fit(model: GraphLatencyModel, networks: NetworkLatencies, seed: int) -> GraphLatencyModel:
    with training_bar(f"training {model.name}") as progress:
        return model.fit(networks, seed=seed, progress=progress)


def _shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...] | int]:
    """Parse ``["x=1,3,224,224", "batch=1"]``: a value with a comma is the shape of an input, otherwise a dimension."""
    sizes: dict[str, tuple[int, ...] | int] = {}
    for text in texts:
        name, separator, value = (item.strip() for item in text.rpartition("="))
        try:
            numbers = tuple(int(item) for item in value.rstrip(",").split(","))
        except ValueError:
            numbers = ()
        if not separator or not name or not numbers or min(numbers) < 1 or name in sizes:
            raise ConfigError(f"--shapes is {text}; expected NAME=SIZES once per name, such as x=1,3,224,224")
        sizes[name] = numbers if "," in value else numbers[0]
    return sizes


def _read_networks(
    files: Sequence[Path], shapes: Mapping[str, Any], batch: int | None
) -> tuple[list[OnnxNetwork], int]:
    """Return the readable networks and the number of unreadable files."""
    networks: list[OnnxNetwork] = []
    for path in files:
        try:
            defaults = default_sizes(path, shapes, batch)
            sizes = {**defaults, **shapes} or None
            networks.append(read_onnx(path, shapes=sizes, batch=batch, warn=False))
            if defaults:
                sizes_text = ", ".join(f"{name}={size}" for name, size in defaults.items())
                advice = f"--shapes {max(defaults, key=lambda name: defaults[name])}=SIZE"
                typer.echo(f"note: {path}: {sizes_text}, within its {DESCRIPTION}; others with {advice}", err=True)
        except NasExtError as error:
            if len(files) == 1:
                raise
            typer.echo(f"nas-ext: error: {error.command_line}", err=True)
    return networks, len(files) - len(networks)


def _row(prediction: NetworkPrediction) -> dict[str, Any]:
    row = asdict(prediction)
    unknown = row.pop("unknown")
    return {"file": row.pop("name"), **row, "unknown": sum(unknown.values())}


def _provenance(model: GraphLatencyModel, device_name: str) -> str:
    device, info = device_of(model), model.info
    location = f" on {device}" if device else ""
    held_out = info.get("held_out")
    error = held_out.get("mape_percent") if isinstance(held_out, Mapping) else None
    has_error = isinstance(error, int | float)
    quality = f"held-out MAPE {error:.2f} %" if has_error else "standard deviation from training residuals"
    note = f"; this machine is {device_name}, where times differ" if device and not is_here(device) else ""
    return (
        f"{model.name} model of {info.get('networks', 'unknown')} networks in"
        f" {info.get('runtime', 'an unnamed runtime')}{location}, {quality}{note}"
    )
