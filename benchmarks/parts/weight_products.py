"""Products with a model's weight matrices: a lower bound for the time of any implementation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from nas_core.graph import Graphs
from nas_core.precision import tf32
from nas_core.predictor import NNFormer


def position_count(model: NNFormer, graphs: Graphs) -> int:
    return int(graphs.sizes.sum()) + (2 * len(graphs) if model.config.readout == "class_token" else 0)


def weight_products(model: NNFormer, rows: int, training: bool) -> dict[str, Callable[[], None]]:
    """Return functions that compute all products of ``rows`` positions with the weight matrices.

    Args:
        training: also compute the products for gradients.
    """
    dtypes = {"products_fp32": torch.float32, "products_bf16": torch.bfloat16}
    runs = {name: _products(model, rows, dtype, training) for name, dtype in dtypes.items()}
    if next(model.parameters()).device.type == "cuda":
        runs["products_tf32"] = _with_tf32(runs["products_fp32"])
    return runs


def _products(model: NNFormer, rows: int, dtype: torch.dtype, training: bool) -> Callable[[], None]:
    linears = [m for m in model.blocks.modules() if isinstance(m, nn.Linear)]
    linears += [model.node_up, model.node_down] if model.config.readout == "sum" else []
    weights = [m.weight.detach().to(dtype) for m in linears]
    widths = {width for weight in weights for width in weight.shape}
    inputs = {width: torch.randn(rows, width, device=weights[0].device).to(dtype) for width in widths}

    def run() -> None:
        for weight in weights:
            hidden, x = inputs[weight.shape[0]], inputs[weight.shape[1]]
            x @ weight.T
            if training:
                hidden @ weight, hidden.T @ x

    return run


def _with_tf32(run: Callable[[], None]) -> Callable[[], None]:
    def run_tf32() -> None:
        with tf32(True):
            run()

    return run_tf32


def synchronized(runs: dict[str, Callable[[], object]], device: str) -> dict[str, Callable[[], object]]:
    """Return the functions, each followed by a synchronisation of the device."""
    if torch.device(device).type != "cuda":
        return runs

    def synchronize(run: Callable[[], object]) -> Callable[[], None]:
        def run_and_wait() -> None:
            run()
            torch.cuda.synchronize(device)

        return run_and_wait

    return {name: synchronize(run) for name, run in runs.items()}


def free_gib(device: str) -> float:
    """Return the free memory of the device in GiB."""
    if torch.device(device).type == "cuda":
        return torch.cuda.mem_get_info(device)[0] / 2**30
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) / 2**20
