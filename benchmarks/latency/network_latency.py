"""Latency models of whole networks, as in NN-Former's Table 4 (in-domain) and Table 3 (one family held out).

``python -m benchmarks network_latency --data FOLDER``: a folder of ``nas-ext latency dataset``, or an .npz
file. Each fit is stored in ``--work``, from which the same command resumes. Runs with different ``--models``
may share the folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.parts.network_fits import (
    IN_DOMAIN,
    Fit,
    compute_missing,
    fingerprint,
    interval_coverage,
    stored_results,
)
from benchmarks.parts.record import command, write_result
from nas_core.errors import NasExtError
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.dataset.folder import load_networks, measured_on
from nas_core.latency.machine import describe_machine
from nas_core.latency.registry import parsed_model_settings

RESULT = Path(__file__).parents[1] / "results" / "network_latency.json"
MODELS = ("flops", "counts", "graphsage", "nn-former", "ensemble")
PROJECT_MODELS = ("nn-former", "ensemble")
RUNTIME, SEEDLESS = "onnxruntime", ("flops", "counts")
FIGURES = ("mape_percent", "acc10_percent")


def fits_of(options: argparse.Namespace, data: NetworkLatencies) -> list[Fit]:
    """Return the fits to compute: quick models first, in-domain before held-out families."""
    splits = [IN_DOMAIN] if options.families is None else []
    splits += data.family_names if options.families in (None, ["all"]) else options.families
    fits = []
    for model in options.models:
        settings = tuple(parsed_model_settings(model, options.settings or []).items())
        seeds = options.seeds[:1] if model in SEEDLESS else options.seeds
        fits += [Fit(model, split, seed, settings) for seed in seeds for split in splits]
    return fits


def summary(records: Sequence[Mapping[str, Any]], families: Sequence[str]) -> dict[str, Any]:
    """Return table -> model -> row -> figures: means over seeds, and the standard deviation for several seeds.

    The row ``average`` is the mean over families, if all families are available.
    """
    tables: dict[str, Any] = {"in_domain": {}, "out_of_domain": {}}
    for model in dict.fromkeys(record["model"] for record in records):
        of_model = [record for record in records if record["model"] == model]
        in_domain = [record["quality"] for record in of_model if record["split"] == IN_DOMAIN]
        if in_domain:
            tables["in_domain"][model] = {
                "seeds": len(in_domain),
                **{row: _mean([q[row] for q in in_domain]) for row in in_domain[0]},
            }
        out_of_domain = {f: [r["quality"]["all"] for r in of_model if r["split"] == f] for f in families}
        rows = {family: _mean(qualities) for family, qualities in out_of_domain.items() if qualities}
        if rows:
            if len(rows) == len(families):
                rows["average"] = {name: round(float(np.mean([r[name] for r in rows.values()])), 3) for name in FIGURES}
            seeds = max(len(qualities) for qualities in out_of_domain.values())
            tables["out_of_domain"][model] = {"seeds": seeds, **rows}
    return tables


def _mean(qualities: Sequence[Mapping[str, float]]) -> dict[str, float]:
    row = {"count": qualities[0]["count"]}
    for name in FIGURES:
        values = [quality[name] for quality in qualities]
        row[name] = round(float(np.mean(values)), 3)
        if len(values) > 1:
            row[f"{name}_deviation"] = round(float(np.std(values, ddof=1)), 3)
    return row


def seconds(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return model -> median seconds of a fit and of a prediction."""
    rows: dict[str, dict[str, float]] = {}
    for model in dict.fromkeys(record["model"] for record in records):
        of_model = [record for record in records if record["model"] == model]
        rows[model] = {
            name: round(float(np.median([record[name] for record in of_model])), 3)
            for name in ("fit_s", "fit_cpu_s", "predict_s")
        }
    return rows


