"""Registry of zero-cost proxies, and scoring of a network on one batch. Shapes: B batch, K classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm  # noqa: PLC2701

from nas_core.errors import ConfigError
from nas_core.random_streams import own_streams
from nas_core.registry import Registry

Loss = Callable[[Tensor, Tensor], Tensor]
"""Function from logits and targets to one number."""
Tensors = dict[str, Tensor]
"""Parameters and buffers of a network by name."""


class Trial:
    """Network with a batch of inputs and targets, on which proxies are computed.

    Args:
        targets: targets of the loss; None: random classes ``(B, ..)`` for logits ``(B, .., K)``.
    """

    def __init__(
        self,
        network: nn.Module,
        inputs: tuple[Tensor, ...],
        targets: Tensor | None = None,
        loss: Loss | None = None,
        seed: int = 0,
    ) -> None:
        self.network, self.inputs, self.targets = network, inputs, targets
        self._loss, self._seed = loss or _cross_entropy, seed

    @property
    def batch(self) -> int:
        return len(self.inputs[0])

    def tensors(self, dtype: torch.dtype | None = None) -> Tensors:
        """Return copies of parameters, with gradients, and of buffers. None: keep their floating-point types."""
        copies = {}
        for name, parameter in self.network.named_parameters():
            copies[name] = _copied(parameter, dtype).requires_grad_(parameter.is_floating_point())
        for name, buffer in self.network.named_buffers():
            copies[name] = _copied(buffer, dtype)
        return copies

    def weights(self, tensors: Tensors) -> list[Tensor]:
        """Return the matrices and kernels in ``tensors``, without biases and parameters of norms."""
        return [
            tensors[name]
            for name, parameter in self.network.named_parameters()
            if parameter.dim() > 1 and parameter.is_floating_point()
        ]

    def logits(self, tensors: Tensors, inputs: tuple[Tensor, ...] | None = None) -> Tensor:
        """Return the logits ``(B, .., K)`` of the network with parameters and buffers ``tensors``."""
        output: Any = functional_call(self.network, tensors, self.inputs if inputs is None else inputs)
        logits = output[-1] if isinstance(output, tuple | list) and output else output
        if not isinstance(logits, Tensor) or logits.dim() < 2:
            got = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
            raise ConfigError(
                f"the network returns {got}; expected logits (B, .., classes), alone or as the last of several outputs"
            )
        return logits

    def loss(self, logits: Tensor) -> Tensor:
        stream = torch.Generator().manual_seed(self._seed)
        targets = self.targets
        if targets is None:
            targets = torch.randint(logits.shape[-1], logits.shape[:-1], generator=stream).to(logits.device)
        elif self._loss is _cross_entropy:
            _check_classes(targets, logits)
        return self._loss(logits, targets).reshape(())

    @cached_property
    def sensitivities(self) -> list[tuple[Tensor, Tensor]]:
        """Pairs of a weight tensor and the gradient of the loss for it."""
        tensors = self.tensors()
        weights = self.weights(tensors)
        gradients = gradients_of(self.loss(self.logits(tensors)), weights)
        return [(weight.detach(), gradient) for weight, gradient in zip(weights, gradients, strict=True)]


def gradients_of(value: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    """Return the gradient of ``value`` for each tensor; 0 if ``value`` does not depend on the tensor."""
    if not value.requires_grad:
        return [torch.zeros_like(tensor) for tensor in tensors]
    return list(torch.autograd.grad(value, tensors, allow_unused=True, materialize_grads=True))


@contextmanager
def scoring_modes(network: nn.Module) -> Iterator[None]:
    """Use batch statistics and no dropout inside the block. Afterwards restore the mode of each module."""
    before = [(module, module.training) for module in network.modules()]
    try:
        for module, _ in before:
            module.training = isinstance(module, _BatchNorm)
        yield
    finally:
        for module, training in before:
            module.training = training


def _copied(tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
    real = dtype is not None and tensor.is_floating_point()
    return tensor.detach().to(dtype if real else tensor.dtype, copy=True)


def _cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


def _check_classes(targets: Tensor, logits: Tensor) -> None:
    # on CUDA a wrong class would abort the context instead of raising
    if targets.shape != logits.shape[:-1] or targets.is_floating_point():
        raise ConfigError(
            f"targets have shape {tuple(targets.shape)} and type {targets.dtype}; for logits {tuple(logits.shape)},"
            f" expected integers of shape {tuple(logits.shape[:-1])}: give these, or your own loss"
        )
    least, most = (int(end) for end in targets.aminmax())
    if least < 0 or most >= logits.shape[-1]:
        raise ConfigError(f"targets are {least} to {most}; expected classes 0 to {logits.shape[-1] - 1}")


Proxy = Callable[[Trial], float]
"""Function that scores the network of a trial, which stays unchanged; larger scores predict better networks."""

PROXIES: Registry[Proxy] = Registry(
    "zero-cost proxy",
    "",
    {
        name: f"nas_core.proxies.scores:{name}"
        for name in ("params", "flops", "synflow", "nwot", "jacov", "grad_norm", "snip")
    },
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
    score = proxy(trial)
    if not math.isfinite(score):
        raise ConfigError(
            f"{name} of this network is {score}; check its weights and the batch for overflow and NaN, or leave {name}"
            " out"
        )
    return score
