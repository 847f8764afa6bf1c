"""Latency models on HAT's five published tables (2,000 measurements each): linear models and HAT's MLP.

``python -m benchmarks latency_models [--seeds 5] [--mlp-seeds 1] [--hat-mlp]``. Errors on held-out rows are means over
random splits, as measured and after division by the drift factor, which is estimated from training rows. The linear
model's predictions of HAT's released architectures, measured on another day, and predictions per second are reported
too. NAS_EXT_DATA names the folder of the tables (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.parts import published as _published
from benchmarks.parts.published import LATENCY_TABLES, RELEASED, absent, hat_table
from benchmarks.parts.record import command, write_result
from nas_core.latency.by_genes.base import GeneLatencyModel
from nas_core.latency.by_genes.dataset import LatencyData
from nas_core.latency.by_genes.drift import autocorrelation, estimate_drift
from nas_core.latency.by_genes.fit import quality, random_split
from nas_core.latency.by_genes.linear import LinearModel
from nas_core.latency.by_genes.mlp import HATConfig, MLPConfig, MLPModel
from nas_core.latency.machine import describe_machine
from nas_core.predictor.metrics import kendall_tau
from nas_core.space import get_space

RESULT = Path(__file__).parents[1] / "results" / "latency_models.json"
TABLES = {
    "iwslt14deen_gpu_titanxp": "hat_iwslt14_de_en",
    "wmt14ende_cpu_raspberrypi": "hat_wmt14_en_de",
    "wmt14ende_gpu_titanxp": "hat_wmt14_en_de",
    "wmt14enfr_cpu_raspberrypi": "hat_wmt14_en_fr",
    "wmt14enfr_cpu_xeon": "hat_wmt14_en_fr",
}
AIMS = (
    ("wmt14enfr_cpu_raspberrypi", "as_measured", "mape_percent", "<=", 1.0),
    ("wmt14enfr_cpu_raspberrypi", "as_measured", "kendall_tau", ">=", 0.965),
    ("wmt14ende_gpu_titanxp", "as_measured", "mape_percent", "<=", 6.0),
    ("wmt14ende_gpu_titanxp", "drift_divided_out", "mape_percent", "<=", 2.0),
)
Make = Callable[[LatencyData], GeneLatencyModel]


def make_linear(data: LatencyData) -> GeneLatencyModel:
    return LinearModel(data.space, data.source)


def make_mlp(config: MLPConfig, data: LatencyData) -> GeneLatencyModel:
    return MLPModel(data.space, data.source, config)


def judge_table(data: LatencyData, make: Make, seeds: Sequence[int], bar: tqdm[Any]) -> dict[str, Any]:
    """Return means over splits; for ``kendall_tau_with_factor``, predictions are multiplied by the drift factor."""
    qualities: dict[str, list[dict[str, Any]]] = {"as_measured": [], "drift_divided_out": []}
    for seed in seeds:
        train, test = (data.take(index) for index in random_split(len(data), 0.2, seed))
        model = make(train).fit(train.inputs, train.latency_ms)
        raw = quality(model.predict_inputs(test.inputs), test.latency_ms, model.interval)
        qualities["as_measured"].append(raw.to_dict())
        drift = estimate_drift(partial(make_linear, train), train.inputs, train.latency_ms, train.order)
        model = make(train).fit(train.inputs, train.latency_ms / drift.at(train.order))
        predicted, factor = model.predict_inputs(test.inputs), drift.at(test.order)
        clean = quality(predicted, test.latency_ms / factor, model.interval).to_dict()
        clean["kendall_tau_with_factor"] = kendall_tau(predicted * factor, test.latency_ms)
        qualities["drift_divided_out"].append(clean)
        bar.update()
    return {
        part: {
            name: round(float(np.mean([metrics[name] for metrics in splits])), 4)
            for name, value in splits[0].items()
            if value is not None
        }
        for part, splits in qualities.items()
    }


def released(data: LatencyData, name: str) -> dict[str, float] | None:
    """Predict HAT's released architectures of the same task and device, without drift."""
    if absent(RELEASED):
        return None
    task, _, device = name.split("_")
    listed = [(row, a) for row, a in _published.released() if (row["task"], row["hardware"]) == (task, device)]
    drift = estimate_drift(partial(make_linear, data), data.inputs, data.latency_ms, data.order)
    model = make_linear(data).fit(data.inputs, data.latency_ms / drift.at(data.order))
    predicted = model.predict([architecture for _, architecture in listed])
    error = predicted / np.array([row["latency_ms"] for row, _ in listed]) - 1
    return {"count": len(listed), "mape_percent": round(float(np.abs(error).mean() * 100), 2)}


