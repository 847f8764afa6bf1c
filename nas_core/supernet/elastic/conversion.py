"""Conversion of a trained network into a supernet whose largest subnet is that network."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from nas_core.errors import CheckpointError, ConfigError, check_choice
from nas_core.files.writing import make_folder
from nas_core.models.elastic import ElasticForm
from nas_core.space import SearchSpace
from nas_core.supernet.elastic.ablation import depth_order, mean_loss, recovered_loss
from nas_core.supernet.elastic.attention import FitConfig, FitErrors, fit
from nas_core.supernet.elastic.importance import CRITERIA, importance
from nas_core.supernet.elastic.kinds import attention_choices
from nas_core.supernet.elastic.sorting import sort_axes

TOLERANCE = 1e-5
"""Largest difference between outputs of trained network and largest subnet, divided by the largest output."""


class Trained(Protocol):
    """Trained network of a host framework, as an elastic network."""

    net: Any
    """Elastic network. Its largest subnet has the trained weights; other attention types have copies of
    them."""
    space: SearchSpace
    form: ElasticForm

    def difference(self, net: nn.Module) -> float:
        """Return the largest difference between the host's model and the largest subnet of ``net``, divided by the
        largest output."""

    def calibration(self, count: int) -> Sequence[Any]:
        """Return up to ``count`` batches of training data."""

    def loss(self, net: Any, subnet: Any, batch: Any) -> Tensor:
        """Return the differentiable mean loss of a subnet on a batch."""

    def save(self, path: Path, net: nn.Module) -> None:
        """Write a supernet as a checkpoint of the host framework."""


@dataclass(frozen=True)
class ConversionResult:
    """Result of a conversion."""

    difference: float
    """Difference between outputs, see :data:`TOLERANCE`."""
    batches: int
    layer_order: dict[str, tuple[int, ...]]
    """Layer indices of each side (such as encoder) by decreasing importance. Empty if unchanged."""
    sorted_axes: int
    """Number of axes (heads, hidden units, channels) that are sorted by importance."""
    fitted: tuple[FitErrors, ...] = ()
    """Errors of other attention types."""


def check_settings(importance_by: str, calibration_batches: int, fit_steps: int = 0) -> None:
    check_choice("criterion of importance (--importance)", importance_by, CRITERIA)
    for option, number in (("calibration-batches", calibration_batches), ("fit", fit_steps)):
        if number < 0:
            raise ConfigError(f"--{option} is {number}; expected at least 0")
    if importance_by == "activation" and not calibration_batches:
        raise ConfigError("--importance activation needs calibration data; give --calibration-batches, e.g. 16")
    if fit_steps and not calibration_batches:
        raise ConfigError(
            "fitting other kinds of attention needs calibration data; give --calibration-batches, e.g. 16, or --fit 0"
            " for copies of the trained weights"
        )


def check_output(path: Path, option: str) -> None:
    if path.exists():
        raise ConfigError(f"{path} already exists; give another file with {option}, or remove it")
    make_folder(path.parent)
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"the folder of {option} {path} is not writable; give another file")


def convert(
    trained: Trained,
    path: Path,
    *,
    importance_by: str = "weight",
    calibration_batches: int = 0,
    fit_steps: int = FitConfig().steps,
) -> ConversionResult:
    """Convert a trained network into a supernet, and save it.

    Args:
        path: new checkpoint.
        importance_by: criterion for the order of heads, hidden units and channels, one of
            :data:`nas_core.supernet.elastic.importance.CRITERIA`.
        calibration_batches: number of batches for importance and layer ablation. With 0, shallower networks keep the
            first layers.
        fit_steps: updates per layer and attention type, see :func:`nas_core.supernet.elastic.attention.fit`. With 0,
            all types have copies of the trained weights.

    Raises:
        ConfigError: a setting is invalid, or the file exists.
        DataError: there is no data for calibration.
    """
    fit_steps = fit_steps if fit_steps < 0 or attention_choices(trained.space) else 0
    check_output(path, "--out")
    check_settings(importance_by, calibration_batches, fit_steps)
    batches = trained.calibration(calibration_batches) if calibration_batches else ()
    net, form = trained.net, trained.form
    check_difference(trained, net)
    largest = trained.space.largest()
    axes = form.axes(net)
    scores = importance(net, axes, importance_by, batches, lambda batch: trained.loss(net, net.select(largest), batch))
    orders = sort_axes(net, axes, scores)
    layers: dict[str, tuple[int, ...]] = {}
    sides = {side: count for side, count in form.sides(net).items() if _can_reorder(trained.space, side)}
    if batches and importance_by != "none" and sides:
        layers = depth_order(
            sides,
            lambda layers: mean_loss(trained, layers, batches),
            lambda layers: recovered_loss(trained, layers, batches),
            {side: min(int(count) for count in trained.space.choice(_depth(side)).options[0]) for side in sides},
        )
        form.set_order(net, layers)
    fitted: Sequence[FitErrors] = ()
    if fit_steps:
        config = FitConfig(steps=fit_steps)
        fitted = fit(net, trained.space, batches, lambda subnet, batch: trained.loss(net, subnet, batch), config)
    difference = check_difference(trained, net)
    trained.save(path, net)
    return ConversionResult(difference, len(batches), layers, len(orders), tuple(fitted))


def _can_reorder(space: SearchSpace, side: str) -> bool:
    depth = _depth(side)
    if depth in space.fixed or len(space.choice(depth).options[0]) < 2:
        return False
    return all(len(set(choice.options)) == 1 for choice in space.choices if choice.per == depth)


def _depth(side: str) -> str:
    return f"{side}.layers" if side else "layers"


def check_difference(trained: Trained, net: nn.Module) -> float:
    difference = trained.difference(net)
    if bad := next((name for name, tensor in net.state_dict().items() if not tensor.isfinite().all()), None):
        raise CheckpointError(
            f"the trained network has NaN or infinite weights in {bad}; its training diverged, give another checkpoint"
        )
    if not math.isfinite(difference) or difference > TOLERANCE:
        raise CheckpointError(
            f"the largest subnet differs from the trained network by {difference:.1e} of the largest output, expected"
            f" at most {TOLERANCE:g}; report this as a bug, with the training settings"
        )
    return difference
