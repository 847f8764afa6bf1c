"""Latency of architectures of one space, and of devices that were hardly measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.page.pictures import COLOURS, thousands
from benchmarks.page.results import Results
from benchmarks.page.section import Picture, Section
from benchmarks.page.words import count, fixed, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS"]

HAT = {
    "wmt14ende_cpu_raspberrypi": "WMT'14 En-De, Raspberry Pi",
    "wmt14enfr_cpu_raspberrypi": "WMT'14 En-Fr, Raspberry Pi",
    "wmt14enfr_cpu_xeon": "WMT'14 En-Fr, Xeon",
    "wmt14ende_gpu_titanxp": "WMT'14 En-De, Titan Xp",
    "iwslt14deen_gpu_titanxp": "IWSLT'14 De-En, Titan Xp",
}


def _models(results: Results) -> Mapping[str, str]:
    content = results["latency_models"]
    tables = content["tables"]

    def row(name: str, label: str) -> list[str]:
        linear, mlp = tables[name]["linear"], tables[name]["mlp"]["as_measured"]
        measured, divided = linear["as_measured"], linear["drift_divided_out"]
        return [
            label, fixed(measured["mape_percent"], 2), fixed(measured["kendall_tau"], 3), fixed(mlp["mape_percent"], 2),
            fixed(mlp["kendall_tau"], 3), fixed(divided["mape_percent"], 2), fixed(measured["coverage_percent"], 1),
            fixed(tables[name]["released_architectures"]["mape_percent"], 1),
        ]  # fmt: skip

    pi, titan = tables["wmt14enfr_cpu_raspberrypi"]["linear"], tables["wmt14ende_gpu_titanxp"]["linear"]
    return {
        "held_out": fixed(100 * content["held_out_share"], 0),
        "pi": fixed(pi["as_measured"]["mape_percent"], 2),
        "pi_tau": fixed(pi["as_measured"]["kendall_tau"], 3),
        "titan": fixed(titan["as_measured"]["mape_percent"]),
        "titan_divided": fixed(titan["drift_divided_out"]["mape_percent"]),
        "drift": fixed(tables["wmt14ende_gpu_titanxp"]["residual_autocorrelation"], 2),
        "rate": count(content["rows_per_second"]["linear"]),
        "table": table(
            ["table", "error %", "tau", "MLP: error %", "MLP: tau", "error %, drift divided out", "in the interval %",
             "released networks: error %"],
            [row(*each) for each in HAT.items()],
        ),
    }  # fmt: skip


MODELS = Section("Latency models", ("latency_models",), _models)

METHODS = {"linear": "from scratch, linear", "transfer": "with the other devices, linear"}
TABLES = {"fbnet": "FBNet", "nasbench201": "NAS-Bench-201"}
FORMER = {"nn-former": "NN-Former from scratch", "nn-former, pretrained": "NN-Former, pretrained on the others"}


def transfer(results: Results, table: str, method: str, size: int) -> Mapping[str, Any]:
    """Errors on a device that was held out, by what was known of it."""
    return results.row("device_transfer", table=table, method=method, size=size)


def _held_out(results: Results) -> Mapping[str, str]:
    few, some, many = sorted({row["size"] for row in results.rows("device_transfer")})

    def mean(table: str, method: str, size: int) -> str:
        return fixed(transfer(results, table, method, size)["mean"]["mape"])

    def three(method: str, size: int) -> str:
        return fixed(transfer(results, "nasbench201", method, size)["few"]["mape"])

    rows = [
        [f"{TABLES[name]}, {label}", str(found["count"]),
         *(f"{fixed(each['mean']['mape'])} ({fixed(each['median_mape'])})" for each in
           (transfer(results, name, method, size) for size in (few, some, many)))]
        for name in TABLES
        for method, label in {**METHODS, **FORMER}.items()
        for found in [transfer(results, name, method, few)]
    ]  # fmt: skip
    return {
        "few": str(few),
        "some": str(some),
        "many": count(many),
        "fbnet_devices": str(transfer(results, "fbnet", "linear", few)["count"]),
        "nb201_devices": str(transfer(results, "nasbench201", "linear", few)["count"]),
        "fbnet": mean("fbnet", "transfer", few),
        "fbnet_scratch": mean("fbnet", "linear", few),
        "fbnet_scratch_some": mean("fbnet", "linear", some),
        "fbnet_many": mean("fbnet", "transfer", many),
        "fbnet_scratch_many": mean("fbnet", "linear", many),
        "nb201": mean("nasbench201", "transfer", few),
        "nb201_scratch": mean("nasbench201", "linear", few),
        "nb201_many": fixed(transfer(results, "nasbench201", "transfer", many)["median_mape"]),
        "nb201_scratch_many": fixed(transfer(results, "nasbench201", "linear", many)["median_mape"]),
        "nb201_many_mean": mean("nasbench201", "transfer", many),
        "former": three("nn-former, pretrained", few),
        "former_scratch": three("nn-former", few),
        "former_linear": three("transfer", few),
        "former_many": three("nn-former, pretrained", many),
        "former_scratch_many": three("nn-former", many),
        "table": table(
            ["error %, mean (median) over devices", "devices", *(f"{size} networks" for size in (few, some, many))],
            rows,
        ),
    }


def _draw_held_out(results: Results, figure: Figure) -> None:
    panels = figure.subplots(1, 2)
    for axes, (name, title) in zip(panels, TABLES.items(), strict=True):
        for (method, label), colour in zip(METHODS.items(), (COLOURS[7], COLOURS[0]), strict=True):
            rows = results.rows("device_transfer", table=name, method=method)
            sizes = [row["size"] for row in rows]
            means, medians = [row["mean"]["mape"] for row in rows], [row["median_mape"] for row in rows]
            axes.plot(sizes, means, "o-", color=colour, label=label)
            axes.plot(sizes, medians, "o--", color=colour, markersize=3, label=f"{label}, median")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        thousands(axes, sizes)
        axes.set_title(title, loc="right")
        axes.set_xlabel("networks measured on the new device")
    panels[0].set_ylabel("error (%)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)


HELD_OUT = Section(
    "Held-out device",
    ("device_transfer",),
    _held_out,
    Picture(
        "held-out-device", "Error on a new device by the number of networks measured there", _draw_held_out, (6.8, 3.6)
    ),
)
SECTIONS = (MODELS, HELD_OUT)
