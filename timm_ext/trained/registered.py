"""Supernets of a file as models that ``timm.create_model`` builds: ``elastic_vit`` with ``elastic=FILE``.

So timm's own trainer goes on with a supernet that was made of a trained model:
``python -m timm_ext.launch train.py --model elastic_vit --model-kwargs elastic=supernet.pt ..``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from timm.models import register_model
from torch import Tensor

from nas_core.errors import CheckpointError, ConfigError, DataError
from timm_ext.checkpoint import KEY, SETTINGS, build, check_fits, read_checkpoint, settings_buffer, settings_in
from timm_ext.model import VisionModel
from timm_ext.models import prepared_for, stored_size
from timm_ext.trained.reading import PREPARED
from timm_ext.trained.taking import ELASTIC

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
    weights. Other ``num_classes`` get a new classifier; another ``img_size`` interpolated positions.

    Its state dict also has its settings, so that what timm's trainer saves is read without the file, and is refused by
    a network of another file.

    Raises:
        ConfigError: no file is named, or arguments that it says itself. DataError: it is not there.
    """
    known = {
        name: kwargs.pop(name, None) for name in (*_CONFIGURATION, "elastic", "num_classes", "img_size", "in_chans")
    }
    if not known["elastic"]:
        raise ConfigError(
            f"model {ELASTIC} without a file; give elastic=FILE (in timm's trainer --model-kwargs elastic=FILE)"
        )
    path = Path(known["elastic"])
    if not path.is_file():
        raise DataError(
            f"no file {path} for elastic={path} (in {Path.cwd()}); give --model-kwargs elastic=FILE, one of 'nas-ext"
            " elastic'"
        )
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
    _keep_settings(model)
    return model


def _keep_settings(model: VisionModel) -> None:
    """Let the state dict have the settings of the model as it is."""
    own, known = model.settings(), model.pretrained_cfg
    prepared = {key: known[key] for key in PREPARED if key in known}
    settings = {**own, "arguments": {**own["arguments"], "prepared": prepared}}
    model.register_buffer(SETTINGS, settings_buffer(settings))
    model.register_load_state_dict_pre_hook(_check_settings)


def _check_settings(model: VisionModel, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Raise where weights are of a network of another file, whose shapes may be the same.

    Raises:
        CheckpointError: its space, order of layers or preparation of images is another.
    """
    own: Tensor = model.get_buffer(SETTINGS)
    if (told := state.get(prefix + SETTINGS)) is not None:
        one, other = (_of_network(settings_in(buffer, "the checkpoint")) for buffer in (own, told))
        if different := sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)):
            raise CheckpointError(
                f"the checkpoint is of a network of another file: {', '.join(different)} differ from those of"
                " elastic=FILE; give the file that its training began with"
            )
    state[prefix + SETTINGS] = own


def _of_network(settings: dict[str, Any]) -> dict[str, Any]:
    arguments = {name: value for name, value in settings.get("arguments", {}).items() if name not in _CHANGED}
    return {"space": settings.get("space"), **arguments}


def configure(model: VisionModel, name: str, overlay: Mapping[str, Any] | None = None) -> None:
    """Let timm find how images are prepared for the model of a file; ``name`` is what the file calls it."""
    own = {**prepared_for(model, name), "architecture": name, "num_classes": model.num_classes}
    own |= {"input_size": (model.in_chans, *stored_size(model)), **(overlay or {})}
    model.pretrained_cfg = model.default_cfg = own


def network_of_file(path: Path, classes: int, **changes: Any) -> VisionModel:
    """The network of a checkpoint, whose weights are not loaded.

    Raises:
        ConfigError: it is for another number of classes.
    """
    state = read_checkpoint(path)
    check_fits(state, path)
    model = VisionModel.from_settings(with_arguments(state[KEY], **changes))
    if model.num_classes != classes:
        raise ConfigError(f"{path} is a network for {model.num_classes} classes, the images have {classes}")
    configure(model, str(state.get("arch") or ELASTIC))
    return model
