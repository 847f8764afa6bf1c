"""Networks of a file as models of ``timm.create_model``: ``elastic_vit`` with ``elastic=FILE``.

timm's trainer continues with a converted model by
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
from timm_ext.trained.conversion import ELASTIC
from timm_ext.trained.reading import PREPARED

_CHANGED = ("drop_rate", "attn_drop_rate", "act_drop_rate", "drop_path_rate", "architecture_seed", "architecture_draw",
            "dynamic_img_size", "linear_form")  # fmt: skip
"""Arguments that may differ from the file's, because they change no weight."""


def _with_arguments(settings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    for name, value in changes.items():
        if name not in _CHANGED:
            raise ConfigError(f"{name}={value!r} of a network from a file, which says it itself; leave it out")
    return {**settings, "arguments": {**settings["arguments"], **changes}}


@register_model
def elastic_vit(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """Build the network of a file (``elastic=FILE``) from ``nas-ext elastic``, ``extract`` or a training.

    Another ``num_classes`` gives a new classifier, another ``img_size`` interpolated positions. The state dict includes
    the settings, so that checkpoints of timm's trainer do not need the file.

    Raises:
        ConfigError: no file is given, or an argument is fixed by the file.
        DataError: the file is missing.
    """
    timms = ("pretrained_cfg", "pretrained_cfg_overlay", "cache_dir", "elastic", "num_classes", "img_size", "in_chans")
    given = {name: kwargs.pop(name, None) for name in timms}
    if not given["elastic"]:
        raise ConfigError(
            f"model {ELASTIC} without a file; give elastic=FILE (in timm's trainer --model-kwargs elastic=FILE)"
        )
    path = Path(given["elastic"])
    if not path.is_file():
        raise DataError(
            f"no file {path} for elastic={path} (in {Path.cwd()}); give --model-kwargs elastic=FILE, one of 'nas-ext"
            " elastic'"
        )
    state = read_checkpoint(path)
    channels = state[KEY]["arguments"].get("in_chans", 3)
    if given["in_chans"] not in (None, channels):
        raise ConfigError(f"in_chans={given['in_chans']}, but {path} reads images of {channels} channels")
    model = build({**state, KEY: _with_arguments(state[KEY], **kwargs)}, path, ema=True)
    if given["num_classes"] not in (None, model.num_classes):
        model.reset_classifier(given["num_classes"])
    if given["img_size"] is not None:
        model.set_input_size(given["img_size"])
    configure(model, str(state.get("arch") or ELASTIC), given["pretrained_cfg_overlay"])
    prepared = {key: model.pretrained_cfg[key] for key in PREPARED if key in model.pretrained_cfg}
    settings = model.settings()
    settings["arguments"]["prepared"] = prepared
    model.register_buffer(SETTINGS, settings_buffer(settings))
    model.register_load_state_dict_pre_hook(_check_settings)
    return model


def _check_settings(model: VisionModel, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Reject another network's weights, which may have equal shapes."""
    own: Tensor = model.get_buffer(SETTINGS)
    if (stored := state.get(prefix + SETTINGS)) is not None:
        networks = []
        for settings in (settings_in(own, "the checkpoint"), settings_in(stored, "the checkpoint")):
            arguments = settings.get("arguments", {})
            fixed = {name: value for name, value in arguments.items() if name not in _CHANGED}
            networks.append({"space": settings.get("space"), **fixed})
        names = sorted({*networks[0], *networks[1]})
        if different := [name for name in names if networks[0].get(name) != networks[1].get(name)]:
            raise CheckpointError(
                f"the checkpoint is of a network of another file: {', '.join(different)} differ from those of"
                " elastic=FILE; give the file that its training began with"
            )
    state[prefix + SETTINGS] = own


def configure(model: VisionModel, name: str, overlay: Mapping[str, Any] | None = None) -> None:
    """Set ``pretrained_cfg`` of a model loaded from a file; ``overlay`` overrides its entries."""
    own = {**prepared_for(model, name), "architecture": name, "num_classes": model.num_classes}
    own |= {"input_size": (model.in_chans, *stored_size(model)), **(overlay or {})}
    model.pretrained_cfg = model.default_cfg = own


def network_of_file(path: Path, classes: int, **changes: Any) -> VisionModel:
    state = read_checkpoint(path)
    check_fits(state, path)
    model = VisionModel.from_settings(_with_arguments(state[KEY], **changes))
    if model.num_classes != classes:
        raise ConfigError(f"{path} is a network for {model.num_classes} classes, the images have {classes}")
    configure(model, str(state.get("arch") or ELASTIC))
    return model
