"""Elastic encoder: a model of ``transformers`` with the weights of all subnets.

A subnet has the same model class with a smaller configuration, and slices of the same weights.

Shapes: B batch, T tokens, C channels.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from transformers import PreTrainedModel

from hf_ext.experts import Experts, load_experts
from hf_ext.families import FAMILIES, PER_LAYER, Family, head_dim_of, head_groups
from hf_ext.folder import SETTINGS, read_config, read_model
from hf_ext.per_layer import resize_layers
from nas_core.errors import CheckpointError, NasExtError
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.layers.depth import check_order, kept_layers
from nas_core.layers.mos import MoSConfig
from nas_core.models.elastic import Axis, TensorDim
from nas_core.space import Architecture, SearchSpace
from nas_core.space.files import space_from_dict, space_to_dict

_FORMAT = "nas-ext/hugging-face"
_CACHED = 64
Size = int | tuple[int, ...]
"""Size of all layers, or of each layer."""


class Subnet(NamedTuple):
    """Static model of a subnet, and its weights."""

    model: Any
    """Model on torch's meta device, without weights of its own."""
    weights: dict[str, Tensor]
    """Parameter or buffer name in ``model`` -> slice of the supernet's tensor."""
    sizes: dict[str, Any]
    """Setting in ``config.json`` -> its value in this subnet, or its values if layers differ."""
    layers: dict[str, tuple[int, ...]]
    """Indices of the supernet's layers that the subnet has, by side."""


