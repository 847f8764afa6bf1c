"""Predicted and measured latency of timm's published networks, which are not in the training data.

``python -m benchmarks published_networks --model cpu.safetensors``. The model must be of this machine and of
onnxruntime. Networks are exported without pretrained weights and measured in onnxruntime, on one thread, by CPU time,
in several alternating visits. Networks outside the training range (batch sizes, sizes, operators) have a separate
table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from benchmarks.parts.record import command, write_result
from benchmarks.parts.timm_folds import latency_errors
from nas_core.errors import NasExtError
from nas_core.graph import Graphs
from nas_core.graph.onnx.reader import read_onnx
from nas_core.latency import load_latency_model
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.dataset.export import calibrate, exported
from nas_core.latency.by_graph.dataset.runtimes import onnx_workload
from nas_core.latency.by_graph.ensemble import EnsembleModel
from nas_core.latency.by_graph.predict import device_of, shipped_model
from nas_core.latency.by_graph.unseen import sizes_out_of_range, unseen_operations
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import TimingConfig, time_passes_ms
from nas_core.optional import require
from nas_core.torchvision_fix import repair

RESULT = Path(__file__).parents[1] / "results" / "published_networks.json"
NETWORKS = (
    "resnet18", "resnet34", "resnet50", "resnetv2_50", "seresnet50", "resnext50_32x4d", "regnety_016", "regnetx_032",
    "densenet121", "vgg11_bn", "vgg16", "mobilenetv2_100", "mobilenetv3_small_100", "mobilenetv3_large_100",
    "mnasnet_100", "semnasnet_100", "fbnetc_100", "hardcorenas_a", "efficientnet_b0", "efficientnet_b2",
    "efficientnet_lite0", "mixnet_s", "ghostnet_100", "vit_tiny_patch16_224", "vit_small_patch16_224",
    "deit_small_patch16_224", "mixer_s32_224", "convnext_tiny", "repvgg_a2", "xception41",
)  # fmt: skip
MIN_MS = 40.0
"""Smallest total time of the passes of one visit, in ms."""


def pass_timer(content: bytes, inputs: Sequence[torch.Tensor], predicted_ms: float) -> Callable[[], float]:
    """Return a function that measures one pass of an ONNX network in ms of CPU time.

    Args:
        predicted_ms: predicted latency, which determines the number of passes per measurement.
    """
    timing = TimingConfig(warmup=1, repeats=3, clock="cpu")
    workload = onnx_workload(content, inputs, timing)
    workload.at_a_time = max(1, round(MIN_MS / timing.repeats / predicted_ms))
    return lambda: float(np.median(time_passes_ms(workload, timing))) / workload.at_a_time


class Published:
    """Network of timm on a batch of 3 x 224 x 224 images in onnxruntime."""

    def __init__(self, name: str, batch: int, model: GraphLatencyModel) -> None:
        self.name, self.batch = name, batch
        network = require("timm", "published networks", "timm").create_model(name).eval()
        inputs = (torch.randn(batch, 3, 224, 224),)
        calibrate(network, inputs)
        content = exported(network, inputs)
        read = read_onnx(content, warn=False)
        graphs = Graphs.of([read.graph])
        predicted, std = model.predict_with_std(graphs)
        self.predicted_ms, self.std_ms, self.flops_g = float(predicted[0]), float(std[0]), read.flops_g
        members = model.members if isinstance(model, EnsembleModel) else ()
        self.members_ms = {member.name: round(float(member.predict(graphs)[0]), 3) for member in members}
        operations = unseen_operations(graphs, model.known_operations).values()
        self.out_of_range = [*sizes_out_of_range(graphs, model.info["ranges"]), *operations]
        self._measure, self._passes_ms = pass_timer(content, inputs, self.predicted_ms), list[float]()

    def visit(self) -> None:
        self._passes_ms.append(self._measure())

    def row(self) -> dict[str, Any]:
        measured = float(np.median(self._passes_ms))
        return {
            "network": self.name,
            "batch": self.batch,
            "gflops": round(self.flops_g, 3),
            "measured_ms": round(measured, 3),
            "visits_deviation_percent": round(100 * float(np.std(self._passes_ms)) / measured, 2),
            "predicted_ms": round(self.predicted_ms, 3),
            "std_ms": round(self.std_ms, 3),
            "error_percent": round(100 * (self.predicted_ms / measured - 1), 1),
            "members_ms": self.members_ms,
            "unlike": self.out_of_range,
        }


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Summarise the errors of the model and of its members."""
    measured = np.array([row["measured_ms"] for row in rows])
    predicted = np.array([row["predicted_ms"] for row in rows])
    covered = abs(measured - predicted) <= [row["std_ms"] for row in rows]
    return {
        "networks": len(rows),
        **latency_errors(predicted, measured),
        "within_spread_percent": round(100 * float(covered.mean()), 1),
        "members": {
            kind: latency_errors(np.array([row["members_ms"][kind] for row in rows]), measured)
            for kind in rows[0]["members_ms"]
        },
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model", type=Path, help="latency model of 'nas-ext latency train'; default: the shipped model"
    )
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), help="names of timm.list_models()")
    parser.add_argument("--batches", nargs="+", type=int, default=[1])
    parser.add_argument("--visits", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    machine = describe_machine("cpu", 1)
    repair()
    try:
        model = load_latency_model(options.model, "graph") if options.model else shipped_model()
        if device_of(model) != machine["device_name"]:
            reason = f"the model is of {device_of(model)}, this machine is {machine['device_name']}"
            if options.model:
                raise SystemExit(reason)
            print(f"skipped: {reason}; give --model")
            return 0
        networks = [
            Published(name, batch, model)
            for batch in options.batches
            for name in tqdm(options.networks, desc=f"exporting, batch {batch}", disable=None)
        ]
        for _ in tqdm(range(options.visits), desc="visits", disable=None):
            for network in networks:
                network.visit()
    except NasExtError as error:
        raise SystemExit(f"published_networks: error: {error}") from None
    rows = [network.row() for network in networks]
    in_range, out_of_range = (
        [row for row in rows if bool(row["unlike"]) == is_outside] for is_outside in (False, True)
    )
    by_batch = {str(batch): summary([row for row in rows if row["batch"] == batch]) for batch in options.batches}
    result = {
        "machine": machine,
        "model": {"kind": model.name, "networks": model.info["networks"], "families": model.info["families"]},
        "batches": by_batch,
        "like_training_networks": summary(in_range) if in_range else {},
        "unlike": summary(out_of_range) if out_of_range else {},
        "rows": rows,
    }
    write_result(options.out, result, command(__file__, argv))
    for row in rows:
        text = f"{row['measured_ms']:8.2f} ms, predicted {row['predicted_ms']:8.2f} +- {row['std_ms']:.2f}"
        print(f"{row['network']:24} batch {row['batch']} {text}, {row['error_percent']:+.1f} %", *row["unlike"])
    for batch, metrics in by_batch.items():
        print(f"batch {batch}:", metrics)
    print("like training networks:", result["like_training_networks"])
    print("unlike:", result["unlike"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
