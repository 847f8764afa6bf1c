"""A network beside one batch, as proxies try it: on copies of its weights, so that nothing of the network changes.

Shapes: B batch, K classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm  # noqa: PLC2701

from nas_core.errors import ConfigError

Loss = Callable[[Tensor, Tensor], Tensor]
"""Logits and targets to one number."""
Tensors = dict[str, Tensor]
"""Parameters and buffers of a network by name."""


class Trial:
    """A network, a batch of inputs and their targets.

    Args:
        inputs: what the network is called with; the first dimension of each is B.
        targets: what the loss compares with; None: classes drawn by ``seed``, one for each distribution of logits.
        loss: default: mean cross entropy over the last dimension of the logits.
        seed: of drawn targets.
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
        """B."""
        return len(self.inputs[0])

    def tensors(self, dtype: torch.dtype | None = None) -> Tensors:
        """Copies of all parameters, which gather gradients, and of all buffers; real ones as ``dtype``, if given."""
        found = {}
        for name, parameter in self.network.named_parameters():
            found[name] = _copied(parameter, dtype).requires_grad_(parameter.is_floating_point())
        for name, buffer in self.network.named_buffers():
            found[name] = _copied(buffer, dtype)
        return found

    def weights(self, tensors: Tensors) -> list[Tensor]:
        """Those parameters among the copies that are matrices or kernels: no biases, no gains of norms."""
        return [
            tensors[name]
            for name, parameter in self.network.named_parameters()
            if parameter.dim() > 1 and parameter.is_floating_point()
        ]

    def logits(self, tensors: Tensors, inputs: tuple[Tensor, ...] | None = None) -> Tensor:
        """What the network gives with these parameters and buffers, ``(B, .., K)``; the last of several outputs.

        Args:
            inputs: others than those of the trial.
        """
        found: Any = functional_call(self.network, tensors, self.inputs if inputs is None else inputs)
        found = found[-1] if isinstance(found, tuple | list) and found else found
        if not isinstance(found, Tensor) or found.dim() < 2:
            got = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            raise ConfigError(
                f"the network gives {got}; expected logits (B, .., classes), or several outputs with them last"
            )
        return found

    def loss(self, logits: Tensor) -> Tensor:
        """The loss of the batch, one number.

        Raises:
            ConfigError: targets that do not fit the logits, or a loss that gives no single number.
        """
        targets = self._drawn(logits) if self.targets is None else self.targets
        if self._loss is _cross_entropy:
            _check_classes(targets, logits)
        found = self._loss(logits, targets)
        if not isinstance(found, Tensor) or found.numel() != 1:
            raise ConfigError("the loss gives no single number; expected a tensor of one element")
        return found.reshape(())

    @cached_property
    def sensitivities(self) -> list[tuple[Tensor, Tensor]]:
        """Each of :meth:`weights` with the gradient of the loss, which is 0 where the loss does not depend on it; all
        that read it share one pass."""
        tensors = self.tensors()
        weights = self.weights(tensors)
        gradients = gradients_of(self.loss(self.logits(tensors)), weights)
        return [(weight.detach(), gradient) for weight, gradient in zip(weights, gradients, strict=True)]

    def _drawn(self, logits: Tensor) -> Tensor:
        stream = torch.Generator().manual_seed(self._seed)
        return torch.randint(logits.shape[-1], logits.shape[:-1], generator=stream).to(logits.device)


def gradients_of(value: Tensor, of: list[Tensor]) -> list[Tensor]:
    """The gradient of ``value`` for each tensor, 0 where it does not depend on it."""
    if not value.requires_grad:
        return [torch.zeros_like(each) for each in of]
    found = torch.autograd.grad(value, of, allow_unused=True)
    return [torch.zeros_like(each) if one is None else one for one, each in zip(found, of, strict=True)]


@contextmanager
def scoring_modes(network: nn.Module) -> Iterator[None]:
    """Inside the block batch norms take the statistics of the batch and nothing is dropped; each module's own mode
    comes back afterwards."""
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
    """Check that there is a class for each distribution of the logits; one read of the host for each batch."""
    if targets.shape != logits.shape[:-1] or targets.is_floating_point():
        raise ConfigError(
            f"targets have shape {tuple(targets.shape)} and type {targets.dtype}; logits {tuple(logits.shape)} need"
            f" whole numbers {tuple(logits.shape[:-1])}: give such, or a loss of your own"
        )
    least, most = (int(end) for end in targets.aminmax())
    if least < 0 or most >= logits.shape[-1]:
        raise ConfigError(f"targets reach from {least} to {most}; the network has classes 0 to {logits.shape[-1] - 1}")
