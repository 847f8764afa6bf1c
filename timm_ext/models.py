"""Image models for ``timm.create_model``, without trained weights.

All accept ``subnet=`` (an architecture file, a mapping of genes or an ``Architecture``) and the arguments of
:class:`timm_ext.model.VisionModel`. Supernets accept ``search_space=`` (a name, a YAML file or a ``SearchSpace``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import timm
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from torch import Tensor

from nas_core.errors import CheckpointError, ConfigError
from nas_core.space import Architecture, SearchSpace, get_space
from nas_core.space.image import image_architecture, static_image_space
from timm_ext.checkpoint import SETTINGS, SETTINGS_KEY, build, read_checkpoint, settings_buffer, settings_in
from timm_ext.model import PREPARED, VisionModel, image_pair

CIFAR10_MEAN, CIFAR10_STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class _Variant(NamedTuple):
    network: Callable[[], SearchSpace | Architecture]
    """Function that returns a supernet's search space or a static network's architecture."""
    size: int = 32
    classes: int = 10
    arguments: Mapping[str, Any] = {}


def _largest(space: str) -> Architecture:
    return get_space(space).largest()


def _mixed_small(*kinds: str) -> Architecture:
    return Architecture({**_largest("mformer_cifar10_small"), "attention": (kinds * 6)[:6]})


_VARIANTS = {
    "autoformer_s": _Variant(partial(_largest, "autoformer_s"), 224, 1000),
    # Linear attention alone, layer by layer as in the authors' file.
    "cosformer_star_cifar10": _Variant(partial(image_architecture, "cosformer_star_cifar10"), 224),
    # 12 layers of width 384, linear attention in layers 3, 7 and 11; 19.3 M parameters. The FFN sizes and heads of
    # single layers are not published, see nas_core.space.image.image_architecture.
    "mformer_cifar10": _Variant(partial(image_architecture, "mformer_like_cifar10"), 224),
    # Six layers of width 128 on 64 tokens.
    "mformer_cifar10_small": _Variant(partial(_mixed_small, "softmax", "softmax", "linear")),
    "mformer_cifar10_small_linear": _Variant(partial(_mixed_small, "linear")),
    "mformer_cifar10_small_softmax": _Variant(partial(_mixed_small, "softmax")),
    "mformer_cifar10_small_supernet": _Variant(partial(get_space, "mformer_cifar10_small")),
    "mformer_cifar10_supernet": _Variant(partial(get_space, "mformer_cifar10"), 224),
    "mos_autoformer_s_supernet": _Variant(partial(get_space, "autoformer_s"), 224, 1000, {"mos": "neuron"}),
    "mos_vit_cifar10_small_supernet": _Variant(partial(get_space, "vit_cifar10_small"), arguments={"mos": "neuron"}),
    # Six equal layers of width 512 without relative positions.
    "vanilla_linear_cifar10": _Variant(partial(image_architecture, "vanilla_linear_cifar10"), 224),
    "vanilla_softmax_cifar10": _Variant(partial(image_architecture, "vanilla_softmax_cifar10"), 224),
    "vit_cifar10_small": _Variant(partial(_largest, "vit_cifar10_small")),
}
MODELS = list(_VARIANTS)
ELASTIC = "elastic_vit"
"""timm's name of the model that :func:`elastic_vit` builds from a file."""


def image_cfg(size: int, classes: int = 10) -> dict[str, Any]:
    low_resolution = size < 64
    return {
        "url": "",
        "num_classes": classes,
        "input_size": (3, size, size),
        "pool_size": None,
        "crop_pct": 1.0 if low_resolution else 0.875,
        "interpolation": "bicubic",
        "fixed_input_size": False,
        "mean": CIFAR10_MEAN if low_resolution else IMAGENET_DEFAULT_MEAN,
        "std": CIFAR10_STD if low_resolution else IMAGENET_DEFAULT_STD,
        "first_conv": "net.patch_embed",
        "classifier": "net.head",
        "license": "apache-2.0",
    }


default_cfgs = generate_default_cfgs(
    {f"{name}.untrained": image_cfg(variant.size, variant.classes) for name, variant in _VARIANTS.items()}
)


def prepared_for(model: VisionModel, name: str) -> dict[str, Any]:
    """Return the image preprocessing of a model; by default that of the registered model ``name``."""
    if keys := model.arguments["prepared"]:
        return {key: model.pretrained_cfg[key] for key in keys}
    if timm.is_model(name) and (registered := timm.get_pretrained_cfg(name)) is not None:
        return dict(registered.to_dict())
    return image_cfg(stored_size(model)[0])


def stored_size(model: VisionModel) -> tuple[int, int]:
    """Return the image height and width, in pixels, for which positions are stored."""
    (rows, columns), side = model.net.grid, model.net.patch_size
    return rows * side, columns * side


