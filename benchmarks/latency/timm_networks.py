"""Latency models on measurements published by timm, with whole modules of timm held out.

``python -m benchmarks timm_networks --data i7 rtx3090``: folders of ``nas-ext latency dataset --from-timm``, one per
device. In the split ``modules``, no network of a test network's module is in the training data; in the split
``networks``, others are. ``quadratic`` is a polynomial of the published MACs, activations and parameters. Folds are
stored in ``--work``; the same command resumes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.parts.network_fits import Fit, compute_missing, fingerprint, stored_results
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import merge_rows
from benchmarks.parts.timm_folds import (
    Published,
    errors_by_module,
    module_folds,
    network_folds,
    quadratic,
    read,
    with_folds,
)
from nas_core.errors import NasExtError
from nas_core.files.reading import read_json
from nas_core.latency.machine import describe_machine
from nas_core.latency.registry import list_latency_models, parsed_model_settings

RESULT = Path(__file__).parents[1] / "results" / "timm_networks.json"
QUADRATIC = "quadratic"
MODELS = (QUADRATIC, "flops", "counts", "graphsage")
SPLITS = ("modules", "networks")


def folds_of(published: Published, split: str, folds: int) -> Any:
    if split == "modules":
        return module_folds(published.data.families.tolist(), folds)
    return network_folds(len(published.data), folds)


def predict_quadratic(published: Published, folds: Any) -> Any:
    """Predict each network's milliseconds ``(G,)`` from the other folds."""
    predicted = np.zeros(len(published.data))
    for fold in np.unique(folds):
        training, held_out = folds != fold, folds == fold
        predicted[held_out] = quadratic(
            published.costs[training], published.data.latency_ms[training], published.costs[held_out]
        )
    return predicted


def predict_model(
    model: str, published: Published, folds: Any, split: str, options: argparse.Namespace
) -> tuple[Any, float]:
    """Predict each network's milliseconds ``(G,)`` from the other folds, as geometric mean over seeds.

    Returns:
        Predictions, and seconds of a fit.
    """
    data = with_folds(published.data, folds, split)
    settings = tuple(parsed_model_settings(model, options.settings or []).items())
    fits = [Fit(model, name, seed, settings) for seed in options.seeds for name in data.family_names]
    compute_missing(fits, data, options.work)
    name = fingerprint(data)
    keys = [fit.key(name) for fit in fits]
    records = [record for record in stored_results(fits, options.work, name) if {k: record[k] for k in keys[0]} in keys]
    index_of = {network: index for index, network in enumerate(data.names.tolist())}
    logs = np.zeros(len(data))
    for record in records:
        logs[[index_of[network] for network in record["names"]]] += np.log(record["predicted_ms"])
    return np.exp(logs / len(options.seeds)), float(np.median([record["fit_s"] for record in records]))


def rows_of(published: Published, options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for split in SPLITS:
        folds = folds_of(published, split, options.folds)
        for model in options.models:
            if model == QUADRATIC:
                predicted, seconds = predict_quadratic(published, folds), 0.0
            else:
                predicted, seconds = predict_model(model, published, folds, split, options)
            quality = errors_by_module(predicted, published.data.latency_ms, published.data.families.tolist())
            key = {"device": published.device, "split": split, "model": model, "folds": options.folds}
            rows.append({**key, "seeds": len(options.seeds), "fit_s": round(seconds, 2), **quality})
    return rows


def dataset_summary(published: Published) -> dict[str, Any]:
    static = published.data.graphs.static
    assert static is not None
    return {
        "networks": len(published.data),
        "modules": len(published.data.family_names),
        "left_out": published.excluded,
        "batches": [int(static[:, 0].min()), int(static[:, 0].max())],
        "latency_ms": [round(float(q), 3) for q in np.quantile(published.data.latency_ms, (0, 0.5, 1))],
        "nodes": int(published.data.graphs.sizes.max()),
    }


def text(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [f"{'':46} {'MAPE %':>8} {'median %':>8} {'Acc(10 %)':>9} {'mean of modules %':>18}"]
    for row in rows:
        name = f"{row['device'][:28]:28} {row['split']:8} {row['model']:10}"
        figures = (row["mape_percent"], row["median_percent"], row["acc10_percent"])
        lines.append(
            f"{name} {figures[0]:6.2f} {figures[1]:8.2f} {figures[2]:9.1f} {row['module_mean_mape_percent']:18.2f}"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="folders of measurements, one per device")
    parser.add_argument("--models", nargs="+", choices=[QUADRATIC, *list_latency_models("graph")], default=list(MODELS))
    parser.add_argument("--folds", type=int, default=5, help="number of folds")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="seeds; predictions are averaged")
    parser.add_argument("--set", dest="settings", nargs="+", help="changed settings of the models, such as epochs=2")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("runs/timm_networks"), help="folder of the fits")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    if options.folds < 2:
        parser.error(f"--folds is {options.folds}; expected at least 2")
    torch.set_num_threads(options.threads)
    devices = read_json(options.out)["devices"] if options.out.exists() else {}
    rows: list[dict[str, Any]] = []
    try:
        for folder in options.data:
            published = read(folder)
            devices[published.device] = dataset_summary(published)
            rows += rows_of(published, options)
    except NasExtError as error:
        raise SystemExit(f"timm_networks: error: {error}") from None
    result = {
        "machine": describe_machine("cpu", options.threads),
        "devices": devices,
        "rows": merge_rows(options.out, rows, ("device", "split", "model")),
    }
    write_result(options.out, result, command(__file__, argv), adds=True)
    print(text(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
