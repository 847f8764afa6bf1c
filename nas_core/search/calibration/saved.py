"""Calibrations as files: arrays as safetensors, all else as JSON in the header; nothing in them is executed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.mixture import Mixture
from nas_core.predictor.targets import TargetScale
from nas_core.search.calibration.learned import Learned
from nas_core.search.calibration.model import Calibration
from nas_core.search.calibration.parts import PARTS, Inherited, Line, Parts
from nas_core.space import Architecture, SearchSpace, space_from_dict, space_to_dict

KIND = "calibration"
_ALTERED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, NasExtError)
"""What reading an altered file may raise."""
SAME = 1e-6
"""How far apart estimates of the trained networks may be, in their deviations, when they are computed anew."""


def save_calibration(calibration: Calibration, path: str | Path) -> None:
    """Write one ``.safetensors`` file.

    Raises:
        ConfigError: the name does not end in .safetensors. NasExtError: the file cannot be written.
    """
    learned = calibration.learned
    header: dict[str, Any] = {
        "space": space_to_dict(calibration.space), "metric": calibration.metric, "larger": calibration.larger,
        "inherited_metric": calibration.inherited_metric, "inherited_larger": calibration.inherited_larger,
        "info": dict(calibration.info), "trained": [one.to_dict() for one in calibration.trained],
        "standalone": list(calibration.trained.values()),
    }  # fmt: skip
    arrays: dict[str, Any] = {}
    if learned is not None:
        scale = learned.parts.inherited
        header |= {"mixture": learned.mixture.to_json(), "scale": learned.scale.to_json()}
        arrays |= {"inherited": learned.inherited, "middle": scale.middle, "deviation": scale.deviation}
        arrays |= {"together": scale.together, "estimates": learned.parts.predict(learned.inherited, learned.sizes)}
        for name, line in zip(PARTS, learned.parts.lines, strict=True):
            arrays |= {f"{name}.weights": line.weights, f"{name}.offset": line.offset}
    tensors = {name: torch.from_numpy(np.array(array, np.float64)) for name, array in arrays.items()}
    write_artifact(path, KIND, header, tensors)


def load_calibration(path: str | Path, space: SearchSpace | None = None) -> Calibration:
    """Read what :func:`save_calibration` wrote.

    Args:
        space: where it is to be used.

    Raises:
        DataError: the file is missing, truncated, altered, of a newer version, or something else.
        ConfigError: it was fitted in another space.
    """
    if not Path(path).is_file():
        raise DataError(f"file not found: {path}; 'nas-ext lab calibrate' makes a calibration")
    header, tensors = read_artifact(path, KIND)
    try:
        made = _restored(header, tensors)
    except _ALTERED as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: the calibration is damaged ({reason[:120]}); make it anew") from None
    if space is not None and made.space != space:
        raise ConfigError(
            f"{path} was fitted to networks of space {made.space.name!r}, and this is {space.name!r}; calibrate on the"
            " supernet that is searched"
        )
    return made


def _restored(header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Calibration:
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays.values()):
        raise DataError("an array holds what is no number")
    made = Calibration(
        space_from_dict(header["space"]), str(header["metric"]), bool(header["larger"]),
        str(header["inherited_metric"]), bool(header["inherited_larger"]), dict(header["info"]),
    )  # fmt: skip
    networks = [made.space.validate(Architecture(genes)) for genes in header["trained"]]
    made.trained = dict(zip(networks, map(float, header["standalone"]), strict=True))
    if not networks:
        return made
    lines = [Line(arrays[f"{name}.weights"], float(arrays[f"{name}.offset"])) for name in PARTS]
    scale = Inherited(arrays["middle"], arrays["deviation"], float(arrays["together"]))
    mixture = Mixture.from_json(header["mixture"], len(PARTS))
    parts, inherited = Parts(scale, (lines[0], lines[1], lines[2])), arrays["inherited"]
    made.learned = Learned(parts, mixture, TargetScale.from_json(header["scale"]), inherited, made.sizes_of(networks))
    _check(made, arrays["estimates"])
    return made


def _check(made: Calibration, estimates: NDArray[np.float64]) -> None:
    assert made.learned is not None
    again = made.learned.parts.predict(made.learned.inherited, made.learned.sizes)
    if again.shape != estimates.shape or np.abs(again - estimates).max() > SAME * max(float(estimates.std()), 1e-9):
        raise ConfigError("another release counts sizes otherwise")
