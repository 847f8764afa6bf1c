"""A term of the loss that keeps the experts of a supernet apart, beside whichever criterion trains it."""

from __future__ import annotations

from typing import Any

from fairseq_ext.compat import with_torch_ddp
from nas_core.errors import ConfigError
from nas_core.layers.alike import check_apart, experts_alike

__all__ = ["LOGGED", "check_options", "keeping_apart"]

LOGGED = "experts_alike"
"""Under which name the term is logged, without its weight."""


def check_options(weight: float, sampling: str, model: Any) -> None:
    """Check ``--mos-apart`` before training.

    Raises:
        ConfigError: a weight that cannot work, a model without experts, or workers that it cannot be shared by.
    """
    check_apart(weight, model)
    if weight and sampling == "spos" and with_torch_ddp(model.args):
        raise ConfigError(
            "--mos-apart with torch's own DDP, which expects that each weight has its gradient from one forward pass;"
            " give --ddp-backend legacy_ddp, or --sampling sandwich"
        )


def keeping_apart(criterion: Any, model: Any, weight: float, passes: int) -> Any:
    """The criterion of one batch whose first loss has the term, times the batch's size, since fairseq divides gradients
    by the sizes of an update's batches. What is logged as the loss is the criterion's own.

    Args:
        weight: of :func:`nas_core.layers.alike.experts_alike` in the loss of a training example; 0: the criterion
            itself.
        passes: losses of the batch, whose mean is its loss.
    """
    return _KeptApart(criterion, model, weight * passes) if weight else criterion


class _KeptApart:
    def __init__(self, criterion: Any, model: Any, weight: float) -> None:
        self._criterion, self._model, self._left = criterion, model, weight

    def __call__(self, model: Any, sample: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        loss, size, log = self._criterion(model, sample)
        if self._left:
            alike = experts_alike(self._model) * size
            loss, log = loss + self._left * alike, {**log, LOGGED: alike.detach()}
            self._left = 0.0
        return loss, size, log