def aims(tables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the aims with the values reached.

    In-domain, NN-Former and the ensemble with it stay below 4 %; out of domain, they are better than the best baseline.
    """
    in_domain, out_of_domain = tables["in_domain"], tables["out_of_domain"]
    results: list[dict[str, Any]] = []
    for model in PROJECT_MODELS:
        if model in in_domain:
            value = in_domain[model]["all"]["mape_percent"]
            results.append({"model": model, "aim": "in-domain MAPE below 4 %", "value": value, "met": value < 4})
        for name, sign in zip(FIGURES, (1, -1), strict=True):
            averages = {model: rows["average"][name] for model, rows in out_of_domain.items() if "average" in rows}
            baselines = {name: value for name, value in averages.items() if not name.startswith(PROJECT_MODELS)}
            if model in averages and baselines:
                best = min(baselines, key=lambda model: sign * baselines[model])
                row = {"model": model, "aim": f"out of domain best {name}", "value": averages[model], "rival": best}
                met = sign * averages[model] <= sign * baselines[best]
                results.append({**row, "rivals": baselines[best], "met": met})
    return results


def interval_coverages(records: Sequence[Mapping[str, Any]], data: NetworkLatencies) -> dict[str, dict[str, float]]:
    """Return model -> split -> percentage of networks within one predicted standard deviation, as mean over seeds."""
    rows: dict[str, dict[str, float]] = {}
    for model in dict.fromkeys(record["model"] for record in records):
        of_model = [record for record in records if record["model"] == model]
        seeds = dict.fromkeys(record["seed"] for record in of_model)
        shares = [interval_coverage([record for record in of_model if record["seed"] == seed], data) for seed in seeds]
        splits = {
            split: [share[split] for share in shares if split in share] for split in (IN_DOMAIN, *data.family_names)
        }
        row = {split: round(float(np.mean(values)), 1) for split, values in splits.items() if values}
        if len(row) == len(splits):
            row["average"] = round(float(np.mean([row[family] for family in data.family_names])), 1)
        rows[model] = row
    return rows


def text(tables: Mapping[str, Any], families: Sequence[str]) -> str:
    lines: list[str] = []
    for table, title in (("in_domain", "In-domain"), ("out_of_domain", "One family left out")):
        models = tables[table]
        for name, unit in zip(FIGURES, ("MAPE %", "Acc(10 %)"), strict=True):
            if not models:
                continue
            widths = {model: max(8, len(model)) for model in models}
            lines.append(f"{title}, {unit}")
            lines.append(" ".join([f"{'':16}", *(f"{model:>{width}}" for model, width in widths.items())]))
            for row in (*families, "average", "all"):
                if any(row in rows for rows in models.values()):
                    values = [
                        f"{rows[row][name]:>{widths[m]}.2f}" if row in rows else " " * widths[m]
                        for m, rows in models.items()
                    ]
                    lines.append(" ".join([f"{row:16}", *values]))
            lines.append("")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument(
        "--families",
        nargs="+",
        help="held-out families, without the in-domain split; all: every family; default: in-domain and every family",
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--set", dest="settings", nargs="+", help="changed settings of the models, such as epochs=2")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("runs/network_latency"), help="folder of the fits")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    try:
        data = load_networks(options.data, RUNTIME)
        fits = fits_of(options, data)
        compute_missing(fits, data, options.work)
    except NasExtError as error:
        raise SystemExit(f"network_latency: error: {error}") from None
    default_fits = [] if options.settings else [Fit(model, IN_DOMAIN, 0) for model in MODELS]
    records = stored_results([*default_fits, *fits], options.work, fingerprint(data))
    records.sort(key=lambda record: MODELS.index(record["model"]))
    tables = summary(records, data.family_names)
    result = {
        "data": {
            "networks": len(data),
            "families": {name: int((data.families == name).sum()) for name in data.family_names},
            "runtime": RUNTIME,
            "fingerprint": fingerprint(data),
            "measured_on": measured_on(options.data),
            "latency_ms": [round(float(q), 3) for q in np.quantile(data.latency_ms, (0, 0.5, 1))],
        },
        "machine": describe_machine("cpu", options.threads),
        "tables": tables,
        "within_spread_percent": interval_coverages(records, data),
        "seconds": seconds(records),
        "aims": aims(tables),
    }
    write_result(options.out, result, command(__file__, argv), adds=True)
    print(text(tables, data.family_names))
    for model, row in result["within_spread_percent"].items():
        figures = ", ".join(f"{split} {row[split]:g}" for split in (IN_DOMAIN, "average") if split in row)
        print(f"interval coverage of {model}, percent: {figures or 'not measured'}")
    for aim in result["aims"]:
        rival = f" ({aim['rival']}: {aim['rivals']})" if "rival" in aim else ""
        print(f"{'met' if aim['met'] else 'MISSED'}: {aim['model']}, {aim['aim']}: {aim['value']}{rival}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
