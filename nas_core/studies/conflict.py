"""Study ``conflict``: compare gradients of subnets with the supernet's (Mixture-of-Supernets, Table 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nas_core.errors import ConfigError, DataError
from nas_core.layers.weights import named_tensors
from nas_core.space import Architecture, SearchSpace
from nas_core.studies.base import (
    ArchitecturesConfig,
    Bars,
    Measure,
    Study,
    StudyResult,
    Subject,
    chosen,
    learned_weights,
    one_space,
    params_m,
    same_examples,
    some_batches,
    to_dicts,
)
from nas_core.supernet.host import Supernet
from nas_core.supernet.sampling import draw, sandwich

AGAINST = ("largest", "sandwich")

Gradient = list[Tensor]
"""One tensor per parameter."""


@dataclass(frozen=True, kw_only=True)
class ConflictConfig(ArchitecturesConfig):
    """Settings of the study ``conflict``."""

    against: str = field(default="largest", metadata={"choices": AGAINST})
    """Gradient of the supernet: of the largest network, or the mean over a random, the largest and the smallest
    (sandwich)
    """
    batches: int = 8
    """Largest number of batches, evenly spaced over the data."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batches < 1:
            raise ConfigError(f"batches is {self.batches}; expected at least 1")


def gradient_of(supernet: Supernet, architecture: Architecture, batch: Any) -> Gradient:
    """Return the gradient of a subnet's training loss for all parameters of the supernet; 0 for unused ones."""
    parameters = learned_weights(supernet.network)
    loss = supernet.training_loss(architecture, batch)
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    return [
        torch.zeros_like(parameter) if gradient is None else gradient
        for parameter, gradient in zip(parameters, gradients, strict=True)
    ]


def used_weights(network: Any, architecture: Architecture) -> Gradient:
    # nonzero gradients of a random weighted sum of the selected weights
    """Return boolean masks of the elements of each parameter that a subnet uses."""
    parameters = learned_weights(network)
    stream = torch.Generator().manual_seed(0)
    with torch.enable_grad():
        selected = [tensor for _, tensor in named_tensors(network.select(architecture)) if tensor.requires_grad]
        probes = [torch.randn(tensor.shape, generator=stream).to(tensor) for tensor in selected]
        gradients = torch.autograd.grad(selected, parameters, probes, allow_unused=True)
    return [
        torch.zeros_like(parameter, dtype=torch.bool) if gradient is None else gradient != 0
        for parameter, gradient in zip(parameters, gradients, strict=True)
    ]


def gradient_cosine(first: Gradient, second: Gradient, masks: Gradient | None = None) -> float:
    """Return the cosine of two gradients; 0 if one is zero.

    Args:
        masks: boolean masks of the compared elements; None compares all.
    """
    dot = first_square = second_square = 0.0
    for index, (a, b) in enumerate(zip(first, second, strict=True)):
        if masks is not None:
            a, b = a * masks[index], b * masks[index]
        a, b = a.double(), b.double()
        dot, first_square, second_square = (
            dot + float((a * b).sum()),
            first_square + float((a * a).sum()),
            second_square + float((b * b).sum()),
        )
    return dot / (first_square * second_square) ** 0.5 if first_square and second_square else 0.0


class _Conflict(Study):
    name = "conflict"
    purpose = "Agreement of the gradients of subnets and supernet (Mixture-of-Supernets, Table 8)."
    about = (
        "Cosine between the gradient of a subnet's training loss and that of the supernet's on the same batch: 1 if"
        " both have the same direction, below 0 if they conflict. The paper gives no formula; as in NASViT (Gong et al."
        " 2022), which it cites, the supernet's gradient is that of the largest network, and the cosine is over the"
        " weights that both use. The cosine over all weights takes the subnet's gradient as 0 for weights that it does"
        " not use. Dropout is off."
    )
    config = ConflictConfig

    def run(self, subjects: Sequence[Subject], config: ConflictConfig, folder: Path) -> StudyResult:
        space = one_space(subjects)
        same_examples(subjects)
        architectures = chosen(space, config)
        sizes = params_m(space, architectures)
        rows = [
            {"supernet": subject.name, "architecture": name, "params_m": sizes.get(name), **figures}
            for subject in subjects
            for name, figures in _measured(subject, space, architectures, config).items()
        ]
        series: dict[str, dict[str, float]] = {}
        for row in rows:
            series.setdefault(row["supernet"], {})[row["architecture"]] = row["cosine"]
        smaller = [name for name, architecture in architectures.items() if architecture != space.largest()]
        summary = [
            {
                "supernet": name,
                "smallest": cosines.get("smallest"),
                "mean": float(np.mean([cosines[key] for key in smaller])) if smaller else None,
                "against": config.against,
            }
            for name, cosines in series.items()
        ]
        return StudyResult(
            (
                Measure("supernet", "supernet"),
                Measure("architecture", "architecture"),
                Measure("params_m", "M parameters", ".2f"),
                Measure("cosine", "cosine", ".3f"),
                Measure("deviation", "deviation of batches", ".3f"),
                Measure("opposed", "batches below 0", ".0%"),
                Measure("cosine_all", "over all weights", ".3f"),
                Measure("shared", "weights used", ".0%"),
                Measure("batches", "batches", "d"),
            ),
            rows,
            (
                Measure("supernet", "supernet"),
                Measure("against", "gradient of"),
                Measure("smallest", "smallest network", ".3f"),
                Measure("mean", "mean but the largest", ".3f"),
            ),
            summary,
            Bars(series, f"cosine with the gradient of the {config.against}"),
            (self.about,),
            {"architectures": to_dicts(architectures)},
        )


def _measured(
    subject: Subject, space: SearchSpace, architectures: dict[str, Architecture], config: ConflictConfig
) -> dict[str, dict[str, Any]]:
    supernet = subject.supernet
    network = supernet.network
    masks = {name: used_weights(network, architecture) for name, architecture in architectures.items()}
    shared: dict[str, list[float]] = {name: [] for name in architectures}
    cosines: dict[str, list[float]] = {name: [] for name in architectures}
    for index, batch in enumerate(some_batches(supernet, config.batches)):
        reference = [space.largest()]
        if config.against == "sandwich":
            reference = list(sandwich(space, draw(space, index, config.seed)).values())
        parts = [gradient_of(supernet, architecture, batch) for architecture in reference]
        of_supernet = [torch.stack(tensors).mean(0) for tensors in zip(*parts, strict=True)]
        for name, architecture in architectures.items():
            gradients = gradient_of(supernet, architecture, batch)
            if not all(bool(torch.isfinite(tensor).all()) for tensor in gradients):
                raise DataError(
                    f"{subject.path}: the gradient of architecture {name} is not finite; the supernet has diverged,"
                    " train it again"
                )
            # the loss may read parameters that are no selected weights
            used = [mask | (gradient != 0) for mask, gradient in zip(masks[name], gradients, strict=True)]
            shared[name].append(gradient_cosine(of_supernet, gradients, used))
            cosines[name].append(gradient_cosine(of_supernet, gradients))
    total = sum(parameter.numel() for parameter in learned_weights(network))
    return {
        name: {
            "cosine": float(np.mean(shared[name])),
            "deviation": float(np.std(shared[name])),
            "opposed": float(np.mean(np.array(shared[name]) < 0)),
            "cosine_all": float(np.mean(cosines[name])),
            "shared": sum(int(mask.sum()) for mask in masks[name]) / total,
            "batches": len(shared[name]),
        }
        for name in architectures
    }


CONFLICT = _Conflict()
