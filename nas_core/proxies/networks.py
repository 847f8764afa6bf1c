"""Zero-cost proxies of the architectures of a search space or of NAS-Bench-201."""

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
    """Base class of functions that score architectures with random weights on one batch of inputs.

    Args:
        proxies: names in :data:`nas_core.proxies.PROXIES`; None: all.
        batch: batch size, at least 2.
        seed: seed of weights, inputs and targets, equal for all architectures.
    """

    def __init__(
        self, proxies: Sequence[str] | None = None, *, batch: int = 32, seed: int = 0, device: str = "cpu"
    ) -> None:
        if batch < 2:
            raise ConfigError(f"batch is {batch}; expected at least 2, since proxies compare samples")
        usable_device(device)
        self.proxies, self.batch, self.seed, self.device = list(chosen_proxies(proxies)), batch, seed, device

    targets: Tensor | None = None
    """Classes of the inputs ``(B,)``; None: random classes."""

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Settings other than the proxies that determine the scores, as JSON data."""

    @abstractmethod
    def build(self, architecture: Any) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """Build the network of an architecture, and its inputs, with torch's global random generators."""

    def __call__(self, architecture: Any) -> dict[str, float]:
        """Return the scores of an architecture by proxy."""
        with own_streams(self.seed):
            network, inputs = self.build(architecture)
        return zero_cost(network.to(self.device), inputs, self.targets, proxies=self.proxies, seed=self.seed)


class SpaceProxies(NetworkProxies):
    """Zero-cost proxies of the architectures of a search space.

    Args:
        workload: settings of the network's inputs by name, such as sentence lengths, vocabularies or classes.
        more: arguments of :class:`NetworkProxies`.
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

    def build(self, architecture: Architecture) -> tuple[nn.Module, tuple[Tensor, ...]]:
        return self.kind.training_pass(self.space, architecture, self.config, self.batch)


class NasBench201Proxies(NetworkProxies):
    """Zero-cost proxies of NAS-Bench-201 cells, given as strings or six operation indices.

    Args:
        images: ``(B, 3, height, width)``, normalised; None: random numbers of 32 x 32. Rankings of nwot are only
            reproduced with CIFAR-10 images.
        targets: ``(B,)`` classes of the images; None: random classes.
        channels: number of channels of the first stage.
        cells: number of cells of each stage.
        more: arguments of :class:`NetworkProxies`; ``batch`` applies to random images.
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

    def build(self, architecture: Any) -> tuple[nn.Module, tuple[Tensor, ...]]:
        network = nasbench201_network(architecture, channels=self.channels, cells=self.cells, seed=self.seed)
        return network, (torch.randn(self.batch, 3, 32, 32) if self.images is None else self.images,)

    @staticmethod
    def drawn(count: int, seed: int) -> list[str]:
        """Return ``count`` distinct random cells of the 15,625, as strings."""
        total = len(CHOICES) ** 6
        if not 0 < count <= total:
            raise ConfigError(f"count of cells is {count}; expected 1 to {total:,}, the cells of NAS-Bench-201")
        rows = np.random.default_rng(seed).permutation(total)[:count]
        return [nasbench201_string(np.array(np.unravel_index(row, (len(CHOICES),) * 6)).tolist()) for row in rows]


def proxy_loss(scores: NetworkProxies, proxy: str, metric: str = "loss") -> Callable[[Architecture], dict[str, float]]:
    """Return an ``evaluate`` for :func:`nas_core.search.search` that maximises one proxy, without training.

    The metrics also contain the scores of all proxies.

    Example:
        >>> search(strategy, proxy_loss(SpaceProxies(space, ["nwot"]), "nwot"))

    Args:
        proxy: name of the proxy to maximise.
        metric: name of the metric that the strategy minimises, minus the score; not the name of a proxy.
    """

    def evaluate(architecture: Architecture) -> dict[str, float]:
        values = scores(architecture)
        return {metric: -values[proxy], **values}

    return evaluate
