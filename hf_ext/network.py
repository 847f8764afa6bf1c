"""Elastic encoder: a model of ``transformers`` with the weights of all subnets.

A subnet has the same model class with a smaller configuration, and slices of the same weights.

Shapes: B batch, T tokens, C channels.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from transformers import PreTrainedModel

from hf_ext.families import FAMILIES, PER_LAYER, Family, head_dim_of, head_groups
from hf_ext.folder import SETTINGS, read_config, read_model
from hf_ext.per_layer import resize_layers
from nas_core.errors import CheckpointError, ConfigError
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.layers.depth import check_order, kept_layers
from nas_core.models.elastic import Axis, Part
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
    kept: tuple[int, ...]
    """Indices of the supernet's layers that the subnet has."""


class ElasticModel(nn.Module):
    """Supernet of a trained model, the largest network of ``space``.

    Args:
        layer_order: indices of layers, most important first; shallow subnets keep the most important layers. By
            default they keep the first layers.
        channels: index in the trained model of each channel of ``model``; default: the same order.
    """

    channels: Tensor

    def __init__(
        self,
        model: PreTrainedModel,
        space: SearchSpace,
        layer_order: Sequence[int] = (),
        channels: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.model, self.space = model, space
        self.layer_order = check_order(tuple(layer_order), model.config.num_hidden_layers)
        width = model.config.hidden_size
        order = range(width) if channels is None else channels
        if sorted(order) != list(range(width)):
            raise CheckpointError(
                f"the channel order is not a permutation of 0 to {width - 1}; give an undamaged copy of the supernet"
            )
        self.register_buffer("channels", torch.tensor(list(order)))
        self._static: OrderedDict[tuple[Size, ...], Any] = OrderedDict()

    @property
    def family(self) -> Family:
        return FAMILIES[self.model.config.model_type]

    @property
    def layers(self) -> str:
        """Prefix of the names of the layers' weights, such as ``bert.encoder.layer.``."""
        inside = "" if self.model is self.model.base_model else f"{self.model.base_model_prefix}."
        return f"{inside}{self.family.layers}."

    # -- weights of one architecture -----------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> Subnet:
        sizes = {setting: _size(architecture, gene) for gene, setting in self.family.sizes.items()}
        kept = kept_layers(range(self.depth), architecture.number("layers"), self.layer_order)
        return self.subnet(sizes, kept)

    @property
    def depth(self) -> int:
        return int(self.model.config.num_hidden_layers)

    def subnet(self, sizes: Mapping[str, Size], kept: Sequence[int]) -> Subnet:
        """Return the subnet with these settings of ``config.json`` and these layers of the supernet."""
        sizes = {**sizes, "num_hidden_layers": len(kept)}
        static, weights = self._built(sizes), {}
        tensors = dict(self.model.named_parameters()) | dict(self.model.named_buffers())
        for name, like in (*static.named_parameters(), *static.named_buffers()):
            tensor = tensors[self._source(name, kept)]
            cut = tuple(slice(size) for size in like.shape)
            weights[name] = tensor if tensor.shape == like.shape else tensor[cut]
        return Subnet(static, weights, sizes, tuple(kept))

    def config_of(self, sizes: Mapping[str, Size]) -> Any:
        """Return the configuration of a subnet.

        If its layers differ in size, ``layer_sizes`` has the settings of each layer, and the other settings are those
        of the largest layers.
        """
        config = copy.deepcopy(self.model.config)
        values = self._settings({name: max(size) if isinstance(size, tuple) else size for name, size in sizes.items()})
        if listed := {name: size for name, size in sizes.items() if isinstance(size, tuple)}:
            rows = [dict(zip(listed, row, strict=True)) for row in zip(*listed.values(), strict=True)]
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
        values = {**sizes, "num_attention_heads": heads}
        if heads * head_dim_of(trained) != sizes["hidden_size"]:
            values["head_dim"] = head_dim_of(trained)
        return values

    def build(self, sizes: Mapping[str, Size]) -> Any:
        """Create a model with the configuration of a subnet and random weights."""
        pooled = {} if _pooler(self.model) else {"add_pooling_layer": False}
        accepts = "add_pooling_layer" in type(self.model).__init__.__code__.co_varnames
        model = type(self.model)(self.config_of(sizes), **(pooled if accepts else {}))
        if hasattr(model.config, "layer_sizes"):
            resize_layers(model, self.family.layers)
        return model

    def _built(self, sizes: Mapping[str, Size]) -> Any:
        key = tuple(sizes[name] for name in self.family.sizes.values())
        if key not in self._static:
            with torch.device("meta"):
                self._static[key] = self.build(sizes)
            self._static[key].config.use_cache = False
        self._static.move_to_end(key)
        if len(self._static) > _CACHED:
            self._static.popitem(last=False)
        return self._static[key]

    def _source(self, name: str, kept: Sequence[int]) -> str:
        if not name.startswith(self.layers):
            return name
        layer, _, rest = name.removeprefix(self.layers).partition(".")
        return f"{self.layers}{kept[int(layer)]}.{rest}"

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
        axes = []
        for index in range(self.depth):
            prefix = f"{self.layers}{index}."
            heads = [Part(f"{prefix}{name}.weight", dim) for name, dim in self.family.heads.items()]
            heads += [Part(f"{prefix}{name}.bias", 0) for name, dim in self.family.heads.items() if dim == 0]
            heads = [part for part in heads if part.name in tensors]
            read_by = tuple(part.name for part in heads if part.dim == 1)
            axes.append(Axis(f"{prefix}heads", groups, tuple(heads), head_size, read_by))
            units = [part for part in self._along("intermediate_size") if part.name.startswith(prefix)]
            axes.append(_axis(f"{prefix}ffn", config.intermediate_size, units, tensors))
        if len({*_options(self.space, "embed_dim")}) > 1:
            parts = [*self.channel_parts(), Part("channels", 0)]
            axes.append(_axis("channels", config.hidden_size, parts, tensors))
        return tuple(_of_module(axis) for axis in axes)

    def channel_parts(self) -> list[Part]:
        """Return the tensors that have a dimension along the channels."""
        ends = {(name, dim) for name, dim in self.family.heads.items()}
        ends_bias = {name for name, dim in self.family.heads.items() if dim == 0}
        parts = []
        for part in self._along("hidden_size"):
            module, _, kind = part.name.rpartition(".")
            inside = module.removeprefix(self.layers).partition(".")[2] if module.startswith(self.layers) else ""
            in_heads = (inside, part.dim) in ends if kind == "weight" else inside in ends_bias
            if not in_heads:
                parts.append(part)
        return parts

    def _along(self, setting: str) -> list[Part]:
        """Return the dimensions that grow with a setting of the configuration."""
        sizes = {name: int(getattr(self.model.config, name)) for name in self.family.sizes.values()}
        larger = self._built({**sizes, setting: 2 * sizes[setting]})
        shapes = {name: tensor.shape for name, tensor in larger.named_parameters()}
        return [
            Part(name, dim)
            for name, tensor in self.model.named_parameters()
            for dim, (size, other) in enumerate(zip(tensor.shape, shapes[name], strict=True))
            if size != other
        ]

    # -- folders -------------------------------------------------------------------------------------------------------

    def write_settings(self, folder: Path, **settings: Any) -> None:
        """Write ``nas_ext.json``: search space, order of layers and channels, and ``settings``."""
        content = {"format": _FORMAT, "version": 1, "space": space_to_dict(self.space)}
        content |= {"layer_order": list(self.layer_order), "channels": self.channels.tolist()}
        write_json(folder / SETTINGS, {**content, **settings})

    def static_model(self, subnet: Subnet) -> Any:
        """Return a subnet as an ordinary model of ``transformers``, with channels in the order of the trained model."""
        width = subnet.sizes["hidden_size"]
        order = torch.argsort(self.channels[:width])
        along = {(part.name, part.dim) for part in self.channel_parts()}
        model = self.build(subnet.sizes)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                tensor, source = subnet.weights[name], self._source(name, subnet.kept)
                for dim in range(tensor.ndim):
                    tensor = tensor.index_select(dim, order) if (source, dim) in along else tensor
                parameter.copy_(tensor)
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
        network = ElasticModel(model, space, list(settings["layer_order"]), list(settings["channels"]))
    except (KeyError, TypeError, ConfigError) as error:
        raise CheckpointError(f"{folder / SETTINGS} is damaged ({error}); give an undamaged copy") from None
    if space.largest() != trained_architecture(space, genes_of(model)):
        raise CheckpointError(
            f"the search space in {folder / SETTINGS} does not match the model in the folder; give an undamaged copy"
        )
    return network.eval()


def genes_of(model: PreTrainedModel) -> dict[str, int]:
    """Return the sizes of a trained encoder as genes: ``layers``, ``embed_dim``, ``ffn_dim``, ``head_dim`` and
    ``sequence_length``."""
    config = model.config
    family = FAMILIES[config.model_type]
    genes = {gene: int(getattr(config, setting)) for gene, setting in family.sizes.items()}
    return genes | {gene: int(value(config)) for gene, value in family.constant.items()}


def trained_architecture(space: SearchSpace, genes: Mapping[str, int]) -> Architecture:
    """Return the trained model as an architecture of a space, with its genes of layers repeated."""
    repeated = {choice.name for choice in space.choices if choice.per} & {*PER_LAYER}
    layers = genes["layers"]
    return Architecture({gene: (value,) * layers if gene in repeated else value for gene, value in genes.items()})


def _size(architecture: Architecture, gene: str) -> Size:
    """Return a size of all layers, as one number if it is the same in all layers."""
    if not isinstance(architecture[gene], tuple):
        return architecture.number(gene)
    sizes = architecture.numbers(gene)
    return sizes if len({*sizes}) > 1 else sizes[0]


def features_of(output: Any) -> Tensor:
    """Return the last layer's output (B, T, C)."""
    return output.hidden_states[-1]  # type: ignore[no-any-return]


def _pooler(model: Any) -> bool:
    return getattr(model.base_model, "pooler", None) is not None


def _options(space: SearchSpace, gene: str) -> Sequence[Any]:
    return [space.fixed[gene]] if gene in space.fixed else space.choice(gene).options[0]


def _axis(name: str, size: int, parts: Sequence[Part], tensors: Mapping[str, Tensor]) -> Axis:
    read_by = [part.name for part in parts if part.dim == 1 and part.name in tensors]
    return Axis(name, size, tuple(parts), 1, tuple(read_by))


def _of_module(axis: Axis) -> Axis:
    # The model is the attribute `model` of ElasticModel.
    parts = tuple(
        part if part.name == "channels" else Part(f"model.{part.name}", part.dim, part.blocks) for part in axis.parts
    )
    return Axis(axis.name, axis.size, parts, axis.unit, tuple(f"model.{name}" for name in axis.read_by))


class ModelForm:
    """Implementation of :class:`nas_core.models.elastic.ElasticForm` for :class:`ElasticModel`."""

    def sides(self, net: ElasticModel) -> dict[str, int]:
        return {"": net.depth}

    def axes(self, net: ElasticModel) -> tuple[Axis, ...]:
        return net.axes()

    def running(self, net: ElasticModel, subnet: Subnet, kept: Mapping[str, Sequence[int]]) -> Subnet:
        return net.subnet(subnet.sizes, sorted(kept[""])) if "" in kept else subnet

    def set_order(self, net: ElasticModel, order: Mapping[str, Sequence[int]]) -> None:
        if "" in order:
            net.layer_order = check_order(tuple(order[""]), net.depth)


FORM = ModelForm()
