"""Predicted and measured latency at batch sizes and lengths beyond the training range, with interval coverage.

``python -m benchmarks extrapolation --model cpu.safetensors``; ``--networks lm vit`` selects names by prefix. Language
models and networks of the dataset's families are measured in onnxruntime, on one thread, by CPU time. Ratios of
measured to predicted latency beyond the training range are divided by the network's mean ratio within it, because a
slower machine changes all of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from benchmarks.latency.published_networks import pass_timer
from benchmarks.parts.record import command, write_result
from nas_core.errors import NasExtError
from nas_core.graph import Graphs
from nas_core.graph.onnx.reader import read_onnx
from nas_core.latency import load_latency_model
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.dataset.collect import planned_networks
from nas_core.latency.by_graph.dataset.export import exported
from nas_core.latency.by_graph.families.family import Family
from nas_core.latency.by_graph.families.registry import network_families
from nas_core.latency.by_graph.predict import shipped_model
from nas_core.latency.by_graph.unseen import extrapolation_std
from nas_core.latency.machine import describe_machine

RESULT = Path(__file__).parents[1] / "results" / "extrapolation.json"
LANGUAGE = {"lm-small": (2000, 128, 4, 3), "lm-medium": (6000, 256, 4, 4), "lm-large": (4000, 384, 6, 4)}
"""Vocabulary, channels, heads, layers."""
TOKEN_SHAPES = ((1, 32), (1, 128), (1, 256), (1, 512), (1, 1024), (4, 64), (4, 256), (8, 128))
"""Batch size and length in tokens."""
FAMILIES, PER_FAMILY, BATCHES = ("resnet", "vit", "mobilenetv2", "vgg"), 2, (1, 2, 4, 8, 16)
SEED = 7
"""Seed of the networks; differs from that of the dataset."""


class Block(nn.Module):
    """Transformer block with causal attention, pre-norm: ``(B, T, C)`` to ``(B, T, C)``."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(2))
        self.qkv, self.out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, channels = x.shape
        projected = self.qkv(self.norms[0](x)).reshape(batch, length, 3, self.heads, channels // self.heads)
        q, k, v = projected.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, channels))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class LanguageModel(nn.Module):
    """Causal language model: tokens ``(B, T)`` to logits ``(B, T, V)``."""

    def __init__(self, vocab: int, channels: int, heads: int, layers: int) -> None:
        super().__init__()
        self.token_embedding, self.position_embedding = nn.Embedding(vocab, channels), nn.Embedding(2048, channels)
        self.blocks = nn.ModuleList(Block(channels, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(channels), nn.Linear(channels, vocab, bias=False)

    def forward(self, text: Tensor) -> Tensor:
        x = self.token_embedding(text) + self.position_embedding(torch.arange(text.shape[1]))[None]
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


class Case(NamedTuple):
    network: str
    size: str
    make: Callable[[], tuple[nn.Module, tuple[Tensor, ...]]]


def cases() -> Iterator[Case]:
    for name, (vocab, *dims) in LANGUAGE.items():
        for batch, length in TOKEN_SHAPES:
            text = torch.randint(0, vocab, (batch, length))
            yield Case(
                name,
                f"{batch} x {length}",
                lambda w=vocab, r=dims, t=text: (LanguageModel(w, *r).eval(), (t,)),
            )
    families = network_families()
    for name in FAMILIES:
        family = families[name]
        if not isinstance(family, Family):
            raise family
        for planned in planned_networks([family], PER_FAMILY, SEED):
            for batch in BATCHES:

                def make(planned: Any = planned, batch: int = batch) -> tuple[nn.Module, tuple[Tensor, ...]]:
                    network, inputs = planned.family.network(planned.settings)
                    return network, tuple(torch.randn(batch, *x.shape[1:]) for x in inputs)

                yield Case(planned.name, f"batch {batch}", make)


def measure(case: Case, model: GraphLatencyModel, visits: int) -> dict[str, Any]:
    torch.manual_seed(0)
    network, inputs = case.make()
    with torch.no_grad():
        content = exported(network, inputs)
    graphs = Graphs.of([read_onnx(content, warn=False).graph])
    predicted, std = (float(values[0]) for values in model.predict_with_std(graphs))
    extrapolation = float(extrapolation_std(graphs, model.info["ranges"])[0])
    measure_ms = pass_timer(content, inputs, predicted)
    return {
        "network": case.network,
        "size": case.size,
        "predicted_ms": round(predicted, 3),
        "std_ms": round(std, 3),
        "beyond": round(extrapolation, 4),
        "measured_ms": round(float(np.median([measure_ms() for _ in range(visits)])), 3),
    }


def add_ratios(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Add relative ratios to the rows beyond the training range; return interval coverage.

    Coverage is the fraction of rows within one and two standard deviations, with and without the part for
    extrapolation.
    """
    in_range: dict[str, list[float]] = {}
    for row in rows:
        if not row["beyond"]:
            in_range.setdefault(row["network"], []).append(np.log(row["measured_ms"] / row["predicted_ms"]))
    outside = [row for row in rows if row["beyond"] and row["network"] in in_range]
    for row in outside:
        ratio = row["measured_ms"] / row["predicted_ms"] / np.exp(np.mean(in_range[row["network"]]))
        row["relative_ratio"] = round(float(ratio), 3)
    errors = np.array([abs(row["relative_ratio"] - 1) for row in outside])
    stds = np.array([row["std_ms"] / row["predicted_ms"] for row in outside])
    stds_before = np.sqrt(np.maximum(stds**2 - np.array([row["beyond"] for row in outside]) ** 2, 0))
    return {
        "beyond": len(outside),
        "mean_error_percent": round(100 * float(errors.mean()), 1),
        **{
            f"within_{count}_spread{plural}_percent{suffix}": round(100 * float((errors <= count * part).mean()), 1)
            for part, suffix in ((stds, ""), (stds_before, "_without_extrapolation"))
            for count, plural in ((1, ""), (2, "s"))
        },
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model", type=Path, help="latency model of 'nas-ext latency train'; default: the shipped model"
    )
    parser.add_argument(
        "--networks", nargs="+", default=[""], metavar="NAME", help="prefixes of network names; default: all"
    )
    parser.add_argument("--visits", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    try:
        model = load_latency_model(options.model, "graph") if options.model else shipped_model()
        chosen = [case for case in cases() if case.network.startswith(tuple(options.networks))]
        rows = [measure(case, model, options.visits) for case in tqdm(chosen, disable=None)]
    except NasExtError as error:
        raise SystemExit(f"extrapolation: error: {error}") from None
    summary = add_ratios(rows)
    write_result(options.out, {"machine": describe_machine("cpu", 1), **summary, "rows": rows}, command(__file__, argv))
    print(summary)


if __name__ == "__main__":
    main()
