"""What a workload of masked language models holds in memory, by formula: its weights, and what is live beside them.

Shapes: B batch, T length, C channels, V vocabulary.
"""

from __future__ import annotations

from nas_core.layers.attention.kinds import KINDS
from nas_core.models.masked_lm.costs import parameters
from nas_core.models.masked_lm.workload import MaskedLMWorkloadConfig, timed_config, timed_length
from nas_core.models.memory import layer_numbers
from nas_core.space import Architecture
from nas_core.space.bert import encoder_layers, joint_sizes, layer_widths, network_width


def weight_numbers(architecture: Architecture, config: MaskedLMWorkloadConfig) -> int:
    """All parameters, those of the tables of tokens and positions and of the heads included."""
    return parameters(architecture, config.vocab, timed_config(architecture, config))


def live_numbers(architecture: Architecture, config: MaskedLMWorkloadConfig) -> int:
    """The most that is held beside the weights: what a layer reads and the layer that runs; what lies before and behind
    a map between layers; tokens, positions and their sum; or the features, what the head that predicts tokens makes of
    them, and the logits of all tokens."""
    width, length = network_width(architecture), timed_length(architecture, config)
    positions = config.batch * length
    layers = [
        positions * own
        + layer_numbers(KINDS.get(one.attention), config.batch, length, own, one.qkv_dim, one.ffn_dim, one.heads)
        for own, one in zip(layer_widths(architecture), encoder_layers(architecture), strict=True)
    ]
    between = [positions * (into + out) for into, out in joint_sizes(architecture)]
    predicting = positions * (width if config.classes else 2 * width + config.vocab)
    return max(*layers, *between, 3 * positions * width, predicting)
