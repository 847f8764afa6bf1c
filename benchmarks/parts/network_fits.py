"""Fits of network latency models, each of one model, split and seed, stored in separate files."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts.flops import describe_settings
from benchmarks.parts.resumable import settings_hash
from nas_core.errors import unknown_choice
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.latency.by_graph.data import NetworkLatencies, family_quality
from nas_core.latency.registry import latency_model

IN_DOMAIN = "in-domain"
"""Name of the split with all families on both sides; other splits are named after the held-out family."""


@dataclass(frozen=True)
class Fit:
    model: str
    split: str
    seed: int
    settings: tuple[tuple[str, Any], ...] = ()

    def key(self, data: str) -> dict[str, Any]:
        """Return the identifying fields of the result.

        Args:
            data: fingerprint of the networks.
        """
        settings = describe_settings(latency_model(self.model, "graph")(**dict(self.settings)))
        return {
            "model": self.model,
            "split": self.split,
            "seed": self.seed,
            "settings": settings_hash(settings),
            "data": data,
        }

    def file(self, folder: Path, data: str) -> Path:
        key = self.key(data)
        return folder / f"{self.model}-{self.split}-{self.seed}-{key['settings']}-{data}.json"


def interval_coverage(records: list[dict[str, Any]], data: NetworkLatencies) -> dict[str, float]:
    """Return split -> percentage of networks within one predicted standard deviation, for one model and seed."""
    measured = dict(zip(data.names.tolist(), data.latency_ms.tolist(), strict=True))
    ratios_and_stds: dict[str, tuple[Any, Any]] = {}
    for record in records:
        ratio = np.array([measured[name] for name in record["names"]]) / record["predicted_ms"]
        ratios_and_stds[record["split"]] = ratio, np.array(record.get("deviation", np.zeros(len(ratio))))
    if IN_DOMAIN not in ratios_and_stds:
        return {}
    low, high = np.quantile(ratios_and_stds[IN_DOMAIN][0], (0.16, 0.84))
    stds = {split: np.hypot((high - low) / 2, deviation) for split, (_, deviation) in ratios_and_stds.items()}
    return {
        split: round(float((abs(ratio - 1) <= stds[split]).mean() * 100), 1)
        for split, (ratio, _) in ratios_and_stds.items()
    }


def fingerprint(data: NetworkLatencies) -> str:
    """Return a short hash of networks, latencies and splits."""
    digest = hashlib.sha256()
    for part in (data.latency_ms, data.graphs.ops, data.graphs.edges, data.graphs.costs, data.held_out):
        digest.update(b"" if part is None else np.ascontiguousarray(part).tobytes())
    digest.update("\n".join([*data.families.tolist(), *data.names.tolist()]).encode())
    return digest.hexdigest()[:8]


def out_of_domain(data: NetworkLatencies, family: str) -> tuple[NetworkLatencies, NetworkLatencies]:
    """Split into training networks of all other families and test networks of one family."""
    if family not in data.family_names:
        raise unknown_choice("family of networks", family, data.family_names)
    return data.take(data.families != family), data.take(data.families == family)


def run_fit(fit: Fit, data: NetworkLatencies) -> dict[str, Any]:
    """Fit and evaluate; no checkpoint is selected."""
    train, test = data.in_domain() if fit.split == IN_DOMAIN else out_of_domain(data, fit.split)
    model = latency_model(fit.model, "graph")(**dict(fit.settings))
    start, cpu_start = time.perf_counter(), time.process_time()
    model.fit(train, seed=fit.seed)
    fit_end = time.perf_counter()
    fit_cpu_s = time.process_time() - cpu_start
    predicted, std = model.predict_with_std(test.graphs)
    deviation = np.sqrt(np.maximum((std / predicted) ** 2 - model.relative_std**2, 0))
    return {
        **fit.key(fingerprint(data)),
        "quality": {
            name: asdict(quality) for name, quality in family_quality(predicted, test.latency_ms, test.families).items()
        },
        "train_networks": len(train),
        "fit_s": round(fit_end - start, 2),
        "fit_cpu_s": round(fit_cpu_s, 2),
        "predict_s": round(time.perf_counter() - fit_end, 3),
        "names": test.names.tolist(),
        "predicted_ms": [float(f"{value:.5g}") for value in predicted],
        "deviation": [float(f"{value:.3g}") for value in deviation],
    }


def stored_results(fits: list[Fit], folder: Path, data: str) -> list[dict[str, Any]]:
    """Return stored results with the models and settings of ``fits``, for any split and seed."""
    keys = {(key["model"], key["settings"]) for key in (fit.key(data) for fit in fits)}
    records = [read_json(path) for path in sorted(folder.glob(f"*-{data}.json"))]
    return [record for record in records if (record["model"], record["settings"]) in keys]


def compute_missing(fits: list[Fit], data: NetworkLatencies, folder: Path) -> None:
    """Compute and store missing results."""
    name = fingerprint(data)
    for number, fit in enumerate(fits, 1):
        path = fit.file(folder, name)
        if path.exists():
            continue
        result = run_fit(fit, data)
        write_json(path, result)
        quality = result["quality"]["all"]
        print(
            f"{number}/{len(fits)} {fit.model}, {fit.split}, seed {fit.seed}: MAPE {quality['mape_percent']:.2f} %,"
            f" Acc(10 %) {quality['acc10_percent']:.1f} %, {result['fit_s']:.1f} s",
            flush=True,
        )
