"""Zero-cost proxies of architectures with random weights, from a space or NAS-Bench-201."""

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
    """Base class that scores architectures with random weights on one batch of random inputs.

    All architectures get the same random draws.

    Args:
        proxies: names in :data:`nas_core.proxies.PROXIES`; default: all.
        batch: B, at least 2.
        seed: for weights, inputs and targets.
    """

    def __init__(
        self, proxies: Sequence[str] | None = None, *, batch: int = 32, seed: int = 0, device: str = "cpu"
    ) -> None:
        if batch < 2:
            raise ConfigError(f"batch is {batch}; expected at least 2, since proxies compare samples")
        usable_device(device)
        self.proxies, self.batch, self.seed, self.device = list(chosen_proxies(proxies)), batch, seed, device

    targets: Tensor | None = None
    """Classes of the inputs; None: random."""

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return further settings that determine the scores, as plain data."""

    @abstractmethod
    def build(self, architecture: Any) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """Build the network and draw its inputs from torch's random streams."""

    def __call__(self, architecture: Any) -> dict[str, float]:
        """Return the scores by proxy, as :func:`nas_core.proxies.zero_cost`."""
        with own_streams(self.seed):
            network, inputs = self.build(architecture)
        return zero_cost(network.to(self.device), inputs, self.targets, proxies=self.proxies, seed=self.seed)


class SpaceProxies(NetworkProxies):
    """Zero-cost proxies of the architectures of a search space.

    Args:
        workload: settings of the workload by name, such as sentence lengths, vocabularies or classes.
        more: see :class:`NetworkProxies`.

    Raises:
        SpaceError: no kind of network fits.
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
    """Zero-cost proxies of NAS-Bench-201 cells, as strings or six indices.

    Args:
        images: ``(B, 3, height, width)``, normalised; CIFAR-10 images give the ranking of published scores. Default:
            random numbers of 32 x 32, with which nwot gives another ranking.
        targets: ``(B,)`` classes of the images; default: random.
        channels: channels of the first stage.
        cells: cells of each stage.
        more: see :class:`NetworkProxies`; ``batch`` is for random images.
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
        """Draw ``count`` distinct cells of the 15,625, as strings."""
        total = len(CHOICES) ** 6
        if not 0 < count <= total:
            raise ConfigError(f"count of cells is {count}; NAS-Bench-201 has {total:,}")
        rows = np.random.default_rng(seed).permutation(total)[:count]
        return [nasbench201_string(np.array(np.unravel_index(row, (len(CHOICES),) * 6)).tolist()) for row in rows]


def proxy_loss(scores: NetworkProxies, proxy: str, metric: str = "loss") -> Callable[[Architecture], dict[str, float]]:
    """Return an ``evaluate`` for :func:`nas_core.search.search` without training: minus the score of one proxy.

    The metrics also contain the scores of all proxies.

    Example:
        >>> search(strategy, proxy_loss(SpaceProxies(space, ["nwot"]), "nwot"))

    Args:
        proxy: proxy to maximise.
        metric: metric that the strategy minimises; not the name of a proxy.
    """

    def evaluate(architecture: Architecture) -> dict[str, float]:
        values = scores(architecture)
        return {metric: -values[proxy], **values}

    return evaluate
