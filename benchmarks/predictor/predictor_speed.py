"""Speed of NN-Former's predictions and training, relative to a plain implementation like the authors' code.

``python -m benchmarks predictor_speed [--threads 2] [--repeats 15] [--quick] [--parts latency]``. Implementations
alternate in one process. Ratios are taken within a round.

- ``ours``: :class:`nas_core.predictor.nn_former.scorer.Scorer`, or an update of
  :class:`nas_core.predictor.training.Trainer`, in the device's fast precision.
- ``plain``: :mod:`benchmarks.parts.plain_nnformer`, eager float32 on precomputed codes.
- ``products_fp32``, ``products_bf16``: only the products with weight matrices, a lower bound.

Other parts measure the effect of bf16 on the order of predictions, large sparse graphs, all of NAS-Bench-101, single
graphs, and graph statistics (:mod:`benchmarks.parts.queries`). Models are the paper's: accuracy (7 nodes, 2 tokens) and
latency (100 to 250 nodes). NAS_EXT_DATA names the folder of NAS-Bench-101; without it, graphs are random. ``--parts``
measures some parts again.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.parts.plain_nnformer import PlainTraining, codes_of, plain_forward
from benchmarks.parts.published import NASBENCH101, absent, nasbench101
from benchmarks.parts.queries import measure_all_cells, measure_network, measure_statistics
from benchmarks.parts.random_graphs import accuracy_graphs, cells_with_accuracies, latency_graphs, random_cells
from benchmarks.parts.record import command, write_result
from benchmarks.parts.timing import check_aim, compare_throughput, quartiles, throughput_rows
from benchmarks.parts.weight_products import free_gib, position_count, synchronized, weight_products
from nas_core.files.reading import read_json
from nas_core.graph import Graphs
from nas_core.latency.machine import describe_machine
from nas_core.predictor import NNFormer, NNFormerConfig, NNFormerPredictor, kendall_tau
from nas_core.predictor.nn_former.batch import Batch
from nas_core.predictor.nn_former.scorer import Scorer
from nas_core.predictor.recipes import get_recipe
from nas_core.predictor.training import Trainer

RESULTS = Path(__file__).parents[1] / "results"
ALL_CELLS = 423_624
TRAINING_GIB = 18
"""Free GPU memory, in GiB, for an update of 4,096 pairs; the plain implementation takes 15."""
AIMS = (
    ("accuracy_forward, 128 graphs", "graphs_per_s", ">=", 9320),
    ("accuracy_forward, 4096 graphs", "graphs_per_s", ">=", 8320),
    ("accuracy_training, 128 graphs", "graphs_per_s", ">=", 625),
    ("latency_forward, 16 graphs", "times_plain", ">=", 3),
    ("latency_training, 16 graphs", "times_plain", ">=", 1.5),
    ("bf16", "tau_moved", "<", 0.002),
    ("sparse", "time_per_node_ratio", "<=", 1.3),
    ("sparse", "largest_relative_difference", "<=", 1e-5),
    ("nasbench101", "seconds", "<", 300),
    ("one graph, paper", "ms", "<=", 3),
    ("one graph, a network of ensemble", "ms", "<=", 3),
    ("one graph, statistics", "ms", "<=", 3),
    ("statistics, all cells", "seconds", "<=", 60),
)
"""Aims relative to the authors' code on two CPU cores: 4 and 8 times its 2,330 and 1,040 graphs/s, 2.5 times its 250
pairs/s.
"""


def randomized_model(config: NNFormerConfig, device: str) -> NNFormer:
    """Return a random model whose outputs depend clearly on all weights."""
    torch.manual_seed(0)
    model = NNFormer(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "scale_" in name:
                parameter.fill_(0.5)
            elif config.readout == "class_token" and parameter.ndim > 1:
                parameter.mul_(2)
    return model.to(device)


def check_equal(model: NNFormer, graphs: Graphs) -> float:
    """Return the largest difference between both implementations in float32; exit if it is above 1e-4."""
    with torch.inference_mode():
        plain = plain_forward(model, codes_of(model, graphs)).double().cpu().numpy()
    ours = Scorer(model, "fp32")(graphs)
    difference = float((np.abs(ours - plain) / np.maximum(1, np.abs(plain))).max())
    if not difference < 1e-4 or plain.std() < 1e-3:
        raise SystemExit(
            f"both implementations differ by {difference:.2g}; the predictions' standard deviation is {plain.std():.2g}"
        )
    return difference


def forward(model: NNFormer, pool: Graphs, batch: int, repeats: int, name: str) -> dict[str, Any]:
    """Measure predictions on changing batches."""
    parts = [pool[start : start + batch] for start in range(0, len(pool) - batch + 1, batch)]
    inputs, plain_codes = itertools.cycle(parts), itertools.cycle([codes_of(model, part) for part in parts])
    scorer = Scorer(model)

    def plain() -> Tensor:
        with torch.inference_mode():
            return plain_forward(model, next(plain_codes))

    runs = {
        "ours": lambda: scorer(next(inputs)),
        "plain": plain,
        **weight_products(model, position_count(model, parts[0]), False),
    }
    return compare_throughput(synchronized(runs, str(scorer.device)), batch, repeats, name)


def training(model: NNFormer, recipe: str, graphs: Graphs, batch: int, repeats: int, name: str) -> dict[str, Any]:
    """Measure updates on batches of ``batch`` graphs, each graph twice."""
    targets = np.random.default_rng(0).random(len(graphs)) + 0.5
    config = get_recipe(recipe).with_changes(batch_size=batch, epochs=10**6).train
    steps = Trainer(copy.deepcopy(model), graphs, targets, config).steps()
    reference, first, device = PlainTraining(copy.deepcopy(model)), graphs[:batch], next(model.parameters()).device
    codes, first_targets = codes_of(model, first), torch.from_numpy(targets[:batch]).float().to(device)
    runs = {"ours": lambda: next(steps).item(), "plain": lambda: reference.update(codes, first_targets)}
    runs |= weight_products(model, 2 * position_count(model, first), True)
    return compare_throughput(synchronized(runs, str(device)), batch, repeats, name)


def bf16_against_fp32(epochs: int, cells: int, device: str) -> dict[str, Any]:
    """Train on 424 cells and compare the order of predictions in both precisions."""
    graphs, accuracies = cells_with_accuracies(424 + cells)
    rows = np.random.default_rng(1).permutation(len(graphs) - 424)[:cells] + 424
    predictor = NNFormerPredictor("paper", epochs=epochs, device=device)
    with tqdm(desc=f"{epochs} epochs on 424 cells", disable=None) as bar:
        predictor.fit(graphs[:424], accuracies[:424], progress=lambda step, steps, loss: bar.update())
    exact, fast = (Scorer(predictor.models[0], kind)(graphs.take(rows)) for kind in ("fp32", "bf16"))
    taus = {kind: kendall_tau(values, accuracies[rows]) for kind, values in (("fp32", exact), ("bf16", fast))}
    return {
        "cells": len(rows),
        "epochs": epochs,
        "data": "random" if absent(NASBENCH101) else "NAS-Bench-101",
        "tau_between": round(kendall_tau(fast, exact), 5),
        "tau_to_accuracy": {kind: round(tau, 5) for kind, tau in taus.items()},
        "tau_moved": round(abs(taus["bf16"] - taus["fp32"]), 6),
        "largest_difference": float(np.abs(fast - exact).max()),
        "spread": float(exact.std()),
    }


def sparse(model: NNFormer, repeats: int) -> dict[str, Any]:
    """Compare one graph of 3,200 nodes with 16 graphs of 200 nodes."""
    cases = {"16 x 200": latency_graphs([200] * 16), "1 x 3200": latency_graphs([3200])}
    durations: dict[str, list[float]] = {name: [] for name in cases}
    differences = {}
    for name, graphs in cases.items():
        with torch.inference_mode():
            dense = model(Batch.of(graphs, device=next(model.parameters()).device)).double().cpu().numpy()
        differences[name] = float(np.abs(Scorer(model, "fp32")(graphs) / dense - 1).max())
    for round_index in range(repeats + 1):
        for name in list(cases)[:: 1 if round_index % 2 else -1]:
            start = time.perf_counter()
            Scorer(model)(cases[name])
            if round_index:
                durations[name].append(time.perf_counter() - start)
    small, large = (np.array(durations[name]) for name in cases)
    return {
        "us_per_node": {name: quartiles(np.array(seconds) / 3200 * 1e6, 1) for name, seconds in durations.items()},
        "time_per_node_ratio": quartiles(large / small, 3),
        "largest_relative_difference": max(differences.values()),
        "relative_differences": differences,
        "repeats": repeats,
    }


def whole_benchmark(model: NNFormer, quick: bool) -> dict[str, Any]:
    """Measure all cells of NAS-Bench-101; 40,000 if ``quick`` or if the table is missing."""
    if absent(NASBENCH101):
        graphs = random_cells(40_000)
    else:
        graphs = nasbench101()[0]
        if quick:
            graphs = graphs.take(np.sort(np.random.default_rng(2).permutation(ALL_CELLS)[:40_000]))
    start = time.perf_counter()
    Scorer(model)(graphs)
    seconds = time.perf_counter() - start
    return {"cells": len(graphs), "taken_s": round(seconds, 1), "seconds": round(seconds * ALL_CELLS / len(graphs), 1)}


def measure(
    repeats: int, quick: bool, prefixes: Sequence[str], before: Mapping[str, Any], device: str
) -> dict[str, Any]:
    """Measure the parts whose names begin with one of ``prefixes``; copy the others from ``before``."""
    accuracy, latency = (randomized_model(get_recipe(name).model, device) for name in ("paper", "latency"))
    cells = accuracy_graphs(8192)
    networks = latency_graphs(np.random.default_rng(0).integers(100, 251, 16).tolist())
    few_repeats = 1 if quick else max(3, repeats // 5)

    def measure_training(name: str, batch: int, rounds: int) -> dict[str, Any]:
        if batch == 4096 and (quick or (free_memory := free_gib(device)) < TRAINING_GIB):
            return {"left_out": "quick" if quick else f"{free_memory:.0f} GiB of memory free, expected {TRAINING_GIB}"}
        return training(accuracy, "paper", cells[: 8 * batch], batch, rounds, name)

    parts: dict[str, Callable[[str], Any]] = {
        "largest_difference_from_plain": lambda _: {
            "accuracy": check_equal(accuracy, cells[:256]),
            "latency": check_equal(latency, networks),
        },
        "accuracy_forward, 128 graphs": lambda name: forward(accuracy, cells[: 8 * 128], 128, repeats, name),
        "accuracy_forward, 4096 graphs": lambda name: forward(accuracy, cells, 4096, few_repeats, name),
        "accuracy_training, 128 graphs": lambda name: measure_training(name, 128, repeats),
        "accuracy_training, 4096 graphs": lambda name: measure_training(name, 4096, few_repeats),
        "latency_forward, 16 graphs": lambda name: forward(latency, networks, 16, repeats, name),
        "latency_training, 16 graphs": lambda name: training(latency, "latency", networks, 16, few_repeats, name),
        "bf16": lambda _: bf16_against_fp32(6 if quick else 60, 2000 if quick else 40_000, device),
        "sparse": lambda _: sparse(latency, repeats),
        "nasbench101": lambda _: whole_benchmark(accuracy, quick),
        "one graph, paper": lambda name: measure_network("paper", repeats, name, device),
        "one graph, a network of ensemble": lambda name: measure_network("ensemble", repeats, name, device),
        "one graph, statistics": lambda name: measure_statistics(repeats, name, quick),
        "statistics, all cells": lambda _: measure_all_cells(quick),
    }
    result: dict[str, Any] = {"data": "random" if absent(NASBENCH101) else "NAS-Bench-101", "quick": quick}
    if unknown := [prefix for prefix in prefixes if not any(name.startswith(prefix) for name in parts)]:
        raise SystemExit(f"no part begins with {', '.join(unknown)}; expected one of: {'; '.join(parts)}")
    for name, part in parts.items():
        if prefixes and not any(name.startswith(prefix) for prefix in prefixes):
            result |= {name: before[name]} if name in before else {}
            continue
        start = time.perf_counter()
        result[name] = part(name)
        if prefixes and before:
            result[name]["machine"] = describe_machine(device, torch.get_num_threads())
        print(f"{name} ({time.perf_counter() - start:.0f} s): {json.dumps(result[name])}", flush=True)
    if device == "cpu":
        return {**result, "aims": [check_aim(result, *aim) for aim in AIMS if aim[0] in result]}
    return {"rows": throughput_rows(result), **result}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    parser.add_argument("--repeats", type=int, default=15, help="number of rounds; a fifth for slow parts")
    parser.add_argument("--quick", action="store_true", help="less data, and no training on 4,096 graphs")
    parser.add_argument(
        "--parts", nargs="+", default=[], help="prefixes of the parts to measure; others are kept from --out"
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1")
    parser.add_argument("--out", type=Path, help="default: in benchmarks/results, on a GPU in benchmarks/results/cuda")
    arguments = parser.parse_args(argv)
    folder = RESULTS if torch.device(arguments.device).type == "cpu" else RESULTS / "cuda"
    arguments.out = arguments.out or folder / "predictor_speed.json"
    torch.set_num_threads(arguments.threads)
    before = read_json(arguments.out) if arguments.parts and arguments.out.exists() else {}
    measured = measure(arguments.repeats, arguments.quick, arguments.parts, before, arguments.device)
    result = {**measured, "machine": before.get("machine", describe_machine(arguments.device, arguments.threads))}
    write_result(arguments.out, result, command(__file__, argv), adds=bool(arguments.parts))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
