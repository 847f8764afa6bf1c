"""Heads, hidden units and channels of translation networks that can be reordered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import nn

from nas_core.layers.positions import StoredPositions
from nas_core.models.elastic import Axis, TensorDim, channel_dims, layer_axes
from nas_core.models.translation.net import Subnet, TranslationNet
from nas_core.space import Architecture


class _TranslationElastic:
    def sides(self, net: TranslationNet) -> dict[str, int]:
        return {"encoder": len(net.encoder_layers), "decoder": len(net.decoder_layers)}

    def axes(self, net: TranslationNet) -> tuple[Axis, ...]:
        head_dim = net.space.fixed.get("head_dim")
        axes = []
        for name, layer in _layers(net):
            in_layer = layer_axes(name, f"{name.replace('.', '_layers.')}.", layer, int(head_dim or 1))
            # without a fixed head_dim, the number of heads changes no weight
            axes += [axis for axis in in_layer if head_dim or axis.name.endswith(".ffn")]
        if isinstance(net.source_positions, StoredPositions):  # channels of sinusoids cannot be reordered
            axes += _channels(net)
        return tuple(axes)

    def select_layers(self, net: TranslationNet, subnet: Subnet, layers: Mapping[str, Sequence[int]]) -> Subnet:
        genes = subnet.architecture.to_dict()
        indices = {side: sorted(layers.get(side, range(count))) for side, count in self.sides(net).items()}
        for gene, value in genes.items():
            if isinstance(value, list):
                genes[gene] = [value[index] for index in indices[gene.split(".")[0]]]
        genes |= {f"{side}.layers": len(rows) for side, rows in indices.items()}
        return subnet._replace(
            encoder_layers=tuple(subnet.encoder_layers[index] for index in indices["encoder"]),
            decoder_layers=tuple(subnet.decoder_layers[index] for index in indices["decoder"]),
            architecture=Architecture(genes),
        )

    def set_order(self, net: TranslationNet, order: Mapping[str, Sequence[int]]) -> None:
        encoder, decoder = (tuple(order.get(side, ())) for side in ("encoder", "decoder"))
        net.config = replace(net.config, encoder_order=encoder, decoder_order=decoder)


TRANSLATION_ELASTIC = _TranslationElastic()


def _layers(net: TranslationNet) -> list[tuple[str, nn.Module]]:
    sides = (("encoder", net.encoder_layers), ("decoder", net.decoder_layers))
    return [(f"{side}.{index}", layer) for side, layers in sides for index, layer in enumerate(layers)]


def _channels(net: TranslationNet) -> list[Axis]:
    dims: dict[str, list[TensorDim]] = {"encoder": [], "decoder": []}
    read_by: dict[str, list[str]] = {"encoder": [], "decoder": []}
    for name, layer in _layers(net):
        side, prefix = name.split(".")[0], f"{name.replace('.', '_layers.')}."
        in_layer, readers = channel_dims(prefix, layer)
        dims[side] += in_layer
        read_by[side] += readers
        memory = [f"{prefix}{n}" for n, _ in layer.named_parameters() if n.endswith(".kv_proj.weight")]
        dims["encoder"] += [TensorDim(weight, 1) for weight in memory]
        read_by["encoder"] += memory
    for side, vocabulary in (("encoder", "source"), ("decoder", "target")):
        if getattr(net, f"{side}_norm") is not None:
            dims[side] += [TensorDim(f"{side}_norm.{kind}", 0) for kind in ("weight", "bias")]
        dims[side].append(TensorDim(f"{vocabulary}_positions.table", 1))
    widths = {"encoder": net.source_positions.table.shape[1], "decoder": net.target_positions.table.shape[1]}
    config = net.config
    if config.share_all_embeddings:
        if widths["encoder"] != widths["decoder"]:
            return []  # the narrower side reads a prefix of the table, whose order is fixed
        dims_of_both = (*dims["encoder"], *dims["decoder"], TensorDim("embedding.weight", 1))
        readers = [*read_by["encoder"], *read_by["decoder"], "embedding.weight"]
        return [Axis("channels", widths["encoder"], dims_of_both, 1, tuple(readers))]
    output = "target_embedding.weight" if config.share_decoder_embeddings else "output.weight"
    dims["encoder"].append(TensorDim("source_embedding.weight", 1))
    dims["decoder"] += [TensorDim(name, 1) for name in dict.fromkeys(("target_embedding.weight", output))]
    read_by["decoder"].append(output)
    return [Axis(f"{side}.channels", widths[side], tuple(dims[side]), 1, tuple(read_by[side])) for side in dims]
