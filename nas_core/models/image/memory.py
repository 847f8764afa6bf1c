"""What an image workload holds in memory, by formula: its weights, and what is live beside them.

Shapes: B batch, N tokens of an image, C channels of a token.
"""

from __future__ import annotations

from nas_core.layers.attention.kinds import KINDS
from nas_core.models.image.costs import parameters
from nas_core.models.image.workload import ImageWorkloadConfig
from nas_core.models.memory import layer_numbers
from nas_core.space import Architecture
from nas_core.space.image import image_layers, token_grid


def weight_numbers(architecture: Architecture, config: ImageWorkloadConfig) -> int:
    """All parameters, those of the classifier included."""
    return parameters(architecture, config.classes, config.channels)


def live_numbers(architecture: Architecture, config: ImageWorkloadConfig) -> int:
    """The most that is held beside the weights: the tokens and the layer that runs; or, where its attention ends, the
    tokens also normalised, queries, keys, values and outputs, those with heads joined, and projected."""
    width, clip = architecture.number("embed_dim"), architecture.number("relative_clip")
    length = token_grid(architecture, None) ** 2 + 1
    batch = config.batch
    layers = [
        layer_numbers(KINDS.get(one.attention), batch, length, width, one.qkv_dim, one.ffn_dim, one.heads, clip)
        for one in image_layers(architecture)
    ]
    ending = [batch * length * (5 * one.qkv_dim + 2 * width) for one in image_layers(architecture)]
    return batch * length * width + max(*layers, *ending)
