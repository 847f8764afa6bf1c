"""Supernets of a file as models that ``timm.create_model`` builds: ``elastic_vit`` with ``elastic=FILE``.

So timm's own trainer goes on with a supernet that was made of a trained model:
``python -m timm_ext.launch train.py --model elastic_vit --model-kwargs elastic=supernet.pt ..``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from timm.models import register_model

from nas_core.errors import ConfigError
from timm_ext.checkpoint import KEY, build, read_checkpoint
from timm_ext.model import VisionModel
from timm_ext.models import prepared_for
from timm_ext.trained.taking import ELASTIC

__all__ = ["configure", "elastic_vit", "network_of_file", "with_arguments"]

_CHANGED = ("drop_rate", "attn_drop_rate", "act_drop_rate", "drop_path_rate", "architecture_seed", "architecture_draw",
            "dynamic_img_size", "linear_form")  # fmt: skip
"""Arguments that a training may give anew: they change no weight."""
_CONFIGURATION = ("pretrained_cfg", "pretrained_cfg_overlay", "cache_dir")
"""What timm hands to every model."""


def with_arguments(settings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The settings of a checkpoint with other arguments of :class:`timm_ext.VisionModel`.

    Raises:
        ConfigError: one that the network itself depends on.
    """
    for name, value in changes.items():
        if name not in _CHANGED:
            raise ConfigError(f"{name}={value!r} of a network from a file, which says it itself; leave it out")
    return {**settings, "arguments": {**settings["arguments"], **changes}}


@register_model
def elastic_vit(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """The supernet or subnet of a file (``elastic=FILE``) of ``nas-ext elastic``, ``extract`` or a training, with its
    weights. Other ``num_classes`` get a new classifier; another ``img_size`` interpolated positions."""
    known = {
        name: kwargs.pop(name, None) for name in (*_CONFIGURATION, "elastic", "num_classes", "img_size", "in_chans")
    }
    if not known["elastic"]:
        raise ConfigError(
            f"model {ELASTIC} without a file; give elastic=FILE (in timm's trainer --model-kwargs elastic=FILE)"
        )
    path = Path(known["elastic"])
    state = read_checkpoint(path)
    channels = state[KEY]["arguments"].get("in_chans", 3)
    if known["in_chans"] not in (None, channels):
        raise ConfigError(f"in_chans={known['in_chans']}, but {path} reads images of {channels} channels")
    model = build({**state, KEY: with_arguments(state[KEY], **kwargs)}, path, ema=True)
    if known["num_classes"] not in (None, model.num_classes):
        model.reset_classifier(known["num_classes"])
    if known["img_size"] is not None:
        model.set_input_size(known["img_size"])
    configure(model, str(state.get("arch") or ELASTIC), known["pretrained_cfg_overlay"])
    return model


def configure(model: VisionModel, name: str, overlay: Mapping[str, Any] | None = None) -> None:
    """Let timm find how images are prepared for the model of a file; ``name`` is what the file calls it."""
    height, width = model.net.config.image_size or (model.space.largest().number("image_size"),) * 2
    own = {**prepared_for(model, name), "architecture": name, "num_classes": model.num_classes}
    own |= {"input_size": (model.in_chans, height, width), **(overlay or {})}
    model.pretrained_cfg = model.default_cfg = own


def network_of_file(path: Path, classes: int, **changes: Any) -> VisionModel:
    """The network of a checkpoint, whose weights are not loaded.

    Raises:
        ConfigError: it is for another number of classes.
    """
    state = read_checkpoint(path)
    model = VisionModel.from_settings(with_arguments(state[KEY], **changes))
    if model.num_classes != classes:
        raise ConfigError(f"{path} is a network for {model.num_classes} classes, the images have {classes}")
    configure(model, str(state.get("arch") or ELASTIC))
    return model
