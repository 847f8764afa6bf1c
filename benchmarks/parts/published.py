"""Published tables for tests and benchmarks; they are not in this repository.

``NAS_EXT_DATA`` names their folder (default: ``../shared/data`` next to the repository).
"""

from __future__ import annotations

import functools
import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.files.reading import read_json
from nas_core.graph import Graphs
from nas_core.graph.nasbench101 import nasbench101_graphs
from nas_core.graph.nasbench201 import nasbench201_graphs
from nas_core.latency.by_genes.dataset import LatencyData, hat_latencies
from nas_core.space import Architecture, SearchSpace

DATA = Path(os.environ.get("NAS_EXT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
RELEASED = DATA / "hat_released_architectures.json"
LATENCY_TABLES = DATA / "latency_hat_transformers.npz"
NASBENCH101 = DATA / "nasbench101.npz"
NASBENCH101_VALID = DATA / "nasbench101_val.npz"
NASBENCH201 = DATA / "nasbench201.npz"
NASBENCH201_LATENCY = DATA / "latency_nasbench201.npz"
ZERO_COST = DATA / "zero_cost.json.gz"
FBNET_LATENCY = DATA / "latency_fbnet.npz"
DEVICE_TABLES = {"nasbench201": NASBENCH201_LATENCY, "fbnet": FBNET_LATENCY}
HAT_SPACES = {
    "wmt14ende": "hat_wmt14_en_de",
    "wmt14enfr": "hat_wmt14_en_fr",
    "wmt19ende": "hat_wmt19_en_de",
    "iwslt14deen": "hat_iwslt14_de_en",
}


def absent(path: Path) -> str | None:
    """Return why a file is missing; None if it exists."""
    return None if path.exists() else f"{path} is absent; set NAS_EXT_DATA to the folder that holds it"


def hat_table(name: str, space: SearchSpace) -> LatencyData:
    """Return one of HAT's latency tables."""
    with np.load(LATENCY_TABLES, allow_pickle=False) as tables:
        columns = dict(zip(tables[f"{name}__columns"].tolist(), tables[name].astype(np.float64).T, strict=True))
    return hat_latencies(columns, space, name)


def released() -> list[tuple[dict[str, Any], Architecture]]:
    """Return HAT's released sub-transformers: published figures and architecture."""
    networks = []
    for row in read_json(RELEASED)["architectures"]:
        genes: dict[str, Any] = {"qkv_dim": 512, "encoder.layers": len(row["encoder"]["ffn_dims"])}
        for side in ("encoder", "decoder"):
            for key, value in row[side].items():
                genes[f"{side}.{'ffn_dim' if key == 'ffn_dims' else key}"] = value
        networks.append((row, Architecture(genes)))
    return networks


@functools.cache
def nasbench101() -> tuple[Graphs, NDArray[np.float64]]:
    """Return all 423,624 cells and their test accuracies after 108 epochs (mean of three runs)."""
    with np.load(NASBENCH101, allow_pickle=False) as table:
        sizes, bits, inner = (table[name].astype(np.int64) for name in ("n_vertices", "edge_bits", "ops"))
        accuracies = table["test_acc_108_mean"].astype(np.float64)
    matrices = np.zeros((len(sizes), 7, 7), np.bool_)
    for y in range(1, 7):
        for x in range(y):
            matrices[:, x, y] = bits >> (x + y * (y - 1) // 2) & 1
    ops = np.zeros((len(sizes), 7), np.int64)
    ops[:, 1:6] = np.array([2, 1, 3, -1])[inner]
    ops[np.arange(len(sizes)), sizes - 1] = 4
    return nasbench101_graphs(matrices, ops, sizes), accuracies


def nasbench101_valid() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return indices of cells with a published validation accuracy (one run of 108 epochs), and the accuracies."""
    with np.load(NASBENCH101_VALID, allow_pickle=False) as table:
        return table["index"].astype(np.int64), table["val_acc_108"].astype(np.float64)


@dataclass(frozen=True, eq=False)
class LatencyTable:
    """Latencies of the same networks on several devices."""

    ops: NDArray[np.int64]
    """``(G, L)`` operations"""
    graphs: Graphs
    """``(G,)`` networks"""
    devices: tuple[str, ...]
    """Names of D devices"""
    latency_ms: NDArray[np.float64]
    """``(G, D)``"""


@functools.cache
def latency_table(name: str) -> LatencyTable:
    """Return the table ``nasbench201`` or ``fbnet``, without networks of implausible latency."""
    with np.load(DEVICE_TABLES[name], allow_pickle=False) as table:
        plausible = (table["latency_ms"] >= 0.5).all(1)
        ops, latency_ms = table["ops"][plausible].astype(np.int64), table["latency_ms"][plausible].astype(np.float64)
        devices = tuple(table["devices"].tolist())
    graphs = nasbench201_graphs(ops, prune=False) if name == "nasbench201" else chains(ops)
    return LatencyTable(ops, graphs, devices, latency_ms)


def chains(ops: NDArray[np.int64]) -> Graphs:
    """Return chains ``(G, L)`` as graphs; a node's attribute is the index of its layer."""
    count, layers = ops.shape
    links = np.stack([np.arange(layers - 1), np.arange(1, layers)], 1)
    return Graphs(
        ops.reshape(-1).astype(np.int16),
        np.tile(links, (count, 1)).astype(np.int32),
        np.full(count, layers),
        np.full(count, layers - 1),
        attributes=np.tile(np.arange(layers, dtype=np.float32), count)[:, None],
    )


def nasbench201_ops() -> NDArray[np.int64]:
    """Return the operations ``(15625, 6)`` of the cells of :func:`nasbench201`."""
    with np.load(NASBENCH201, allow_pickle=False) as table:
        return table["ops"].astype(np.int64)


def zero_cost(name: str) -> list[dict[str, Any]]:
    """Return the rows of a benchmark such as ``transnas_macro/jigsaw``.

    Fields: ``architecture`` as in NASLib, published zero-cost proxies, ``val_accuracy`` in percent.
    """
    with gzip.open(ZERO_COST, "rt", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = json.load(file)[name]
    return rows


def nasbench201() -> tuple[Graphs, NDArray[np.float64], NDArray[np.float64]]:
    """Return all 15,625 cells, their CIFAR-10 validation (one seed) and test accuracy (mean of seeds)."""
    with np.load(NASBENCH201, allow_pickle=False) as table:
        ops = table["ops"].astype(np.int64)
        accuracies = [table[f"cifar10_{split}_acc_200"].astype(np.float64) / 100 for split in ("val", "test")]
    return nasbench201_graphs(ops), accuracies[0], accuracies[1]
