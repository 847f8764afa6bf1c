"""A trained network becomes the largest subnet of a supernet.

A host reads its checkpoint and offers it as a :class:`Trained`; :func:`take_over` does what is the same everywhere:
checks that both compute the same, sorts what smaller networks will be cut from, and makes experts.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from nas_core.errors import CheckpointError, ConfigError, unknown_choice
from nas_core.layers.mos import NONE
from nas_core.models.elastic import ElasticForm
from nas_core.space import SearchSpace
from nas_core.supernet.elastic.absence import mean_loss, recovered_loss
from nas_core.supernet.elastic.attention import FitConfig, Fitted, fit
from nas_core.supernet.elastic.depth import depth_order
from nas_core.supernet.elastic.experts import copy_into_experts
from nas_core.supernet.elastic.importance import CRITERIA, importance
from nas_core.supernet.elastic.kinds import attention_choices
from nas_core.supernet.elastic.sorting import sort_axes

TOLERANCE = 1e-5
"""Largest difference between the outputs of the trained network and of the largest subnet, over the largest output."""


class Trained(Protocol):
    """A host's trained network, with its weights in an elastic network."""

    net: Any
    """The elastic network over :attr:`space`, without experts. Its largest subnet has the trained weights; where layers
    choose their attention, others begin as copies of it, see :func:`nas_core.supernet.elastic.kinds.with_kinds`."""
    space: SearchSpace
    form: ElasticForm

    def difference(self, net: nn.Module) -> float:
        """The largest difference between the outputs of the host's own model and of the largest subnet of ``net`` on
        the same random input, over the largest output; both in float32."""

    def calibration(self, count: int) -> Sequence[Any]:
        """So many batches of training data, or fewer if there are not so many.

        Raises:
            DataError: there is no data, or not one batch.
        """

    def loss(self, net: Any, subnet: Any, batch: Any) -> Tensor:
        """The mean loss of a subnet of ``net`` on a batch, differentiable."""

    def with_experts(self, mos: str) -> nn.Module:
        """A network as :attr:`net`, with experts of that kind and random weights."""

    def save(self, path: Path, net: nn.Module) -> None:
        """Write the host's checkpoint of a supernet, whole or not at all."""


@dataclass(frozen=True)
class TakenOver:
    """What a take-over did."""

    difference: float
    """How far the supernet's largest subnet is from the trained network, relative to the largest output."""
    batches: int
    """How many batches of calibration data were used."""
    layer_order: dict[str, tuple[int, ...]]
    """Layers of each side, the one that is kept longest first; empty where they stay in their own order."""
    sorted_axes: int
    """Heads, hidden units and channels that were sorted: how many axes."""
    fitted: tuple[Fitted, ...] = ()
    """How near other kinds of attention came to the trained ones."""


def check_settings(importance_by: str, calibrate: int, fit_steps: int = 0) -> None:
    """Raise before any work where settings cannot work.

    Args:
        fit_steps: 0 where there is nothing to fit.

    Raises:
        UnknownChoiceError: no such criterion. ConfigError: it needs data, or a negative number of batches.
    """
    if importance_by not in CRITERIA:
        raise unknown_choice("criterion of importance (--importance)", importance_by, CRITERIA)
    if calibrate < 0:
        raise ConfigError(f"--calibrate {calibrate}; expected a number of batches, 0 for none")
    if importance_by in ("activation", "gradient") and not calibrate:
        raise ConfigError(f"--importance {importance_by} needs calibration data; give --calibrate, e.g. 16")
    if fit_steps < 0:
        raise ConfigError(f"--fit {fit_steps}; expected a number of updates, 0 for none")
    if fit_steps and not calibrate:
        raise ConfigError(
            "other kinds of attention are fitted to the trained one on calibration data; give --calibrate, e.g. 16, or"
            " --fit 0 to let them begin as copies"
        )


