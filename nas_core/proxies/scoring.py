"""Registry of zero-cost proxies, and scoring of a network.

Shapes: B batch, K classes.
"""

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
    """Return the scores of an untrained network on one batch by proxy; larger is better.

    The network and torch's random streams are unchanged afterwards. Batch norms use batch statistics, dropout is off.

    Example:
        >>> zero_cost(nasbench201_network("|nor_conv_3x3~0|+.."), images, labels)["nwot"]

    Args:
        network: returns logits ``(B, .., K)``, alone or as the last of several outputs.
        inputs: arguments of the network, one tensor or several; B is at least 2.
        targets: classes ``(B, ..)`` for ``grad_norm`` and ``snip``; default: drawn with ``seed``.
        proxies: names in :data:`PROXIES`; default: all.
        loss: logits and targets to one number; default: mean cross entropy.
        seed: for all random draws.

    Raises:
        ConfigError: inputs or targets do not fit, or a proxy does not apply.
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
    """Return the proxies in the order of ``names``; default: all that can be imported."""
    if names is None:
        return dict(PROXIES.items())
    return {name: PROXIES.get(name) for name in names}


def _score(name: str, proxy: Proxy, trial: Trial) -> float:
    score = proxy.score(trial)
    if not math.isfinite(score):
        raise ConfigError(
            f"{name} of this network is {score}: check its weights and the batch for overflow and for values that are"
            f" no numbers, or leave {name} out"
        )
    return score
