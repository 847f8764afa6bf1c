"""``nas-ext lab predictor``: train accuracy predictors and predict with them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from nas_core.errors import ConfigError
from nas_core.predictor import (
    ACCURACY_MODELS,
    AccuracyModel,
    PriorPredictor,
    Reader,
    StatisticsPredictor,
    kendall_tau,
    load_accuracy_model,
    reader_for,
)
from nas_core.predictor.base import UNSEEN, parsed_accuracy_settings
from nas_core.predictor.files import (
    OUTPUTS,
    Records,
    holdout_split,
    new_file,
    only_training,
    prediction_rows,
    read_records,
    write_predictions,
)
from nas_core.predictor.metrics import mape
from nas_core.predictor.progress import member_file
from nas_core.predictor.readers import reader_names
from nas_core.predictor.recipes import RECIPES
from nas_core.report.tables import Column, Table

app = typer.Typer(no_args_is_help=True, help="Train and use predictors that read architectures as graphs.")

_READER = f"Graph reader of the architectures: one of {', '.join(reader_names())}."
_MODEL = f"Model: one of {', '.join(ACCURACY_MODELS.names())}."
_SET = f"Setting of the model, NAME=VALUE; repeatable. The setting recipe of nn-former is one of {', '.join(RECIPES)}."
_DEVICE = "Device: cpu, cuda, cuda:1."
_UNSEEN = f"What to do about operations that no training record has: {', '.join(UNSEEN)}; default: as in training."
_FORCE = "Replace existing output files."


@app.command("train")
def train(
    data: Annotated[
        Path, typer.Option(help="Records (.jsonl), each with a graph or architecture and a target number.")
    ],
    out: Annotated[Path, typer.Option(help="Predictor file to write (.safetensors).")],
    reader: Annotated[str | None, typer.Option(help=_READER)] = None,
    target: Annotated[str, typer.Option(help="Field of the target number.")] = "target",
    model: Annotated[str, typer.Option(help=_MODEL)] = StatisticsPredictor.name,
    holdout: Annotated[float, typer.Option(help="Fraction of records held out for evaluation.")] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split, the weights and the batches.")] = 0,
    settings: Annotated[list[str] | None, typer.Option("--set", help=_SET)] = None,
    device: Annotated[str, typer.Option(help=_DEVICE)] = "cpu",
    force: Annotated[bool, typer.Option("--force", help=_FORCE)] = False,
) -> None:
    """Train a predictor and evaluate it on held-out records. An interrupted training of nn-former resumes."""
    new_file(out, force, [data], [".safetensors"])
    changes = parsed_accuracy_settings(model, settings or [])
    predictor = ACCURACY_MODELS.get(model)(seed=seed, device=device, **changes)
    records = read_records(data, None if reader is None else reader_for(reader), target)
    needed = predictor.prepare(records.graphs)  # held-out records have to fit the model too
    learned, held_out = holdout_split(records.graphs, holdout, seed)
    with only_training(out):
        seconds = _fit(predictor, records.take(learned), out.with_name(f"{out.name}.unfinished"))
        quality = _quality(predictor, records.take(held_out))
        predictor.info |= {"reader": reader, "target": target, "held_out": quality}
        predictor.save(out)
    _print_quality(quality, len(learned), seconds)
    if needed:
        typer.echo("set by the data: " + ", ".join(f"{name}={value}" for name, value in needed.items()))
    typer.echo(f"{predictor.name} predictor of {target!r}: {out}")


@app.command("predict")
def predict(
    model: Annotated[
        Path, typer.Option(help="File written by 'train', or prior for the model prior without training.")
    ],
    data: Annotated[Path, typer.Option(help="Records (.jsonl), each with a graph or architecture.")],
    out: Annotated[Path | None, typer.Option(help="Predictions (.jsonl or .csv); default: print them.")] = None,
    reader: Annotated[
        str | None, typer.Option(help="Graph reader of the architectures; default: as in training.")
    ] = None,
    unseen: Annotated[str | None, typer.Option(help=_UNSEEN)] = None,
    device: Annotated[str, typer.Option(help=_DEVICE)] = "cpu",
    force: Annotated[bool, typer.Option("--force", help=_FORCE)] = False,
) -> None:
    """Predict the value of each record; with standard deviations if the predictor has them."""
    if out is not None:
        new_file(out, force, [model, data], OUTPUTS)
    predictor = _opened(model, device, unseen)
    records = read_records(data, _reader_of(predictor, model, reader))
    predicted, std = predictor.predictions(records.graphs)
    rows = prediction_rows(records, predicted, std)
    if out is not None:
        write_predictions(out, rows)
        typer.echo(f"{len(rows)} predictions: {out}")
        return
    target = predictor.info.get("target") or "target"
    header = "prediction" if target == "target" else f"predicted {target}"
    columns = [Column("record", "record", "d"), Column("prediction", header, ".6g")]
    typer.echo(Table([*columns, Column("std", "std", ".2g")], rows).without_empty_columns().text())


def _fit(predictor: AccuracyModel, records: Records, unfinished: Path) -> float:
    start_time = time.perf_counter()
    try:
        predictor.fit(records.graphs, records.targets, progress=True, checkpoint=unfinished)
    except KeyboardInterrupt:
        saved = member_file(unfinished, 0).exists()
        state = "resumes from the last half minute" if saved else "starts again: nothing was saved yet"
        typer.echo(f"interrupted; the same command {state}", err=True)
        raise
    return time.perf_counter() - start_time


def _quality(predictor: AccuracyModel, records: Records) -> dict[str, Any]:
    if not len(records.graphs):
        return {}
    strict, predictor.unseen = predictor.unseen, "warn"  # only held-out graphs may have a rare operation
    predicted = predictor.predict(records.graphs)
    predictor.unseen = strict
    quality: dict[str, Any] = {"graphs": len(predicted), "kendall_tau": kendall_tau(predicted, records.targets)}
    if records.targets.min() > 0:
        quality["mape_percent"] = mape(predicted, records.targets)
    return quality


def _print_quality(quality: dict[str, Any], learned: int, seconds: float) -> None:
    if quality:
        error = f", MAPE {quality['mape_percent']:.2f} %" if "mape_percent" in quality else ""
        typer.echo(f"held out: {quality['graphs']} graphs, Kendall tau {quality['kendall_tau']:.3f}{error}")
        only = "; the saved predictor was fitted to these only (--holdout 0 trains on all)"
    else:
        only = ", which are all; no held-out evaluation"
    typer.echo(f"trained in {seconds:.1f} s on {learned} graphs{only}")


def _opened(model: Path, device: str, unseen: str | None) -> AccuracyModel:
    if str(model) == "prior" and not model.exists():
        return PriorPredictor(device=device, unseen=unseen or "error")
    return load_accuracy_model(model, device, unseen)


def _reader_of(predictor: AccuracyModel, path: Path, requested: str | None) -> Reader | None:
    trained = predictor.info.get("reader")
    if trained and requested and requested != trained:
        raise ConfigError(f"{path} was trained with reader {trained!r}; leave out --reader {requested}")
    name = trained or requested
    return None if name is None else reader_for(name)