def check_output(path: Path, option: str) -> None:
    """Make the folder of a file that will be written, before any work.

    Raises:
        ConfigError: the file exists, or its folder cannot be made or written in.
    """
    if path.exists():
        raise ConfigError(f"{path} exists; give another file with {option}, or remove it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{option} {path}: its folder cannot be made ({error.strerror}); give another file") from None
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"{option} {path}: its folder cannot be written in; give another file")


def take_over(
    trained: Trained,
    path: Path,
    *,
    importance_by: str = "weight",
    calibrate: int = 0,
    mos: str = NONE,
    fit_steps: int = FitConfig().steps,
) -> TakenOver:
    """Write the supernet of a trained network.

    Args:
        path: the new checkpoint.
        importance_by: what heads, hidden units and channels are sorted by, one of
            :data:`nas_core.supernet.elastic.importance.CRITERIA`.
        calibrate: batches of data on which importance and the cost of each layer's absence are measured; 0: layers are
            left out from the last on.
        mos: experts of the feed-forward layers: a kind of mixture, or ``none``.
        fit_steps: updates by which each other kind of attention that a layer may choose is fitted to the trained one,
            see :func:`nas_core.supernet.elastic.attention.fit`; 0: it stays a copy.

    Raises:
        ConfigError: see :func:`check_settings`, or a file that exists. DataError: no data for calibration.
        CheckpointError: the two networks differ, which is a defect of this program.
    """
    fit_steps = fit_steps if fit_steps < 0 or attention_choices(trained.space) else 0
    check_output(path, "--out")
    check_settings(importance_by, calibrate, fit_steps)
    batches = trained.calibration(calibrate) if calibrate else ()
    net, form = trained.net, trained.form
    _check(trained, net)
    largest = trained.space.largest()
    axes = form.axes(net)
    found = importance(net, axes, importance_by, batches, lambda batch: trained.loss(net, net.select(largest), batch))
    orders = sort_axes(net, axes, found)
    layers: dict[str, tuple[int, ...]] = {}
    sides = {side: count for side, count in form.sides(net).items() if _may_be_ordered(trained.space, side)}
    if batches and importance_by != "none" and sides:
        layers = depth_order(
            sides,
            lambda kept: mean_loss(trained, kept, batches),
            lambda kept: recovered_loss(trained, kept, batches),
            {side: min(int(count) for count in trained.space.choice(_depth(side)).options[0]) for side in sides},
        )
        form.set_order(net, layers)
    fitted: tuple[Fitted, ...] = ()
    if fit_steps:
        config = FitConfig(steps=fit_steps)
        found_near = fit(net, trained.space, batches, lambda subnet, batch: trained.loss(net, subnet, batch), config)
        fitted = tuple(found_near)
    if mos != NONE:
        plain, net = net, trained.with_experts(mos)
        copy_into_experts(plain, net)
    difference = _check(trained, net)
    trained.save(path, net)
    return TakenOver(difference, len(batches), layers, len(orders), fitted)


def _may_be_ordered(space: SearchSpace, side: str) -> bool:
    """Whether there are shallower networks, and all layers have the same options: those of a place in a network then
    suit whichever layer runs there."""
    depth = _depth(side)
    if depth in space.fixed or len(space.choice(depth).options[0]) < 2:
        return False
    return all(len(set(choice.options)) == 1 for choice in space.choices if choice.per == depth)


def _depth(side: str) -> str:
    return f"{side}.layers" if side else "layers"


def _check(trained: Trained, net: nn.Module) -> float:
    difference = trained.difference(net)
    if bad := next((name for name, tensor in net.state_dict().items() if not tensor.isfinite().all()), None):
        raise CheckpointError(f"the trained network has weights that are no numbers, in {bad}; it has diverged")
    if not math.isfinite(difference) or difference > TOLERANCE:
        raise CheckpointError(
            f"the supernet's largest network differs from the trained one by {difference:.1e} of the largest output,"
            f" more than {TOLERANCE:g}; please report this, with the settings that the network was trained with"
        )
    return difference
