"""Study ``routing``: compare routing weights between architectures (Mixture-of-Supernets, Table 7).

Shapes: M experts, R rows of routing weights per router.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import jensenshannon
from scipy.stats import spearmanr
from torch import Tensor, nn, no_grad

from nas_core.errors import ConfigError
from nas_core.layers.mos import Router
from nas_core.report.figures import heat_map
from nas_core.report.tables import Column, Table
from nas_core.space import Architecture
from nas_core.studies.base import (
    ArchitecturesConfig,
    Study,
    StudyResult,
    Subject,
    params_m,
    select_architectures,
    shared_space,
    to_dicts,
)

Mixtures = dict[str, NDArray[np.float64]]
"""Name of a router -> routing weights (R, M) for one architecture."""


def shannon_distance(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """Return the Jensen-Shannon distance ``(..)`` of distributions ``(.., M)``, from 0 to sqrt(ln 2) = 0.8326.

    It is the square root of ``KL(p || m) / 2 + KL(q || m) / 2`` with ``m = (p + q) / 2`` and natural logarithms (Lin
    1991; Endres and Schindelin 2003). With base 2, values are 1.2011 times as large; Mixture-of-Supernets (A.1.1) does
    not name the base.
    """
    distance: NDArray[np.float64] = jensenshannon(p, q, axis=-1)
    return np.nan_to_num(distance)  # rounding may make the divergence of equal distributions negative


def mixtures_of(network: Any, architecture: Architecture) -> Mixtures:
    """Return the routing weights of all routers for an architecture, in evaluation mode."""
    mixtures: Mixtures = {}

    def note(name: str, _: nn.Module, __: Any, coefficients: Tensor) -> None:
        values = coefficients.detach().double().cpu().numpy()
        mixtures[name] = values.reshape(-1, values.shape[-1])

    with ExitStack() as hooks, no_grad():
        for name, module in network.named_modules():
            if isinstance(module, Router):
                hooks.callback(module.register_forward_hook(partial(note, name)).remove)
        network.select(architecture)
    return mixtures


def mixture_distance(first: Mixtures, second: Mixtures) -> dict[str, float]:
    """Return router -> mean Jensen-Shannon distance of its routing weights, for routers that both architectures use."""
    distances = {}
    for name in first:
        if name in second:
            rows = min(len(first[name]), len(second[name]))
            distances[name] = float(shannon_distance(first[name][:rows], second[name][:rows]).mean())
    return distances


class _Routing(Study):
    name = "routing"
    purpose = "Distance of the mixtures of experts between architectures (Mixture-of-Supernets, Table 7)."
    about = (
        "Jensen-Shannon distance between the mixtures that routers give for two architectures, with natural logarithms:"
        " 0 if both get the same routing weights, 0.833 if they share no expert. Layer-wise routers have one mixture;"
        " for neuron-wise ones it is the mean over the rows of both architectures. The mean is over the routers that"
        " both architectures use."
        " After Table 7 of Mixture-of-Supernets."
    )
    config = ArchitecturesConfig

    def run(self, subjects: Sequence[Subject], config: ArchitecturesConfig, folder: Path) -> StudyResult:
        networks = {subject.name: _routed(subject) for subject in subjects}
        space = shared_space(subjects)
        architectures = select_architectures(space, config, at_least=2)
        sizes = params_m(space, architectures)
        rows: list[dict[str, Any]] = []
        summary, panels, routers = [], {}, {}
        for name, network in networks.items():
            mixtures = {key: mixtures_of(network, architecture) for key, architecture in architectures.items()}
            distances = {
                (first, second): mixture_distance(mixtures[first], mixtures[second])
                for first, second in combinations(architectures, 2)
            }
            means = {pair: float(np.mean(list(by_router.values()))) for pair, by_router in distances.items()}
            rows += [
                {
                    "supernet": name,
                    "first": first,
                    "second": second,
                    "first_m": sizes.get(first),
                    "second_m": sizes.get(second),
                    "distance": means[first, second],
                    "least": min(by_router.values()),
                    "most": max(by_router.values()),
                }
                for (first, second), by_router in distances.items()
            ]
            panels[name] = [[means.get((a, b), means.get((b, a), 0.0)) for b in architectures] for a in architectures]
            routers[name] = {" / ".join(pair): by_router for pair, by_router in distances.items()}
            summary.append({"supernet": name, **_summary(means, sizes)})
        highest = max(row["distance"] for row in rows)
        columns = [
            Column("supernet", "supernet"),
            Column("first", "first"),
            Column("second", "second"),
            Column("first_m", "first (M parameters)", ".2f"),
            Column("second_m", "second", ".2f"),
            Column("distance", "distance", ".4f"),
            Column("least", "least router", ".4f"),
            Column("most", "most router", ".4f"),
        ]
        summary_columns = [
            Column("supernet", "supernet"),
            Column("extremes", "smallest to largest", ".4f"),
            Column("mean", "all pairs, mean", ".4f"),
            Column("by_size", "correlation with the difference in parameters", ".2f"),
        ]
        return StudyResult(
            Table(columns, rows),
            Table(summary_columns, summary),
            {
                name: heat_map(list(architectures), matrix, highest, "Jensen-Shannon distance")
                for name, matrix in panels.items()
            },
            (self.about,),
            {"architectures": to_dicts(architectures), "routers": routers},
        )


def _routed(subject: Subject) -> Any:
    network = subject.supernet.network
    if not any(isinstance(module, Router) for module in network.modules()):
        raise ConfigError(
            f"{subject.path} has no experts and so no router; routing needs a supernet with experts (--mos)"
        )
    return network


def _summary(means: Mapping[tuple[str, str], float], sizes: Mapping[str, float]) -> dict[str, float | None]:
    differences = [abs(sizes[first] - sizes[second]) for first, second in means] if sizes else []
    values = list(means.values())
    varying = len(values) > 2 and len(set(differences)) > 1 and len(set(values)) > 1
    return {
        "extremes": means.get(("smallest", "largest")),
        "mean": float(np.mean(values)),
        "by_size": float(spearmanr(differences, values).statistic) if varying else None,
    }


ROUTING = _Routing()
