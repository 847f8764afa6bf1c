"""Zero-cost proxies of a network: the public function.

Shapes: B batch, K classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, NasExtError
from nas_core.proxies.base import Proxy
from nas_core.proxies.registry import PROXIES
from nas_core.proxies.trial import Loss, Trial, scoring_modes
from nas_core.random_streams import own_streams
from nas_core.registry import first_line


def zero_cost(
    network: nn.Module,
    inputs: Tensor | Sequence[Tensor],
    targets: Tensor | None = None,
    *,
    proxies: Sequence[str] | None = None,
    loss: Loss | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Score an untrained network by proxies that need one batch and no training; large is good.

    Works for any network of torch: proxies see its parameters, and which functions it calls. They work on copies: the
    network's weights, buffers, gradients and modes, and torch's random streams are the same afterwards. Batch norms
    take the statistics of the batch, and nothing is dropped.

    Example:
        >>> zero_cost(nasbench201_network("|nor_conv_3x3~0|+.."), images, labels)["nwot"]

    Args:
        network: gives logits ``(B, .., K)``, alone or as the last of several outputs; where its weights are, there is
            computed.
        inputs: what it is called with, one tensor or several; the first dimension of each is B, at least 2.
        targets: classes ``(B, ..)``; default: drawn by ``seed``. Only ``grad_norm`` and ``snip`` read them.
        proxies: names in :data:`PROXIES`; default: all.
        loss: logits and targets to one number; default: mean cross entropy.
        seed: of all that is drawn.

    Returns:
        Each proxy's score by its name.

    Raises:
        ConfigError: no network, inputs that it cannot read, targets that do not fit, or a proxy that can say nothing of
            it; that is told before proxies are computed, where it can be known.
        UnknownChoiceError: no such proxy.
    """
    wanted = chosen_proxies(proxies)
    trial = _trial(network, inputs, targets, loss, seed)
    device = trial.inputs[0].device
    with own_streams(seed, device), scoring_modes(network):
        _check_runs(trial)
        return {name: _scored(name, proxy, trial) for name, proxy in wanted.items()}


def chosen_proxies(names: Sequence[str] | None = None) -> dict[str, Proxy]:
    """The proxies of those names, in their order; by default all that can be imported.

    Raises:
        ConfigError: no name. UnknownChoiceError: no such proxy.
    """
    if names is None:
        return dict(PROXIES.items())
    if isinstance(names, str) or not names:
        raise ConfigError(f"proxies are {names!r}; expected a list of names, such as ['nwot']")
    return {name: PROXIES.get(name) for name in names}


def _scored(name: str, proxy: Proxy, trial: Trial) -> float:
    score = proxy.score(trial)
    if score != score or score in (float("inf"), float("-inf")):
        raise ConfigError(
            f"{name} of this network is {score}: its weights or the batch hold what is no number, or it overflows; look"
            f" at them, or leave {name} out"
        )
    return score


def _trial(
    network: nn.Module, inputs: Tensor | Sequence[Tensor], targets: Tensor | None, loss: Loss | None, seed: int
) -> Trial:
    if not isinstance(network, nn.Module):
        raise ConfigError(f"got a {type(network).__name__} to score; expected a network, a torch.nn.Module")
    first = next(network.parameters(), None)
    if first is None:
        raise ConfigError("the network has no parameters; there is nothing to score")
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if not given or not all(isinstance(each, Tensor) for each in given):
        raise ConfigError("inputs are no tensors; expected what the network is called with, one tensor or several")
    sizes = {len(each) if each.dim() else 0 for each in given}
    if len(sizes) > 1 or min(sizes) < 2:
        raise ConfigError(
            f"inputs have shapes {', '.join(str(tuple(each.shape)) for each in given)}; expected the same first"
            " dimension, the batch, of at least 2 samples"
        )
    there = tuple(each.to(first.device) for each in given)
    return Trial(network, there, None if targets is None else targets.to(first.device), loss, seed)


def _check_runs(trial: Trial) -> None:
    """Run the network once, and the loss where targets are given, so that what does not fit is told first."""
    shapes = ", ".join(str(tuple(each.shape)) for each in trial.inputs)
    try:
        with torch.no_grad():
            logits = trial.logits(trial.tensors())
            if trial.targets is not None:
                trial.loss(logits)
    except NasExtError:
        raise
    except Exception as error:  # what another's network or loss raises is not ours
        raise ConfigError(f"the network cannot be run on inputs {shapes}: {first_line(error)}") from error
