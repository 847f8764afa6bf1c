"""HTML page of measured latencies and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.files.reading import real_path
from nas_core.latency import LatencyModel, load_latency_model
from nas_core.report.measured import figures
from nas_core.report.measured.collection import Collection, MeasuredNetwork, flat, read_collection
from nas_core.report.measured.evaluation import ALL, Evaluation, evaluate_latency_model
from nas_core.report.page import ARCHITECTURE_FILE, Field, Page, Points, Row
from nas_core.report.tables import Column, Table

_SHORT = 300
"""Largest number of displayed characters of a setting."""


def write_latency_report(
    data: str | Path, path: str | Path, model: str | Path | None = None, runtime: str | None = None
) -> list[Table]:
    """Write the HTML page of a latency dataset; return its tables.

    Args:
        data: folder of ``nas-ext latency dataset`` or file of ``nas-ext latency collect``.
        model: file of ``nas-ext latency train`` for a folder, of ``nas-ext latency fit`` for a file.
        runtime: runtime of a folder; default: the model's if measured, otherwise the first one.
    """
    collection = read_collection(data, runtime)
    opened = load_latency_model(model, "graph" if Path(data).is_dir() else "genes") if model else None
    if opened and runtime is None and opened.info.get("runtime") in collection.runtimes:
        collection = read_collection(data, str(opened.info["runtime"]))
    evaluation, places = evaluate_latency_model(collection, opened, Path(model)) if opened and model else (None, [])
    times = collection.values("latency_ms")
    page = Page(
        f"Latency of {collection.noun}: {real_path(collection.path).name}",
        f"{len(times)} {collection.noun}, {times.min():.3g} to {times.max():.3g} ms, in {collection.runtime} on"
        f" {collection.machine.get('device_name', 'an unnamed machine')}.",
    )
    for warning in collection.warnings:
        page.paragraph(warning)
    page.facts(collection.facts)
    page.details("Settings and versions", flat({"settings": collection.settings, "machine": collection.machine}))
    tables = [family_table(collection)]
    page.heading("Measurements")
    page.table(tables[0])
    page.paragraph(
        f"Latencies are corrected for clock drift. Error: standard error of a latency, {collection.error_definition};"
        " median of each row, as for FLOPs and parameters."
    )
    if collection.skipped:
        page.details("Skipped networks", {name: reason for name, _, reason in collection.skipped})
    if evaluation is not None and opened is not None and model is not None:
        tables += _add_evaluation(page, collection, evaluation, places, opened, Path(model))
    shown = [(name, title) for name, title in (("flops_g", "FLOPs (G)"), ("params_m", "parameters (M)"))
             if np.isfinite(collection.values(name)).any()]  # fmt: skip
    if shown:
        page.heading("Size and latency")
    for name, title in shown:
        page.plot(figures.sizes(collection, name, title), f"measured latency over {title}")
    page.heading("Drift of the machine")
    page.plot(figures.drift(collection), "how much slower than the median the machine was over the collection")
    median = int(np.argsort(times, kind="stable")[len(times) // 2])
    first = median if evaluation is None else places[evaluation.worst(1)[0]]
    page.points(_points(collection, evaluation, places), first)
    page.save(path)
    return tables


def _add_evaluation(
    page: Page, collection: Collection, evaluation: Evaluation, places: Sequence[int], model: LatencyModel, path: Path
) -> list[Table]:
    page.heading("Predicted against measured")
    metrics = model.info.get("held_out") or model.info.get("metrics") or {}
    error = metrics.get("mape_percent")
    page.facts(
        {
            "model": f"{real_path(path)} ({model.name})",
            "fitted to": f"{model.info.get('networks') or model.info.get('measurements')} {collection.noun}",
            "measured on": (model.info.get("machine") or {}).get("device_name"),
            "held-out error of its training": None if error is None else f"{error:.2f} %",
        }
    )
    page.paragraph(evaluation.note(collection.noun))
    if unread := len(collection.networks) - len(places):
        page.paragraph(f"{unread} networks have no prediction because their ONNX files cannot be read.")
    for note in _differences(collection, model):
        page.paragraph(note)
    page.plot(
        figures.agreement(evaluation, places, "ms"),
        "predicted against measured latency of each network, coloured by family",
        "The band is 10 % on either side."
        + " Vertical lines: one standard deviation of the prediction." * evaluation.has_deviation,
    )
    page.heading("Errors")
    table = _error_table(evaluation, collection.noun)
    page.table(table)
    return [table]


def _differences(collection: Collection, model: LatencyModel) -> list[str]:
    notes = []
    trained, measured = model.info.get("machine") or {}, collection.machine
    for name, difference in (("device_name", "on another machine"), ("threads", "with another number of threads")):
        if trained.get(name) and measured.get(name) and trained[name] != measured[name]:
            notes.append(f"The model was measured {difference}: {trained[name]}, the data on {measured[name]}.")
    runtime = model.info.get("runtime")
    if model.by == "graph" and runtime and runtime != collection.runtime:
        notes.append(f"The model predicts {runtime}, the data are of {collection.runtime}.")
    workload = (model.info.get("settings") or {}).get("workload")
    if model.by == "genes" and workload != collection.settings.get("workload"):
        notes.append("The model was fitted to another workload than these measurements.")
    return notes


def family_table(collection: Collection) -> Table:
    """Return a row of latencies and sizes per family, and one of all networks."""
    families: list[str | None] = [*collection.families]
    rows = [_family_row(collection, family) for family in (*families, *[None] * (len(families) > 1))]
    columns = [
        Column("family", "family" if collection.space is None else "space"),
        Column("networks", collection.noun, "d"),
        *([Column("skipped", "skipped", "d")] if collection.skipped else []),
        Column("min", "min ms", ".2f"),
        Column("median", "median ms", ".2f"),
        Column("max", "max ms", ".2f"),
        Column("error", "error (%)", ".2f"),
        Column("flops_g", "GFLOPs", ".3f"),
        Column("params_m", "params (M)", ".2f"),
        Column("again", "again", "d"),
        Column("differ", "longer (%)", "+.2f"),
    ]
    return Table(columns, rows).without_empty_columns()


def _family_row(collection: Collection, family: str | None) -> dict[str, Any]:
    networks = [network for network in collection.networks if family in (None, network.family)]

    def known(name: str) -> list[float]:
        return [value for network in networks if (value := getattr(network, name)) is not None]

    times, differences = known("latency_ms"), known("again_percent")
    medians = {"median": times, "error": known("error_percent"), "differ": differences}
    medians |= {name: known(name) for name in ("flops_g", "params_m")}
    return {
        "family": family or ALL,
        "networks": len(networks),
        "skipped": sum(family in (None, skipped) for _, skipped, _ in collection.skipped),
        "min": min(times, default=None),
        "max": max(times, default=None),
        "again": len(differences) or None,
        **{name: float(np.median(values)) if values else None for name, values in medians.items()},
    }


def _error_table(evaluation: Evaluation, noun: str) -> Table:
    rows = evaluation.rows()
    if evaluation.held_out and evaluation.learned is not None and evaluation.learned.any():
        learned = {row["family"]: row["mape"] for row in evaluation.rows(evaluation.learned)}
        rows = [{**row, "learned": learned.get(row["family"])} for row in rows]
    columns = [
        Column("family", "family"),
        Column("scored", f"{noun} held out" if evaluation.held_out else noun, "d"),
        Column("mape", "mean error (%)", ".2f"),
        Column("within", "within 10 %", ".1f"),
        Column("inside", "within std", ".1f"),
        Column("bias", "signed (%)", "+.2f"),
        Column("worst", "worst (%)", "+.1f"),
        Column("learned", "of learned ones (%)", ".2f"),
    ]
    return Table(columns, rows).without_empty_columns()


def _points(collection: Collection, evaluation: Evaluation | None, places: Sequence[int]) -> Points:
    networks = collection.networks
    columns: dict[Field, Sequence[Any]] = {
        Field("family"): [network.family if len(collection.families) > 1 else None for network in networks],
        Field("measured", "ms", 3): [network.latency_ms for network in networks],
        Field("standard error", "%", 2): [network.error_percent for network in networks],
    }
    about: dict[int, str] = {}
    if evaluation is not None:
        predictions = {"predicted": evaluation.predicted, "off by": evaluation.percent}
        predictions |= {"standard deviation": evaluation.deviation} if evaluation.has_deviation else {}
        for title, values in predictions.items():
            by_place = dict(zip(places, values.tolist(), strict=True))
            field = Field(title, "%", 1) if title == "off by" else Field(title, "ms", 3)
            columns[field] = [by_place.get(place) for place in range(len(networks))]
        learned = zip(places, evaluation.learned.tolist() if evaluation.learned is not None else (), strict=False)
        about = {place: f"The model has {'' if was else 'not '}learned it." for place, was in learned}
    columns[Field("FLOPs", "G", 3)] = [network.flops_g for network in networks]
    columns[Field("parameters", "M", 3)] = [network.params_m for network in networks]
    columns[Field("operators", "", 0)] = [network.nodes for network in networks]
    rows = [
        Row(
            network.name,
            [values[place] for values in columns.values()],
            about=[about.get(place, "")],
            facts=_facts(network),
            genes={} if network.architecture is None else network.architecture.to_dict(),
        )
        for place, network in enumerate(networks)
    ]
    if collection.space is None:
        return Points(list(columns), rows, "network")
    genes = [choice.name for choice in collection.space.choices if any(len(set(row)) > 1 for row in choice.options)]
    return Points(list(columns), rows, "architecture", genes, file=ARCHITECTURE_FILE)


def _facts(network: MeasuredNetwork) -> dict[str, str]:
    times = {"as measured, with drift": network.raw_ms, "reference": network.reference_ms, **network.parts_ms}
    second = {} if network.again_percent is None else {"measured again": f"{network.again_percent:+.1f} %"}
    facts = {name: f"{value:.3f} ms" for name, value in times.items() if value is not None}
    return {**facts, **second, **{name: _text(value)[:_SHORT] for name, value in network.settings.items()}}


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return "/".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
