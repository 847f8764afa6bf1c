"""Example of a zero-cost proxy: L2 norms of the weights, summed over layers."""

from __future__ import annotations

from nas_core.proxies import Trial


def l2_norm(trial: Trial) -> float:
    """Register it in one program by ``nas_core.proxies.PROXIES.register("l2_norm", l2_norm)``."""
    return float(sum(weight.detach().norm() for weight in trial.weights(trial.tensors())))
