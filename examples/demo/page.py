"""The demo's table and its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nas_core.latency.by_genes import LinearModel, load_latency_data
from nas_core.latency.by_genes.fit import random_split
from nas_core.report import Column, Mark, Page, Table, describe, limit_notes, plots, read_run
from nas_core.report.page import interactive
from nas_core.report.search.pictures import cloud_of
from nas_core.report.search.points import points_of
from nas_core.report.search.run import limit_label
from nas_core.space import Architecture

COLUMNS = (
    Column("name", "subnet"),
    Column("shape", "architecture"),
    Column("params_m", "params (M)", ".3f"),
    Column("predicted_ms", "predicted (ms)", ".1f"),
    Column("measured_ms", "measured (ms)", ".1f"),
    Column("loss", "valid loss", ".3f"),
    Column("bleu", "BLEU", ".1f"),
)


def shape(architecture: Architecture) -> str:
    """Layers x width (and the sum of feed-forward sizes) of both sides: ``enc 3x128 ffn 1152, dec 1x96 ffn 256``."""
    sides = []
    for side in ("encoder", "decoder"):
        ffn = sum(architecture.numbers(f"{side}.ffn_dim"))
        layers, width = architecture.number(f"{side}.layers"), architecture.number(f"{side}.embed_dim")
        sides.append(f"{side[:3]} {layers}x{width} ffn {ffn}")
    return ", ".join(sides)


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(COLUMNS, rows)


def write_page(path: Path, search: Path, measurements: Path, results: Mapping[str, Any]) -> None:
    """The page of a finished run: table, Pareto pictures, latency model, course of the search, translations.

    Args:
        path: HTML file to write.
        search: folder of ``nas-ext search``.
        measurements: file of ``nas-ext latency collect``.
        results: what ``results.json`` holds.
    """
    run = read_run(search)
    rows = results["subnets"]
    page = Page("Fast translation models, searched", _lead(results))
    page.facts(results["facts"])
    page.heading("Subnets with inherited weights")
    page.table(table(rows))
    page.paragraph(
        f"BLEU of {results['facts']['test sentences']} ({results['bleu_signature']}); parameters without embeddings;"
        " latency of translating one sentence, predicted by the latency model and measured again after the search."
    )
    for note in limit_notes(run):
        page.paragraph(note)
    page.heading("Pareto front")
    marks = [Mark(row["name"], row["predicted_ms"], row["loss"]) for row in rows if row.get("loss") is not None]
    scored = [Mark(row["name"], row["measured_ms"], -row["bleu"]) for row in rows if row.get("measured_ms")]
    axes = ("predicted latency (ms)", "validation loss (bits per token)")
    points, limits = points_of([run]), run.limits("latency_ms")
    evaluated = [row for row in rows if row.get("loss") is not None]
    named = [
        interactive.Label(mark.name, mark.x, mark.y, points.number(0, row["key"]))
        for mark, row in zip(marks, evaluated, strict=True)
    ]
    cloud = replace(cloud_of(run, points, "latency_ms", "evaluated"), labels=named)
    page.plot(
        interactive.fronts([cloud], *axes, limits, named="subnets of the table"),
        "validation loss against predicted latency of every evaluated architecture",
        "Every dot is an architecture evaluated with the supernet's weights: point at it to read it, click to see it"
        " below. Circles are the subnets of the table.",
        plots.pareto(run.points("latency_ms"), marks, limits, *axes),
    )
    page.points(points, next((label.number for label in named if label.number is not None), 0))
    page.heading("Measured again")
    page.images(
        [
            (
                plots.scores([Mark(mark.name, mark.x, -mark.y) for mark in scored], "measured latency (ms)", "BLEU"),
                "BLEU of the extracted subnets against their measured latency",
                "BLEU of the extracted subnets against their measured latency.",
            ),
            (
                plots.agreement(_agreement(measurements, rows)),
                "predicted against measured latency",
                "Latency model: architectures it was not fitted to, and the finalists measured again.",
            ),
        ]
    )
    page.heading("Course of training and of the search")
    page.images(
        [
            (
                plots.curves(_training(results["training"]), "updates", "validation loss (bits per token)"),
                "validation loss of the smallest and of the largest subnet during training",
                "Training of the supernet: the same weights, as the smallest and as the largest subnet.",
            ),
            (
                plots.progress({limit_label(name): values for name, values in run.history().items()}),
                "best validation loss over the evaluations",
                "Best loss so far in each search; what an earlier search has evaluated is not evaluated again.",
            ),
        ]
    )
    page.heading("Translations")
    for example in results["examples"]:
        given = {"source": example["source"], "reference": example["reference"]}
        page.example(given, example["outputs"], example["reference"])
    page.heading("Architectures")
    page.facts({row["name"]: describe(Architecture(row["genes"])) for row in rows})
    page.save(path)


def _lead(results: Mapping[str, Any]) -> str:
    facts = results["facts"]
    return f"{facts['corpus']}; search space {facts['search space']}; {facts['experts']}. Took {facts['wall time']}."


def _training(losses: Mapping[str, Sequence[float]]) -> dict[str, tuple[Sequence[float], Sequence[float]]]:
    return {name: (losses["updates"], values) for name, values in losses.items() if name != "updates"}


def _agreement(measurements: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[list[float], list[float]]]:
    """Predicted and measured ms of held-out architectures (by a model fitted without them) and of the finalists."""
    data = load_latency_data(measurements)
    train, held_out = random_split(len(data), 0.2, 0)
    twin = LinearModel(data.space, data.source).fit(data.inputs[train], data.latency_ms[train])
    predicted = twin.predict_inputs(data.inputs[held_out])
    found = [row for row in rows if row.get("limit_ms") and row.get("measured_ms")]
    return {
        "held out": (predicted.tolist(), data.latency_ms[held_out].tolist()),
        "finalists": ([row["predicted_ms"] for row in found], [row["measured_ms"] for row in found]),
    }
