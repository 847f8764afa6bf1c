"""Conversion of a trained network into a supernet with that network as its largest subnet."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from nas_core.errors import CheckpointError, ConfigError, unknown_choice
from nas_core.files.writing import make_folder
from nas_core.layers.mos import NONE
from nas_core.models.elastic import ElasticForm
from nas_core.space import SearchSpace
from nas_core.supernet.elastic.ablation import depth_order, mean_loss, recovered_loss
from nas_core.supernet.elastic.attention import FitConfig, Fitted, fit
from nas_core.supernet.elastic.experts import copy_into_experts
from nas_core.supernet.elastic.importance import CRITERIA, importance
from nas_core.supernet.elastic.kinds import attention_choices
from nas_core.supernet.elastic.sorting import sort_axes

TOLERANCE = 1e-5
"""Largest difference of outputs of trained network and largest subnet, relative to the largest output."""


class Trained(Protocol):
    """Trained network of a host, as an elastic network."""

    net: Any
    """Elastic network over :attr:`space` without experts, whose largest subnet has the trained weights; other kinds of
    attention are copies (:func:`nas_core.supernet.elastic.kinds.with_kinds`)."""
    space: SearchSpace
    form: ElasticForm

    def difference(self, net: nn.Module) -> float:
        """Return the difference of the outputs of host's model and largest subnet, relative to the largest output.

        Both run in float32 on the same random input.
        """

    def calibration(self, count: int) -> Sequence[Any]:
        """Return up to ``count`` batches of training data."""

    def loss(self, net: Any, subnet: Any, batch: Any) -> Tensor:
        """Return the differentiable mean loss of a subnet of ``net`` on a batch."""

    def with_experts(self, mos: str) -> nn.Module:
        """Return a network as :attr:`net` with experts of kind ``mos`` and random weights."""

    def save(self, path: Path, net: nn.Module) -> None:
        """Write the host's checkpoint of a supernet atomically."""


@dataclass(frozen=True)
class ConversionResult:
    """Result of a conversion."""

    difference: float
    """Difference of outputs, see :data:`TOLERANCE`."""
    batches: int
    layer_order: dict[str, tuple[int, ...]]
    """Layers of each side, the one kept longest first; empty if they keep their order."""
    sorted_axes: int
    """Number of sorted axes: heads, hidden units and channels."""
    fitted: tuple[Fitted, ...] = ()
    """Errors of other kinds of attention."""


def check_settings(importance_by: str, calibrate: int, fit_steps: int = 0) -> None:
    if importance_by not in CRITERIA:
        raise unknown_choice("criterion of importance (--importance)", importance_by, CRITERIA)
    for option, number in (("calibrate", calibrate), ("fit", fit_steps)):
        if number < 0:
            raise ConfigError(f"--{option} {number}; expected 0 (none) or more")
    if importance_by in ("activation", "gradient") and not calibrate:
        raise ConfigError(f"--importance {importance_by} needs calibration data; give --calibrate, e.g. 16")
    if fit_steps and not calibrate:
        raise ConfigError(
            "other kinds of attention are fitted to the trained one on calibration data; give --calibrate, e.g. 16, or"
            " --fit 0 to keep copies"
        )


def check_output(path: Path, option: str) -> None:
    if path.exists():
        raise ConfigError(f"{path} exists; give another file with {option}, or remove it")
    make_folder(path.parent)
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"{option} {path}: its folder is not writable; give another file")


def convert(
    trained: Trained,
    path: Path,
    *,
    importance_by: str = "weight",
    calibrate: int = 0,
    mos: str = NONE,
    fit_steps: int = FitConfig().steps,
) -> ConversionResult:
    """Convert a trained network into a supernet and save it.

    Args:
        path: the new checkpoint.
        importance_by: criterion that sorts heads, hidden units and channels, one of
            :data:`nas_core.supernet.elastic.importance.CRITERIA`.
        calibrate: batches of data for importance and layer ablation; 0: the last layers are removed first.
        mos: experts of the feed-forward layers: a kind of mixture, or ``none``.
        fit_steps: updates for each other kind of attention of a layer (see
            :func:`nas_core.supernet.elastic.attention.fit`); 0: copies.

    Raises:
        ConfigError: invalid settings, or the file exists.
        DataError: no data for calibration.
    """
    fit_steps = fit_steps if fit_steps < 0 or attention_choices(trained.space) else 0
    check_output(path, "--out")
    check_settings(importance_by, calibrate, fit_steps)
    batches = trained.calibration(calibrate) if calibrate else ()
    net, form = trained.net, trained.form
    check_difference(trained, net)
    largest = trained.space.largest()
    axes = form.axes(net)
    scores = importance(net, axes, importance_by, batches, lambda batch: trained.loss(net, net.select(largest), batch))
    orders = sort_axes(net, axes, scores)
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
    fitted: Sequence[Fitted] = ()
    if fit_steps:
        config, dense = FitConfig(steps=fit_steps), net
        fitted = fit(net, trained.space, batches, lambda subnet, batch: trained.loss(dense, subnet, batch), config)
    if mos != NONE:
        plain, net = net, trained.with_experts(mos)
        copy_into_experts(plain, net)
    difference = check_difference(trained, net)
    trained.save(path, net)
    return ConversionResult(difference, len(batches), layers, len(orders), tuple(fitted))


def _may_be_ordered(space: SearchSpace, side: str) -> bool:
    depth = _depth(side)
    if depth in space.fixed or len(space.choice(depth).options[0]) < 2:
        return False
    return all(len(set(choice.options)) == 1 for choice in space.choices if choice.per == depth)


def _depth(side: str) -> str:
    return f"{side}.layers" if side else "layers"


def check_difference(trained: Trained, net: nn.Module) -> float:
    difference = trained.difference(net)
    if bad := next((name for name, tensor in net.state_dict().items() if not tensor.isfinite().all()), None):
        raise CheckpointError(f"the trained network has weights that are no numbers, in {bad}; it has diverged")
    if not math.isfinite(difference) or difference > TOLERANCE:
        raise CheckpointError(
            f"the supernet's largest network differs from the trained one by {difference:.1e} of the largest output,"
            f" more than {TOLERANCE:g}; please report this, with the settings that the network was trained with"
        )
    return difference
