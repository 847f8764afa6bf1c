"""Image models that ``timm.create_model`` builds by name.

Every name takes ``subnet=`` (an architecture file, a mapping of genes or an ``Architecture``) and then builds that one
network; supernets also take ``search_space=`` (a name, a YAML file or a ``SearchSpace``), in which a subnet must lie.
No weights are published. Other keyword arguments: :class:`timm_ext.model.VisionModel`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import timm
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model

from nas_core.errors import ConfigError
from nas_core.space import Architecture, SearchSpace, get_space, image_architecture, static_image_space
from timm_ext.model import VisionModel, image_pair
from timm_ext.requests import check_feature_class

MODELS = [
    "autoformer_s",
    "cosformer_star_cifar10",
    "mformer_cifar10",
    "mformer_cifar10_small",
    "mformer_cifar10_small_linear",
    "mformer_cifar10_small_softmax",
    "mformer_cifar10_small_supernet",
    "mformer_cifar10_supernet",
    "mos_autoformer_s_supernet",
    "mos_vit_cifar10_small_supernet",
    "vanilla_linear_cifar10",
    "vanilla_softmax_cifar10",
    "vit_cifar10_small",
]
"""Names registered here."""

CIFAR10_MEAN, CIFAR10_STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def image_cfg(size: int, classes: int = 10) -> dict[str, Any]:
    small = size < 64
    return {
        "url": "",
        "num_classes": classes,
        "input_size": (3, size, size),
        "pool_size": None,
        "crop_pct": 1.0 if small else 0.875,
        "interpolation": "bicubic",
        "fixed_input_size": False,
        "mean": CIFAR10_MEAN if small else IMAGENET_DEFAULT_MEAN,
        "std": CIFAR10_STD if small else IMAGENET_DEFAULT_STD,
        "first_conv": "net.patch_embed",
        "classifier": "net.head",
        "license": "apache-2.0",
    }


default_cfgs = generate_default_cfgs(
    {
        **{
            f"{name}.untrained": image_cfg(224)
            for name in (
                "mformer_cifar10",
                "mformer_cifar10_supernet",
                "cosformer_star_cifar10",
                "vanilla_softmax_cifar10",
                "vanilla_linear_cifar10",
            )
        },
        **{
            f"{name}.untrained": image_cfg(32)
            for name in (
                "mformer_cifar10_small",
                "mformer_cifar10_small_softmax",
                "mformer_cifar10_small_linear",
                "mformer_cifar10_small_supernet",
                "vit_cifar10_small",
                "mos_vit_cifar10_small_supernet",
            )
        },
        **{f"{name}.untrained": image_cfg(224, 1000) for name in ("autoformer_s", "mos_autoformer_s_supernet")},
    }
)


def prepared_for(model: VisionModel, name: str) -> dict[str, Any]:
    """How images are prepared for a model of a checkpoint: as it says itself, or as the model of that name wants."""
    if own := model.arguments["prepared"]:
        return {key: model.pretrained_cfg[key] for key in own}
    if timm.is_model(name) and (known := timm.get_pretrained_cfg(name)) is not None:
        return dict(known.to_dict())
    return image_cfg(stored_size(model)[0])


def stored_size(model: VisionModel) -> tuple[int, int]:
    """Height and width of the images for which a model stores positions."""
    (rows, columns), side = model.net.grid, model.net.patch_size
    return rows * side, columns * side


def _as_space(given: Any) -> SearchSpace:
    return given if isinstance(given, SearchSpace) else get_space(given)


def _as_architecture(given: Any) -> Architecture:
    if isinstance(given, Architecture):
        return given
    if isinstance(given, str | Path):
        return Architecture.load(given)
    if isinstance(given, Mapping):
        return Architecture(given)
    raise ConfigError(
        f"subnet is a {type(given).__name__}; expected an architecture file, a mapping or an Architecture"
    )


def _create(variant: str, pretrained: bool, default: SearchSpace | Architecture, **kwargs: Any) -> Any:
    """Build a model: of the subnet if one is given, else of the space, else the variant's own."""
    space, subnet = kwargs.pop("search_space", None), kwargs.pop("subnet", None)
    if space is not None:
        default = _as_space(space)
    if subnet is not None:
        architecture = _as_architecture(subnet)
        # Without a space of the user's own the file speaks for itself; fixed genes it leaves out are the variant's.
        fixed = default.fixed if isinstance(default, SearchSpace) else _constants(default)
        if space is not None:
            architecture = _as_space(space).validate(architecture)
        default = Architecture({**fixed, **architecture})
    if isinstance(default, Architecture):
        default = static_image_space(default)
    if kwargs.get("features_only") and "feature_cls" in kwargs:
        check_feature_class(kwargs["feature_cls"])
    size = image_pair(kwargs.get("img_size")) or (default.largest().number("image_size"),) * 2
    overlay = {"input_size": (kwargs.get("in_chans", 3), *size), **(kwargs.pop("pretrained_cfg_overlay", None) or {})}
    return build_model_with_cfg(
        VisionModel,
        variant,
        pretrained,
        feature_cfg={"out_indices": 3, "feature_cls": "getter"},
        space=default,
        pretrained_cfg_overlay=overlay,
        **kwargs,
    )


