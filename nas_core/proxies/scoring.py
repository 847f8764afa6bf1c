"""Registry of zero-cost proxies, and scoring of a network."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.proxies.trial import Loss, Proxy, Trial, scoring_modes
from nas_core.random_streams import own_streams
from nas_core.registry import Registry

PROXIES: Registry[Proxy] = Registry(
    "zero-cost proxy",
    "",
    {
        name: f"nas_core.proxies.scores:{name}"
        for name in ("params", "flops", "synflow", "nwot", "jacov", "grad_norm", "snip")
    },
    Proxy,
)
"""Zero-cost proxies by name; add one with ``PROXIES.register``."""


def zero_cost(
    network: nn.Module,
    inputs: Tensor | Sequence[Tensor],
    targets: Tensor | None = None,
    *,
    proxies: Sequence[str] | None = None,
    loss: Loss | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Return the scores of an untrained network by proxy, on one batch of B samples and K classes; larger is better.

    The network is unchanged afterwards. Batch norms use batch statistics. Dropout is off.

    Example:
        >>> zero_cost(nasbench201_network("|nor_conv_3x3~0|+.."), images, labels)["nwot"]

    Args:
        network: network that returns logits ``(B, .., K)``, alone or as the last of several outputs.
        inputs: arguments of the network, one tensor or several; B is at least 2.
        targets: classes ``(B, ..)`` for ``grad_norm`` and ``snip``; None: random classes.
        proxies: names in :data:`PROXIES`; None: all.
        loss: function from logits and targets to one number; None: mean cross entropy.

    Raises:
        ConfigError: inputs or targets have unsupported shapes, or the network does not support a proxy.
    """
    chosen = chosen_proxies(proxies)
    tensors = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    sizes = {len(tensor) if tensor.dim() else 0 for tensor in tensors}
    if len(sizes) != 1 or min(sizes) < 2:
        raise ConfigError(
            f"inputs have shapes {', '.join(str(tuple(tensor.shape)) for tensor in tensors)}; expected the same first"
            " dimension, the batch, of at least 2 samples"
        )
    device = next(network.parameters()).device
    moved = None if targets is None else targets.to(device)
    trial = Trial(network, tuple(tensor.to(device) for tensor in tensors), moved, loss, seed)
    with own_streams(seed, device), scoring_modes(network):
        return {name: _score(name, proxy, trial) for name, proxy in chosen.items()}


def chosen_proxies(names: Sequence[str] | None = None) -> dict[str, Proxy]:
    """Return proxies by name, in the order of ``names``; None: all that can be imported."""
    if names is None:
        return dict(PROXIES.items())
    return {name: PROXIES.get(name) for name in names}


def _score(name: str, proxy: Proxy, trial: Trial) -> float:
    score = proxy.score(trial)
    if not math.isfinite(score):
        raise ConfigError(
            f"{name} of this network is {score}; check its weights and the batch for overflow and NaN, or leave {name}"
            " out"
        )
    return score