class ElasticModel(nn.Module):
    """Supernet of a trained model, the largest network of ``space``.

    Args:
        layer_order: indices of layers by side, most important first; shallow subnets keep the most important layers.
            By default they keep the first layers.
        channels: index in the trained model of each channel of ``model``; default: the same order.
    """

    channels: Tensor

    def __init__(
        self,
        model: PreTrainedModel,
        space: SearchSpace,
        layer_order: Mapping[str, Sequence[int]] | None = None,
        channels: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.model, self.space = model, space
        self.layer_order: dict[str, tuple[int, ...]] = {}
        self.set_order(layer_order or {})
        width = model.config.hidden_size
        order = range(width) if channels is None else channels
        if sorted(order) != list(range(width)):
            raise CheckpointError(
                f"the channel order is not a permutation of 0 to {width - 1}; give an undamaged copy of the supernet"
            )
        self.register_buffer("channels", torch.tensor(list(order)))
        self._static: OrderedDict[tuple[Size, ...], Any] = OrderedDict()
        _save_all_keys(model)

    @property
    def family(self) -> Family:
        return FAMILIES[self.model.config.model_type]

    @property
    def prefixes(self) -> dict[str, str]:
        """Prefix of the names of the layers' weights by side, such as ``bert.encoder.layer.``."""
        base = "" if self.model is self.model.base_model else f"{self.model.base_model_prefix}."
        return {side: f"{base}{layers}." for side, layers in self.family.layers.items()}

    @property
    def depths(self) -> dict[str, int]:
        """Number of layers by side."""
        family, config = self.family, self.model.config
        return {side: int(getattr(config, family.setting(side, "layers"))) for side in family.layers}

    @property
    def experts(self) -> Experts | None:
        return getattr(self.model, "experts", None)

    def add_experts(self, config: MoSConfig) -> None:
        """Add experts to the feed-forward layers, as a module of ``model``. They do not change any subnet yet."""
        settings = {self.family.setting(side, "ffn_dim") for side in self.depths}
        names = {dimension.name for setting in settings for dimension in self._dimensions_along(setting)}
        weights = {name: tensor for name, tensor in self.model.named_parameters() if name in names}
        self.model.experts = Experts(weights, self.space, config).to(self.channels.device)

    def set_order(self, order: Mapping[str, Sequence[int]]) -> None:
        for side, count in self.depths.items():
            if side in order:
                self.layer_order[side] = check_order(tuple(order[side]), count, f"{side} layers".strip())

    # -- weights of one architecture -----------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> Subnet:
        sizes = {setting: _size(architecture, gene) for gene, setting in self.family.sizes.items()}
        layers = {}
        for side, count in self.depths.items():
            depth = sizes[self.family.setting(side, "layers")]
            layers[side] = kept_layers(range(count), depth, self.layer_order.get(side, ()))
        subnet = self.subnet(sizes, layers)
        if self.experts is not None:
            self.experts(architecture, subnet.weights, lambda name: self._source(name, layers))
        return subnet

    def subnet(self, sizes: Mapping[str, Size], layers: Mapping[str, Sequence[int]]) -> Subnet:
        """Return the subnet with these settings of ``config.json`` and these layers of the supernet by side."""
        sizes = {**sizes, **{self.family.setting(side, "layers"): len(rows) for side, rows in layers.items()}}
        static, weights = self._empty_model(sizes), {}
        tensors = dict(self.model.named_parameters()) | dict(self.model.named_buffers())
        for name, target in (*static.named_parameters(), *static.named_buffers()):
            tensor = tensors[self._source(name, layers)]
            slices = tuple(slice(size) for size in target.shape)
            weights[name] = tensor if tensor.shape == target.shape else tensor[slices]
        return Subnet(static, weights, sizes, {side: tuple(rows) for side, rows in layers.items()})

    def config_of(self, sizes: Mapping[str, Size]) -> Any:
        """Return the configuration of a subnet.

        If its layers differ in size, ``layer_sizes`` has the settings of each layer, and the other settings are those
        of the largest layers.
        """
        config = copy.deepcopy(self.model.config)
        values = self._settings({name: max(size) if isinstance(size, tuple) else size for name, size in sizes.items()})
        if per_layer := {name: size for name, size in sizes.items() if isinstance(size, tuple)}:
            rows = [dict(zip(per_layer, row, strict=True)) for row in zip(*per_layer.values(), strict=True)]
            layers = [self._settings({**values, **row}) for row in rows]
            values["layer_sizes"] = [{k: v for k, v in layer.items() if v != values.get(k)} for layer in layers]
        if getattr(config, "layer_types", None):
            values["layer_types"] = config.layer_types[: values["num_hidden_layers"]]
        for name, value in values.items():
            setattr(config, name, value)
        return config

    def _settings(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Return the settings of the model, or of one layer: ``sizes``, and those that follow from them."""
        trained, follows = self.model.config, self.family.heads_follow
        heads = trained.num_attention_heads * sizes[follows] // getattr(trained, follows)
        values = {**sizes, **dict.fromkeys(self.family.head_numbers, heads)}
        if heads * head_dim_of(trained) != sizes["hidden_size"]:
            values["head_dim"] = head_dim_of(trained)
        return values

    def build(self, sizes: Mapping[str, Size]) -> Any:
        """Create a model with the configuration of a subnet and random weights."""
        pooled = {} if _has_pooler(self.model) else {"add_pooling_layer": False}
        accepts = "add_pooling_layer" in type(self.model).__init__.__code__.co_varnames
        model = type(self.model)(self.config_of(sizes), **(pooled if accepts else {}))
        if hasattr(model.config, "layer_sizes"):
            resize_layers(model, self.family.layers[""])
        return _save_all_keys(model)

    def _empty_model(self, sizes: Mapping[str, Size]) -> Any:
        key = tuple(sizes[name] for name in self.family.sizes.values())
        if key not in self._static:
            with torch.device("meta"):
                self._static[key] = self.build(sizes)
            self._static[key].config.use_cache = False
        self._static.move_to_end(key)
        if len(self._static) > _CACHED:
            self._static.popitem(last=False)
        return self._static[key]

    def _source(self, name: str, layers: Mapping[str, Sequence[int]]) -> str:
        prefix, side, layer, inner = self._split(name)
        return f"{prefix}{layers[side][layer]}.{inner}" if prefix else name

    def _split(self, name: str) -> tuple[str, str, int, str]:
        """Return prefix, side, layer and inner name of a weight. The prefix is "" outside the layers."""
        for side, prefix in self.prefixes.items():
            if name.startswith(prefix):
                layer, _, inner = name.removeprefix(prefix).partition(".")
                return prefix, side, int(layer), inner
        return "", "", 0, ""

    # -- computing -----------------------------------------------------------------------------------------------------

    def forward(self, subnet: Subnet, batch: Mapping[str, Any], training: bool | None = None) -> Any:
        """Return the output of a subnet, with hidden states.

        Args:
            training: True to apply dropout; default: ``self.training``.
        """
        subnet.model.train(self.training if training is None else training)
        inputs = {**batch, "output_hidden_states": True, "return_dict": True}
        return functional_call(subnet.model, subnet.weights, args=(), kwargs=inputs)

    # -- conversion ----------------------------------------------------------------------------------------------------

    def axes(self) -> tuple[Axis, ...]:
        config, tensors = self.model.config, dict(self.model.named_parameters())
        groups = head_groups(config)
        head_size = head_dim_of(config) * config.num_attention_heads // groups
        attentions = dict.fromkeys(name.partition(".")[0] for name in self.family.heads)
        axes = []
        for side, index in ((side, index) for side, depth in self.depths.items() for index in range(depth)):
            prefix, width = f"{self.prefixes[side]}{index}.", self.family.setting(side, "ffn_dim")
            for attention in attentions:
                names = {name: dim for name, dim in self.family.heads.items() if name.startswith(f"{attention}.")}
                attention_dims = [TensorDim(f"{prefix}{name}.weight", dim) for name, dim in names.items()]
                attention_dims += [TensorDim(f"{prefix}{name}.bias", 0) for name, dim in names.items() if dim == 0]
                if attention_dims := [dimension for dimension in attention_dims if dimension.name in tensors]:
                    read_by = tuple(dimension.name for dimension in attention_dims if dimension.dim == 1)
                    axes.append(Axis(f"{prefix}{attention}.heads", groups, tuple(attention_dims), head_size, read_by))
            ffn_dims = [dimension for dimension in self._dimensions_along(width) if dimension.name.startswith(prefix)]
            axes.append(_axis(f"{prefix}ffn", getattr(config, width), ffn_dims, tensors))
        if len({*_options(self.space, "embed_dim")}) > 1:
            dims = [*self.channel_dims(), TensorDim("channels", 0)]
            axes.append(_axis("channels", config.hidden_size, dims, tensors))
        return tuple(_with_model_prefix(axis) for axis in axes)

    def channel_dims(self) -> list[TensorDim]:
        """Return the tensors that have a dimension along the channels."""
        ends = {(name, dim) for name, dim in self.family.heads.items()}
        ends_bias = {name for name, dim in self.family.heads.items() if dim == 0}
        dims = []
        for dimension in self._dimensions_along("hidden_size"):
            module, _, kind = dimension.name.rpartition(".")
            inner = self._split(module)[-1]
            in_heads = (inner, dimension.dim) in ends if kind == "weight" else inner in ends_bias
            if not in_heads:
                dims.append(dimension)
        return dims

    def _dimensions_along(self, setting: str) -> list[TensorDim]:
        """Return the dimensions that grow with a setting of the configuration."""
        sizes = {name: int(getattr(self.model.config, name)) for name in self.family.sizes.values()}
        wider = self._empty_model({**sizes, setting: 2 * sizes[setting]})
        shapes = {name: tensor.shape for name, tensor in wider.named_parameters()}
        return [
            TensorDim(name, dim)
            for name, tensor in self.model.named_parameters()
            if name in shapes
            for dim, (size, other) in enumerate(zip(tensor.shape, shapes[name], strict=True))
            if size != other
        ]

    # -- folders -------------------------------------------------------------------------------------------------------

    def write_settings(self, folder: Path, **settings: Any) -> None:
        """Write ``nas_ext.json``: search space, order of layers and channels, and ``settings``."""
        content = {"format": _FORMAT, "version": 1, "space": space_to_dict(self.space)}
        order = {side: list(layers) for side, layers in self.layer_order.items()}
        content |= {"layer_order": order, "channels": self.channels.tolist()}
        if self.experts is not None:
            content["mos"] = asdict(self.experts.config)
        write_json(folder / SETTINGS, {**content, **settings})

    def static_model(self, subnet: Subnet) -> Any:
        """Return a subnet as an ordinary model of ``transformers``, with channels in the order of the trained model."""
        width = subnet.sizes["hidden_size"]
        order = torch.argsort(self.channels[:width])
        channel_dims = {(dimension.name, dimension.dim) for dimension in self.channel_dims()}
        model = self.build(subnet.sizes)
        with torch.no_grad():
            for name, target in (*model.named_parameters(), *model.named_buffers()):
                tensor, source = subnet.weights[name], self._source(name, subnet.layers)
                for dim in range(tensor.ndim):
                    tensor = tensor.index_select(dim, order) if (source, dim) in channel_dims else tensor
                target.copy_(tensor)
        if model.can_generate():
            model.generation_config = copy.deepcopy(self.model.generation_config)
        return model.eval()


def read_settings(folder: Path) -> dict[str, Any]:
    read_config(folder)
    if not (folder / SETTINGS).is_file():
        raise CheckpointError(f"{folder} is a trained model, not a supernet; convert it with 'nas-ext elastic'")
    settings = read_json(folder / SETTINGS)
    if not isinstance(settings, dict) or (settings.get("format"), settings.get("version")) != (_FORMAT, 1):
        raise CheckpointError(
            f"{folder / SETTINGS} is not a supernet's settings file of version 1; give an undamaged copy"
        )
    return settings


def read_supernet(folder: Path) -> ElasticModel:
    """Load the supernet of a folder."""
    settings = read_settings(folder)
    space = space_from_dict(settings.get("space"), str(folder / SETTINGS))
    model = read_model(folder)
    try:
        network = ElasticModel(model, space, dict(settings["layer_order"]), list(settings["channels"]))
        if "mos" in settings:
            network.add_experts(MoSConfig(**settings["mos"]))
    except (KeyError, TypeError, RuntimeError, NasExtError) as error:
        raise CheckpointError(f"{folder / SETTINGS} is damaged ({error}); give an undamaged copy") from None
    if space.largest() != trained_architecture(space, genes_of(model)):
        raise CheckpointError(
            f"the search space in {folder / SETTINGS} does not match the model in the folder; give an undamaged copy"
        )
    load_experts(folder, network.experts)
    return network.eval()


def genes_of(model: PreTrainedModel) -> dict[str, int]:
    """Return the sizes of a trained model as genes, such as ``layers``, ``embed_dim``, ``ffn_dim`` and ``head_dim``."""
    config = model.config
    family = FAMILIES[config.model_type]
    genes = {gene: int(getattr(config, setting)) for gene, setting in family.sizes.items()}
    return genes | {gene: int(value(config)) for gene, value in family.constant.items()}


def trained_architecture(space: SearchSpace, genes: Mapping[str, int]) -> Architecture:
    """Return the trained model as an architecture of a space, with its genes of layers repeated."""
    repeated = {choice.name for choice in space.choices if choice.per} & {*PER_LAYER}
    return Architecture({g: (value,) * genes["layers"] if g in repeated else value for g, value in genes.items()})


def _size(architecture: Architecture, gene: str) -> Size:
    """Return a size of all layers, as one number if it is the same in all layers."""
    if not isinstance(architecture[gene], tuple):
        return architecture.number(gene)
    sizes = architecture.numbers(gene)
    return sizes if len({*sizes}) > 1 else sizes[0]


def features_of(output: Any) -> Tensor:
    """Return the last layer's output (B, T, C), of the decoder in translation."""
    return output["decoder_hidden_states" if "decoder_hidden_states" in output else "hidden_states"][-1]  # type: ignore[no-any-return]


def mask_of(output: Any, batch: Mapping[str, Tensor]) -> Tensor:
    """Return a mask (B, T) that is False at the padding of :func:`features_of`."""
    if "decoder_hidden_states" in output:
        return batch["labels"].ne(-100)
    return batch.get("attention_mask", torch.ones_like(features_of(output)[..., 0])).bool()


def _save_all_keys(model: Any) -> Any:
    # Marian's positions are not saved by default, but those of a subnet are a part of the trained model's.
    model._keys_to_ignore_on_save = set()
    return model


def _has_pooler(model: Any) -> bool:
    return getattr(model.base_model, "pooler", None) is not None


def _options(space: SearchSpace, gene: str) -> Sequence[Any]:
    return [space.fixed[gene]] if gene in space.fixed else space.choice(gene).options[0]


def _axis(name: str, size: int, dims: Sequence[TensorDim], tensors: Mapping[str, Tensor]) -> Axis:
    read_by = [dimension.name for dimension in dims if dimension.dim == 1 and dimension.name in tensors]
    return Axis(name, size, tuple(dims), 1, tuple(read_by))


def _with_model_prefix(axis: Axis) -> Axis:
    # The model is the attribute `model` of ElasticModel.
    dims = tuple(
        dimension
        if dimension.name == "channels"
        else TensorDim(f"model.{dimension.name}", dimension.dim, dimension.blocks)
        for dimension in axis.dims
    )
    return Axis(axis.name, axis.size, dims, axis.unit, tuple(f"model.{name}" for name in axis.read_by))


class ModelForm:
    """Implementation of :class:`nas_core.models.elastic.ElasticForm` for :class:`ElasticModel`."""

    def sides(self, net: ElasticModel) -> dict[str, int]:
        return net.depths

    def axes(self, net: ElasticModel) -> tuple[Axis, ...]:
        return net.axes()

    def select_layers(self, net: ElasticModel, subnet: Subnet, layers: Mapping[str, Sequence[int]]) -> Subnet:
        return net.subnet(subnet.sizes, {**subnet.layers, **{side: sorted(rows) for side, rows in layers.items()}})

    def set_order(self, net: ElasticModel, order: Mapping[str, Sequence[int]]) -> None:
        net.set_order(order)


FORM = ModelForm()