def _create(variant: str, pretrained: bool = False, **kwargs: Any) -> Any:
    kwargs = {**_VARIANTS[variant].arguments, **kwargs}
    space, subnet = kwargs.pop("search_space", None), kwargs.pop("subnet", None)
    if space is not None and not isinstance(space, SearchSpace):
        space = get_space(space)
    network = space or _VARIANTS[variant].network()
    if subnet is not None:
        architecture = Architecture.load(subnet) if isinstance(subnet, str | Path) else Architecture(subnet)
        # Fixed genes that the file leaves out are the variant's, or the space's of the user.
        constants = ("head_dim", "image_size", "patch_size", "relative_clip")
        fixed = network.fixed if isinstance(network, SearchSpace) else {name: network[name] for name in constants}
        network = Architecture({**fixed, **(architecture if space is None else space.validate(architecture))})
    if isinstance(network, Architecture):
        network = static_image_space(network)
    size = image_pair(kwargs.get("img_size")) or (network.largest().number("image_size"),) * 2
    overlay = {"input_size": (kwargs.get("in_chans", 3), *size), **(kwargs.pop("pretrained_cfg_overlay", None) or {})}
    return build_model_with_cfg(
        VisionModel,
        variant,
        pretrained,
        feature_cfg={"out_indices": 3, "feature_cls": "getter"},
        space=network,
        pretrained_cfg_overlay=overlay,
        **kwargs,
    )


_CHANGEABLE = ("drop_rate", "attn_drop_rate", "act_drop_rate", "drop_path_rate", "architecture_seed",
               "dynamic_img_size")  # fmt: skip
"""Arguments that do not change weights, and thus may differ from those in a file."""


def _with_arguments(settings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    for name, value in changes.items():
        if name not in _CHANGEABLE:
            raise ConfigError(f"{name}={value!r} cannot be changed, since elastic=FILE sets {name}; leave it out")
    return {**settings, "arguments": {**settings["arguments"], **changes}}


def elastic_vit(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """Load a network from ``elastic=FILE``, written by ``nas-ext elastic``, ``nas-ext extract`` or a training.

    A different ``num_classes`` gives a new classifier; for a different ``img_size``, positions are interpolated.
    """
    # The state dict contains the settings, so that checkpoints of timm's trainer do not need the file.
    names = ("pretrained_cfg", "pretrained_cfg_overlay", "cache_dir", "elastic", "num_classes", "img_size", "in_chans")
    options = {name: kwargs.pop(name, None) for name in names}
    if not options["elastic"]:
        raise ConfigError(
            f"model {ELASTIC} needs a file; give elastic=FILE (in timm's trainer --model-kwargs elastic=FILE)"
        )
    path = Path(options["elastic"])
    state = read_checkpoint(path)
    channels = state[SETTINGS_KEY]["arguments"].get("in_chans", 3)
    if options["in_chans"] not in (None, channels):
        raise ConfigError(
            f"in_chans is {options['in_chans']}, but the network in {path} needs images of {channels} channels; leave"
            " in_chans out"
        )
    model = build({**state, SETTINGS_KEY: _with_arguments(state[SETTINGS_KEY], **kwargs)}, path, ema=True)
    if options["num_classes"] not in (None, model.num_classes):
        model.reset_classifier(options["num_classes"])
    if options["img_size"] is not None:
        model.set_input_size(options["img_size"])
    _configure(model, str(state.get("arch") or ELASTIC), options["pretrained_cfg_overlay"])
    prepared = {key: model.pretrained_cfg[key] for key in PREPARED if key in model.pretrained_cfg}
    settings = model.settings()
    settings["arguments"]["prepared"] = prepared
    model.register_buffer(SETTINGS, settings_buffer(settings))
    model.register_load_state_dict_pre_hook(_check_settings)
    return model


def _check_settings(model: VisionModel, state: dict[str, Any], prefix: str, *_: Any) -> None:
    # Weights of another network may have equal shapes.
    buffer = model.get_buffer(SETTINGS)
    saved, current = (_fixed_settings(state.get(prefix + SETTINGS, buffer)), _fixed_settings(buffer))
    if different := sorted(name for name in current if current[name] != saved.get(name)):
        raise CheckpointError(
            f"the checkpoint belongs to another network: {', '.join(different)} differ from those of elastic=FILE; give"
            " the FILE with which its training was started"
        )
    state[prefix + SETTINGS] = buffer


def _fixed_settings(buffer: Tensor) -> dict[str, Any]:
    settings = settings_in(buffer, "the checkpoint")
    arguments = {name: value for name, value in settings["arguments"].items() if name not in _CHANGEABLE}
    return {"space": settings["space"], **arguments}


def _configure(model: VisionModel, name: str, overlay: Mapping[str, Any] | None = None) -> None:
    """Set ``pretrained_cfg`` of a model loaded from a file; entries in ``overlay`` have priority."""
    config = {**prepared_for(model, name), "architecture": name, "num_classes": model.num_classes}
    config |= {"input_size": (model.in_chans, *stored_size(model)), **(overlay or {})}
    model.pretrained_cfg = model.default_cfg = config


def network_of_file(path: Path, classes: int, **changes: Any) -> VisionModel:
    state = read_checkpoint(path)
    model = VisionModel.from_settings(_with_arguments(state[SETTINGS_KEY], **changes))
    if model.num_classes != classes:
        raise ConfigError(
            f"the network in {path} has {model.num_classes} classes, but the images have {classes}; give images of the"
            " same classes"
        )
    _configure(model, str(state.get("arch") or ELASTIC))
    return model


for _name in MODELS:
    _build = partial(_create, _name)
    _build.__module__, _build.__name__ = __name__, _name  # read by timm's registry
    register_model(_build)
register_model(elastic_vit)
