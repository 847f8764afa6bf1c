"""A zero-cost proxy: a score of an untrained network from one batch, large where networks tend to become good."""

from __future__ import annotations

from abc import ABC, abstractmethod

from nas_core.proxies.trial import Trial


class Proxy(ABC):
    """One score. It has no state of its own, and leaves the network of a trial as it is."""

    name: str
    """Its name in the registry and in results."""
    purpose: str
    """What it measures, in one line."""

    @abstractmethod
    def score(self, trial: Trial) -> float:
        """The score of the trial's network.

        Raises:
            ConfigError: a network of which it can say nothing.
        """