def _constants(architecture: Architecture) -> dict[str, Any]:
    return {name: architecture[name] for name in ("head_dim", "image_size", "patch_size", "relative_clip")}


def _mixed_small(kinds: tuple[str, ...]) -> Architecture:
    """Six layers of the small space; ``kinds`` are repeated."""
    largest = get_space("mformer_cifar10_small").largest()
    return Architecture({**largest, "attention": (kinds * 6)[:6]})


@register_model
def mformer_cifar10(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """mFormer for CIFAR-10: 12 layers of width 384, linear attention in layers 3, 7 and 11; 19.3 M parameters. The
    single FFN sizes and heads are not published, see ``nas_core.space.image_architecture``."""
    return _create("mformer_cifar10", pretrained, image_architecture("mformer_like_cifar10"), **kwargs)


@register_model
def mformer_cifar10_supernet(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """Supernet of mFormer's space for CIFAR-10."""
    return _create("mformer_cifar10_supernet", pretrained, get_space("mformer_cifar10"), **kwargs)


@register_model
def cosformer_star_cifar10(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """The network found with linear attention alone, layer by layer as in the authors' file."""
    return _create("cosformer_star_cifar10", pretrained, image_architecture("cosformer_star_cifar10"), **kwargs)


@register_model
def vanilla_softmax_cifar10(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """Six equal layers of width 512 with softmax attention, without relative positions."""
    return _create("vanilla_softmax_cifar10", pretrained, image_architecture("vanilla_softmax_cifar10"), **kwargs)


@register_model
def vanilla_linear_cifar10(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """The same with linear attention."""
    return _create("vanilla_linear_cifar10", pretrained, image_architecture("vanilla_linear_cifar10"), **kwargs)


@register_model
def mformer_cifar10_small(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """Six layers of width 128 on 64 tokens; every third layer is linear."""
    return _create("mformer_cifar10_small", pretrained, _mixed_small(("softmax", "softmax", "linear")), **kwargs)


@register_model
def mformer_cifar10_small_softmax(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """The same with softmax attention in all layers."""
    return _create("mformer_cifar10_small_softmax", pretrained, _mixed_small(("softmax",)), **kwargs)


@register_model
def mformer_cifar10_small_linear(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """The same with linear attention in all layers."""
    return _create("mformer_cifar10_small_linear", pretrained, _mixed_small(("linear",)), **kwargs)


@register_model
def mformer_cifar10_small_supernet(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """Supernet of the small mixed space."""
    return _create("mformer_cifar10_small_supernet", pretrained, get_space("mformer_cifar10_small"), **kwargs)


@register_model
def autoformer_s(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """A network of AutoFormer's small space, the largest unless ``subnet`` says which."""
    return _create("autoformer_s", pretrained, get_space("autoformer_s").largest(), **kwargs)


@register_model
def mos_autoformer_s_supernet(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """Supernet of AutoFormer's small space whose feed-forward layers have experts, mixed neuron by neuron."""
    return _create("mos_autoformer_s_supernet", pretrained, get_space("autoformer_s"), **{"mos": "neuron", **kwargs})


@register_model
def vit_cifar10_small(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """A network of the small softmax space, the largest unless ``subnet`` says which."""
    return _create("vit_cifar10_small", pretrained, get_space("vit_cifar10_small").largest(), **kwargs)


@register_model
def mos_vit_cifar10_small_supernet(pretrained: bool = False, **kwargs: Any) -> VisionModel:
    """Supernet of the small softmax space with experts, mixed neuron by neuron."""
    return _create(
        "mos_vit_cifar10_small_supernet", pretrained, get_space("vit_cifar10_small"), **{"mos": "neuron", **kwargs}
    )
