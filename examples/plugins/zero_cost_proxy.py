"""Example of a zero-cost proxy: L2 norms of the weights, summed over layers."""

from __future__ import annotations

from nas_core.proxies import Proxy
from nas_core.proxies.trial import Trial


class L2Norm(Proxy):
    name = "l2_norm"
    purpose = "norms of the weights, summed over layers"

    def score(self, trial: Trial) -> float:
        return float(sum(weight.detach().norm() for weight in trial.weights(trial.tensors())))


L2_NORM = L2Norm()
"""Register it in one program by ``nas_core.proxies.PROXIES.register("l2_norm", L2_NORM)``."""