def rows_per_second() -> dict[str, int]:
    """Return predictions per second for ``hat_wmt14_en_de``, best of five runs."""
    space = get_space("hat_wmt14_en_de")
    rows = space.sample_rows(np.random.default_rng(0), 100_000)
    latency = 50.0 + rows.clip(0).sum(1)
    models: dict[str, GeneLatencyModel] = {
        "linear": LinearModel(space),
        "linear, of a table": LinearModel(space, "summary"),
        "mlp": MLPModel(space, config=MLPConfig(steps=1)),
    }
    speeds = {}
    for name, model in models.items():
        inputs = rows[:300] if model.source == "rows" else space.encode_rows(rows[:300], "summary")
        model.fit(inputs, latency[:300])
        requested, seconds = rows[: 10_000 if name == "mlp" else len(rows)], []
        for _ in range(5):
            start = time.perf_counter()
            model.predict_rows(requested)
            seconds.append(time.perf_counter() - start)
        speeds[name] = round(len(requested) / min(seconds))
    return speeds


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="splits for the linear model")
    parser.add_argument("--mlp-seeds", type=int, default=1, help="splits for the MLP; 0 leaves it out")
    parser.add_argument("--hat-mlp", action="store_true", help="also with HAT's training settings (slow)")
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if reason := absent(LATENCY_TABLES):
        print(f"skipped: {reason}")
        return 0
    models: dict[str, tuple[Make, range]] = {"linear": (make_linear, range(args.seeds))}
    if args.mlp_seeds:
        models["mlp"] = (partial(make_mlp, MLPConfig()), range(args.mlp_seeds))
    if args.hat_mlp:
        models["hat_mlp"] = (partial(make_mlp, HATConfig()), range(max(1, args.mlp_seeds)))
    tables: dict[str, Any] = {}
    total = len(TABLES) * sum(len(seeds) for _, seeds in models.values())
    with tqdm(total=total, desc="fits", disable=None) as bar:
        for name, space in TABLES.items():
            data = hat_table(name, get_space(space))
            residual = data.latency_ms / make_linear(data).fit(data.inputs, data.latency_ms).predict_inputs(data.inputs)
            tables[name] = {"residual_autocorrelation": round(autocorrelation(residual), 3)}
            for model, (make, seeds) in models.items():
                tables[name][model] = {"splits": len(seeds), **judge_table(data, make, seeds, bar)}
            tables[name]["released_architectures"] = released(data, name)
    aims = []
    for name, part, metric, sign, bound in AIMS:
        value = tables[name]["linear"][part][metric]
        met = bool(value <= bound if sign == "<=" else value >= bound)
        aims.append(
            {"table": name, "part": part, "metric": metric, "aim": f"{sign} {bound}", "value": value, "met": met}
        )
    result = {
        "machine": describe_machine("cpu", 1),
        "held_out_share": 0.2,
        "tables": tables,
        "rows_per_second": rows_per_second(),
        "aims": aims,
    }
    write_result(args.out, result, command(__file__, argv))
    print(_text(result))
    return 0 if all(aim["met"] for aim in aims) else 1


def _text(result: dict[str, Any]) -> str:
    lines = [f"{'table':27} {'model':8} {'as measured':>22} {'drift divided out':>30}"]
    lines.append(f"{'':36} {'MAPE %':>8} {'R2':>6} {'tau':>6} {'MAPE %':>15} {'R2':>6} {'tau':>6}")
    for name, table in result["tables"].items():
        for model in [key for key in ("linear", "mlp", "hat_mlp") if key in table]:
            raw, clean = table[model]["as_measured"], table[model]["drift_divided_out"]
            numbers = [raw["mape_percent"], raw["r2"], raw["kendall_tau"]]
            numbers += [clean["mape_percent"], clean["r2"], clean["kendall_tau"]]
            lines.append(
                f"{name:27} {model:8} {numbers[0]:8.2f} {numbers[1]:6.3f} {numbers[2]:6.3f} {numbers[3]:15.2f}"
                f" {numbers[4]:6.3f} {numbers[5]:6.3f}"
            )
    lines += [f"{model}: {speed:,} rows/s" for model, speed in result["rows_per_second"].items()]
    lines += [
        f"{'met' if aim['met'] else 'MISSED'}: {aim['table']} {aim['part']} {aim['metric']} {aim['value']} {aim['aim']}"
        for aim in result["aims"]
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
