"""Untrained networks that the project can build, with a batch of random inputs each: of spaces, and of NAS-Bench-201.

Shapes: B batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nas_core.device import usable_device
from nas_core.errors import ConfigError
from nas_core.graph.nasbench201 import CHOICES, nasbench201_string
from nas_core.models.kind import kind_of
from nas_core.models.nasbench201 import nasbench201_network
from nas_core.proxies.scoring import chosen_proxies, zero_cost
from nas_core.random_streams import own_streams
from nas_core.space import Architecture, SearchSpace


class NetworkProxies(ABC):
    """Zero-cost proxies of architectures by name of the proxy: an architecture is built with random weights and scored
    on a batch of random inputs. All architectures get the same draws.

    Args:
        proxies: names in :data:`nas_core.proxies.PROXIES`; default: all.
        batch: B, at least 2.
        seed: of weights, inputs and targets.
        device: where to compute.

    Raises:
        ConfigError, UnknownChoiceError: an argument that cannot be.
    """

    def __init__(
        self, proxies: Sequence[str] | None = None, *, batch: int = 32, seed: int = 0, device: str = "cpu"
    ) -> None:
        if batch < 2:
            raise ConfigError(f"batch is {batch}; expected at least 2, since proxies compare samples")
        usable_device(device)
        self.proxies, self.batch, self.seed, self.device = list(chosen_proxies(proxies)), batch, seed, device

    targets: Tensor | None = None
    """Classes of the inputs; None: drawn."""

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What else decides the scores, as plain data."""

    @abstractmethod
    def made(self, architecture: Any) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """The network and its inputs, drawn from torch's streams.

        Raises:
            NasExtError: it is no architecture of these networks.
        """

    def __call__(self, architecture: Any) -> dict[str, float]:
        """Each proxy's score by its name; errors as of :meth:`made` and :func:`nas_core.proxies.zero_cost`."""
        with own_streams(self.seed):
            network, inputs = self.made(architecture)
        return zero_cost(
            network.to(self.device),
            inputs,
            self.targets,
            proxies=self.proxies,
            seed=self.seed,
        )


class SpaceProxies(NetworkProxies):
    """Zero-cost proxies of the architectures of a search space, by :meth:`nas_core.models.ModelKind.training_pass`.

    Args:
        space: its kind of network is the one whose genes it has.
        workload: settings of the kind's workload by name, such as sentence lengths, vocabularies or classes.
        more: as of :class:`NetworkProxies`.

    Raises:
        SpaceError: no kind of network fits. Others as of :class:`NetworkProxies`.
    """

    def __init__(
        self,
        space: SearchSpace,
        proxies: Sequence[str] | None = None,
        workload: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(proxies, **more)
        self.space, self.kind = space, kind_of(space)
        self.config = self.kind.config(dict(workload or {}))

    @property
    def settings(self) -> dict[str, Any]:
        return {"space": self.space.name, **self.kind.described(self.config), "batch": self.batch, "seed": self.seed}

    def made(self, architecture: Architecture) -> tuple[nn.Module, tuple[Tensor, ...]]:
        return self.kind.training_pass(self.space, architecture, self.config, self.batch)


class NasBench201Proxies(NetworkProxies):
    """Zero-cost proxies of cells of NAS-Bench-201, given as strings or as six indices.

    Args:
        images: ``(B, 3, height, width)``, normalised; those of CIFAR-10 give the order of published scores. Default:
            random numbers of 32 x 32, whose nwot orders cells otherwise.
        targets: ``(B,)`` their classes; default: drawn.
        channels: of the first stage.
        cells: of each stage.
        more: as of :class:`NetworkProxies`; ``batch`` belongs to random images.
    """

    def __init__(
        self,
        proxies: Sequence[str] | None = None,
        images: Tensor | None = None,
        targets: Tensor | None = None,
        channels: int = 16,
        cells: int = 5,
        **more: Any,
    ) -> None:
        super().__init__(proxies, **more)
        self.images, self.targets, self.channels, self.cells = images, targets, channels, cells

    @property
    def settings(self) -> dict[str, Any]:
        network = {"space": "nasbench201", "channels": self.channels, "cells": self.cells}
        return {**network, "batch": self.batch if self.images is None else len(self.images), "seed": self.seed}

    def made(self, architecture: Any) -> tuple[nn.Module, tuple[Tensor, ...]]:
        network = nasbench201_network(architecture, channels=self.channels, cells=self.cells, seed=self.seed)
        return network, (torch.randn(self.batch, 3, 32, 32) if self.images is None else self.images,)

    @staticmethod
    def drawn(count: int, seed: int) -> list[str]:
        """So many different cells of the 15,625, as strings, in an order that depends on the seed alone.

        Raises:
            ConfigError: there are not so many.
        """
        total = len(CHOICES) ** 6
        if not 0 < count <= total:
            raise ConfigError(f"{count} cells were asked for; NAS-Bench-201 has {total:,}")
        rows = np.random.default_rng(seed).permutation(total)[:count]
        return [nasbench201_string(np.array(np.unravel_index(row, (len(CHOICES),) * 6)).tolist()) for row in rows]


def proxy_loss(scores: NetworkProxies, proxy: str, metric: str = "loss") -> Callable[[Architecture], dict[str, float]]:
    """An ``evaluate`` for :func:`nas_core.search.search` that costs no training: the negative score of one proxy, which
    strategies minimise, beside the scores of all.

    Example:
        >>> search(strategy, proxy_loss(SpaceProxies(space, ["nwot"]), "nwot"))

    Args:
        scores: computes the proxies.
        metric: what the strategy minimises.

    Raises:
        ConfigError: the proxy is none of those that are computed, or has the name of the metric.
    """
    if proxy not in scores.proxies or metric in scores.proxies:
        raise ConfigError(
            f"proxy {proxy!r} as metric {metric!r}: expected one of the proxies that are computed,"
            f" {', '.join(scores.proxies)}, and a metric that is none of them"
        )

    def evaluate(architecture: Architecture) -> dict[str, float]:
        found = scores(architecture)
        return {metric: -found[proxy], **found}

    return evaluate
